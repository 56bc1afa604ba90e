package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/credentials"
	"github.com/flaked/flaked/internal/load"
)

func benchCommand() *cli.Command {
	return &cli.Command{
		Name:  "bench",
		Usage: "load a node with requests: how fast it answers, and whether the IDs are right",
		Description: `Asks a node for IDs over many connections, and prints how many it got, how long
that took, and what went wrong. It checks that no ID came twice and that they grow on
each connection. The IDs are used up: they are the node's own.

Without --rate the loop is closed: each connection sends its next requests when the
ones before are answered. That shows what the node can do. With --rate requests are
due at fixed times, whether the node keeps up or not, and their latency counts from
when they were due: that shows what clients will wait at that load, stalls included.

To size a set-up, find the highest --rate at which p99 is what you need, with as many
connections and the batch that your programs have. The generator takes about as much
of a processor as the node: it wants one of its own (see CLIENT CPU in the table).
By TLS it takes more, two goroutines a connection.

Ctrl-C ends it early, with what has been measured. -o json prints one document;
docs/performance.md has its fields.

Exits with 0 when all is well, with 4 when the node did not keep up with --rate, with 1
when IDs were wrong, requests failed or were not answered, with 3 when there is no node.

Examples:
  flaked bench                                      50 connections, one request at a time
  flaked bench --conns 8 --batch 100                eight programs that fetch 100 at a time
  flaked bench --pipeline 16 --protocol resp        as a Redis client that pipelines
  flaked bench --rate 20000 --duration 60s          a steady load: what will p99 be?
  flaked bench --addr unix:/run/flaked.sock -o json | jq .latency_us.p99
  flaked bench --addr :6379 --protocol resp --command 'INCR x'        Redis, for comparison
  flaked bench --addr :11211 --command 'incr x 1'                     memcached`,
		Flags:  benchFlags(),
		Action: bench,
	}
}

func benchFlags() []cli.Flag {
	return append([]cli.Flag{
		addrFlag(),
		&cli.IntFlag{Name: "conns", Usage: "how many connections", Value: 50, EnvVars: env("conns")},
		&cli.IntFlag{Name: "pipeline", Usage: "requests that a connection sends at once, before it waits for their replies; with --rate, how many it may have waiting", Value: 1, EnvVars: env("pipeline")},
		&cli.IntFlag{Name: "batch", Usage: "IDs of one request: GET `N`", Value: 1, EnvVars: env("batch")},
		&cli.Float64Flag{Name: "rate", Usage: "requests a second that are due, over all connections", DefaultText: "as many as are answered", EnvVars: env("rate")},
		&cli.DurationFlag{Name: "duration", Usage: "how long to measure", Value: 10 * time.Second, EnvVars: env("duration")},
		&cli.DurationFlag{Name: "warmup", Usage: "how long to load the node before that", Value: time.Second, EnvVars: env("warmup")},
		&cli.DurationFlag{Name: "timeout", Usage: "how long to wait for a connection or a reply", Value: 5 * time.Second, EnvVars: env("timeout")},
		&cli.IntFlag{Name: "threads", Usage: "event loops; one does for most", Value: 1, EnvVars: env("threads")},
		&cli.DurationFlag{Name: "client-spin", Usage: "poll for so long before sleeping: the generator's own waking up then is in no latency", DefaultText: "sleep at once", EnvVars: env("client-spin")},
		&cli.StringFlag{Name: "protocol", Usage: "`FRAMING`: plain, resp, or inline (lines out, RESP back, as Redis takes a --command)", Value: string(load.Plain), EnvVars: env("protocol")},
		&cli.StringFlag{Name: "command", Usage: "send this `LINE` instead of GET, to measure another server; nothing is checked", DefaultText: "GET", EnvVars: env("command")},
		&cli.BoolFlag{Name: "no-check", Usage: "do not look at the IDs", EnvVars: env("no-check")},
		&cli.IntFlag{Name: "pid", Usage: "also read processor time and memory of this process, the node's, on this machine", DefaultText: "none", EnvVars: env("pid")},
		outputFlag(),
	}, accessFlags()...)
}

func bench(c *cli.Context) error {
	format, err := outputFormat(c)
	if err != nil {
		return err
	}
	cfg, err := benchConfig(c)
	if err != nil {
		return err
	}
	progress := newProgressLine(c.App.ErrWriter)
	cfg.OnProgress = progress.show
	res, err := load.Run(c.Context, cfg)
	progress.end()
	if err != nil {
		return benchFailed(c, cfg, err)
	}
	report := newBenchReport(c.String("addr"), cfg, res)
	if format == formatJSON {
		err = printJSON(c.App.Writer, report)
	} else {
		err = report.print(c.App.Writer)
	}
	return errors.Join(err, report.verdict())
}

