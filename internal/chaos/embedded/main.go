// Embedded is a program with a node inside, for the fault campaign. It takes the flags of
// `flaked serve` that the campaign gives, draws IDs by calls while it also serves the line
// protocol, and checks that its own IDs grow.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
	"github.com/flaked/flaked/zkstore"
)

func main() {
	cfg, listen, err := parse(os.Args[2:]) // after the word serve
	if err == nil {
		err = run(cfg, listen)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "flaked:", err)
		if errors.Is(err, zkstore.ErrUnreachable) {
			os.Exit(3)
		}
		os.Exit(1)
	}
}

func parse(args []string) (cfg flaked.Config, listen string, err error) {
	f := flag.NewFlagSet("embedded", flag.ContinueOnError)
	f.StringVar(&cfg.ZooKeeper, "zk", "", "")
	f.StringVar(&cfg.StateDir, "state-dir", "", "")
	f.StringVar(&listen, "listen", "", "")
	f.StringVar(&cfg.Name, "name", "", "")
	f.BoolVar(&cfg.Bootstrap, "bootstrap", false, "")
	f.IntVar(&cfg.Workers, "workers", 1, "")
	f.BoolVar(&cfg.ReleaseOnClose, "release-on-exit", false, "")
	f.DurationVar(&cfg.SessionTimeout, "zk-session-timeout", 0, "")
	f.DurationVar(&cfg.Heartbeat, "heartbeat", 0, "")
	f.DurationVar(&cfg.Reserve, "reserve", 0, "")
	f.DurationVar(&cfg.StartTimeout, "start-timeout", 0, "")
	cfg.Settings.ConfirmTime = f.Duration("confirm-time", 0, "")
	cfg.Settings.Lease = f.Duration("lease", 0, "")
	f.String("log-format", "", "")
	f.String("admin", "", "")
	start := f.String("sequence-start", "", "")
	layout := f.String("layout", "", "")
	rollback := f.String("on-rollback", "", "")
	borrow := f.Duration("borrow", 0, "")
	if err := f.Parse(args); err != nil {
		return cfg, "", err
	}
	cfg.SequenceStart = map[string]worker.SequenceStart{"random": worker.StartRandom, "zero": worker.StartZero, "carry-on": worker.StartCarryOn}[*start]
	if *layout != "" {
		l, err := worker.ParseLayout(*layout)
		if err != nil {
			return cfg, "", err
		}
		cfg.Settings.Layout = &l
	}
	if *rollback != "" {
		p, err := timeguard.ParseRollbackPolicy(*rollback)
		if err != nil {
			return cfg, "", err
		}
		cfg.Settings.OnRollback = &p
	}
	if *borrow > 0 {
		cfg.Settings.Borrow = borrow
	}
	cfg.HCLogger = hclog.New(&hclog.LoggerOptions{Name: "flaked", Output: os.Stderr})
	return cfg, listen, nil
}

// run serves until SIGTERM, or until the node ends by itself.
func run(cfg flaked.Config, listen string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	l, err := net.Listen(network(listen))
	if err != nil {
		return err
	}
	defer l.Close()
	n, err := flaked.Start(cfg)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(n.Close(context.Background()), err) }()
	backend, sequences := n.LineProtocol()
	server, err := lineproto.New(lineproto.Config{Backend: backend, Sequences: sequences, Logger: cfg.HCLogger})
	if err != nil {
		return err
	}
	serving, end := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer end()
	work.Go(func() { _ = server.Serve(serving, l) })
	work.Go(func() { draw(serving, n, cfg.Workers) })
	select {
	case <-ctx.Done():
	case <-n.Done():
	}
	return nil
}

func network(listen string) (string, string) {
	if path, ok := strings.CutPrefix(listen, "unix:"); ok {
		return "unix", path
	}
	return "tcp", listen
}

// draw takes IDs by calls. In a layout without a rollback field, those of one worker grow as long
// as the node keeps it. A violation is a panic, which the campaign finds in the log.
func draw(ctx context.Context, n *flaked.Node, workers int) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	// holds returns what the node holds, "" if its IDs need not grow.
	holds := func() string {
		s := n.Status()[0]
		if workers > 1 || s.Worker == nil || s.Clock.Rollbacks > 0 {
			return ""
		}
		return fmt.Sprint(*s.Worker, " ", s.Term, " ", s.Node)
	}
	var last worker.ID
	var of string // what the node held when it made last
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		before := holds()
		id, err := n.Next(ctx)
		if err != nil {
			continue
		}
		if held := holds(); held == "" || held != before {
			of = ""
			continue
		}
		if before == of && id <= last {
			panic(fmt.Sprintf("%s after %s in the program, by worker %s", id, last, of))
		}
		last, of = id, before
	}
}