func benchConfig(c *cli.Context) (load.Config, error) {
	network, address, err := splitAddr(c.String("addr"))
	if err != nil {
		return load.Config{}, usageError("--addr: %w", err)
	}
	cfg := load.Config{
		Network: network, Address: address,
		Conns: c.Int("conns"), Pipeline: c.Int("pipeline"), Batch: c.Int("batch"), Threads: c.Int("threads"),
		Framing: load.Framing(c.String("protocol")), Command: c.String("command"),
		Rate: c.Float64("rate"), Warmup: c.Duration("warmup"), Duration: c.Duration("duration"),
		Timeout: c.Duration("timeout"), Spin: c.Duration("client-spin"), PID: c.Int("pid"),
	}
	cfg.Check = !c.Bool("no-check") && cfg.Command == ""
	for _, f := range []struct {
		name   string
		ok     bool
		wanted string
	}{
		{"conns", within(cfg.Conns, load.MaxConns), fmt.Sprintf("1 to %d", load.MaxConns)},
		{"pipeline", within(cfg.Pipeline, load.MaxPipeline), fmt.Sprintf("1 to %d", load.MaxPipeline)},
		{"batch", within(cfg.Batch, load.MaxBatch), fmt.Sprintf("1 to %d", load.MaxBatch)},
		{"threads", within(cfg.Threads, load.MaxThreads), fmt.Sprintf("1 to %d", load.MaxThreads)},
		{"rate", !c.IsSet("rate") || cfg.Rate > 0 && cfg.Rate <= 1e9, "more than 0, at most 1000000000"},
		{"duration", cfg.Duration > 0, "more than 0s"},
		{"warmup", cfg.Warmup >= 0, "0s or more"},
		{"timeout", cfg.Timeout > 0, "more than 0s"},
		{"client-spin", cfg.Spin >= 0, "0s or more"},
		{"pid", cfg.PID >= 0, "a process"},
		{"protocol", cfg.Framing == load.Plain || cfg.Framing == load.RESP || cfg.Framing == load.Inline, "plain, resp or inline"},
	} {
		if !f.ok {
			return cfg, usageError("--%s %v: %s", f.name, c.Value(f.name), f.wanted)
		}
	}
	if cfg.Command == "" && cfg.Framing == load.Inline {
		return cfg, usageError("--protocol inline is for a --command: a node answers lines in lines")
	}
	if cfg.Command != "" && cfg.Batch > 1 {
		return cfg, usageError("--batch is for GET, not for a --command")
	}
	access, err := nodeAccess(c)
	cfg.Dial = func(ctx context.Context) (net.Conn, error) { return access.Dial(ctx, network, address) }
	return cfg, err
}

func within(n, most int) bool { return n >= 1 && n <= most }

// benchFailed returns the error of a run that has no result.
func benchFailed(c *cli.Context, cfg load.Config, err error) error {
	var refused *credentials.RefusedError
	switch {
	case errors.As(err, &refused):
		reply := &replyError{c.String("addr"), refused.Reply}
		return exitWith(exitFailure, "%w%s", reply, cmp.Or(meaning(reply.code()), accessAdvice(reply)))
	case errors.Is(err, syscall.EMFILE):
		return exitWith(exitFailure, "%w: raise the limit of open files (ulimit -n), or ask for fewer --conns", err)
	case errors.Is(err, load.ErrConnect):
		return unanswered(c.String("addr"), cfg.Timeout, err)
	case errors.Is(err, context.Canceled):
		return err
	}
	return usageError("%w", err)
}

// progressLine shows the progress of a run. On a terminal it overwrites one line. Elsewhere it
// prints a line every few seconds.
type progressLine struct {
	out      io.Writer
	terminal bool
	shown    bool
	at       time.Time // of the last line
	replies  int64     // until then
}

const progressEvery = 5 * time.Second // if not on a terminal

func newProgressLine(out io.Writer) *progressLine {
	p := &progressLine{out: out, at: time.Now()}
	if f, ok := out.(*os.File); ok {
		p.terminal = isatty.IsTerminal(f.Fd())
	}
	return p
}

func (p *progressLine) show(s load.Progress) {
	since := time.Since(p.at)
	if !p.terminal && since < progressEvery {
		return
	}
	text := progressText(s, float64(s.Replies-p.replies)/since.Seconds())
	p.at, p.replies = time.Now(), s.Replies
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s", text)
		p.shown = true
		return
	}
	fmt.Fprintln(p.out, text)
}

// end clears the line on a terminal.
func (p *progressLine) end() {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

func progressText(s load.Progress, rate float64) string {
	phase := fmt.Sprintf("%.0f of %s", s.Elapsed.Seconds(), s.Total)
	if s.WarmingUp {
		phase = "warming up"
	}
	text := fmt.Sprintf("%s: %s replies/s", phase, grouped(int64(rate)))
	if s.Errors > 0 {
		text += fmt.Sprintf(", %s errors", grouped(s.Errors))
	}
	if s.Violations > 0 {
		text += fmt.Sprintf(", %s WRONG IDs", grouped(s.Violations))
	}
	return text
}

// grouped formats n with commas between the thousands.
func grouped(n int64) string {
	s := fmt.Sprint(n)
	var b strings.Builder
	for i, d := range s {
		if left := len(s) - i; i > 0 && left%3 == 0 && s[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}
