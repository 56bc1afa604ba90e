package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/internal/credentials"
	"github.com/flaked/flaked/internal/load"
)

func benchCommand() *cli.Command {
	return &cli.Command{
		Name:  "bench",
		Usage: "measure a node under load, and check its IDs",
		Description: `Requests IDs from a node over many connections. Prints how many IDs it got, how fast
the node answered, and the errors. Checks that no ID is a duplicate, and that IDs
increase on each connection. The IDs are real: the node never issues them again.

Without --rate the loop is closed: each connection sends its next requests when the
node has answered the previous ones. That shows the highest throughput of the node.
With --rate, requests are due at fixed times, whether the node keeps up or not. Their
latency counts from the time when they were due, so it includes stalls. That shows how
long clients wait at this load.

To size a set-up, find the highest --rate at which p99 is what you need, with the
connections and the batch of your programs. The generator needs about as much of a
processor as the node, so give it a processor of its own (see CLIENT CPU in the table).
With TLS it needs more, and uses two goroutines per connection.

Ctrl-C ends the run early and prints the results so far. -o json prints one document.
docs/performance.md lists its fields.

Exits with 0 if all is well, 4 if the node did not keep up with --rate, 1 if IDs were
wrong or requests failed or were not answered, and 3 if no node answers.

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
		&cli.IntFlag{Name: "conns", Usage: "number of connections", Value: 50, EnvVars: env("conns")},
		&cli.IntFlag{Name: "pipeline", Usage: "requests that a connection sends before it waits for the replies. With --rate: the most that may wait for a reply", Value: 1, EnvVars: env("pipeline")},
		&cli.IntFlag{Name: "batch", Usage: "IDs per request: GET `N`", Value: 1, EnvVars: env("batch")},
		&cli.Float64Flag{Name: "rate", Usage: "requests per second over all connections", DefaultText: "as many as the node answers", EnvVars: env("rate")},
		&cli.DurationFlag{Name: "duration", Usage: "how long to measure", Value: 10 * time.Second, EnvVars: env("duration")},
		&cli.DurationFlag{Name: "warmup", Usage: "how long to load the node before measuring", Value: time.Second, EnvVars: env("warmup")},
		&cli.DurationFlag{Name: "timeout", Usage: "how long to wait for a connection or a reply", Value: 5 * time.Second, EnvVars: env("timeout")},
		&cli.IntFlag{Name: "threads", Usage: "event loops of the generator. One is enough in most cases", Value: 1, EnvVars: env("threads")},
		&cli.DurationFlag{Name: "client-spin", Usage: "poll this long before sleeping. The latency then excludes the generator's wake-up time", DefaultText: "sleep at once", EnvVars: env("client-spin")},
		&cli.StringFlag{Name: "protocol", Usage: "`FRAMING`: plain, resp, or inline (plain requests and RESP replies, for a --command to Redis)", Value: string(load.Plain), EnvVars: env("protocol")},
		&cli.StringFlag{Name: "command", Usage: "send this `LINE` instead of GET, to measure another server. Replies are not checked", DefaultText: "GET", EnvVars: env("command")},
		&cli.BoolFlag{Name: "no-check", Usage: "do not check the IDs", EnvVars: env("no-check")},
		&cli.IntFlag{Name: "pid", Usage: "also measure processor time and memory of this process on this machine (the node's)", DefaultText: "none", EnvVars: env("pid")},
		outputFlag(),
	}, accessFlags()...)
}

func bench(c *cli.Context) error {
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
	report := benchReport{load.NewReport(c.String("addr"), cfg, res)}
	return errors.Join(show(c, report, report.print), report.verdict())
}

func benchConfig(c *cli.Context) (load.Config, error) {
	addr, err := oneAddr(c, "a measurement")
	if err != nil {
		return load.Config{}, err
	}
	network, address, err := splitAddr(addr)
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
		{"rate", !c.IsSet("rate") || cfg.Rate > 0 && cfg.Rate <= 1e9, "more than 0 and at most 1000000000"},
		{"duration", cfg.Duration > 0, "more than 0s"},
		{"warmup", cfg.Warmup >= 0, "at least 0s"},
		{"timeout", cfg.Timeout > 0, "more than 0s"},
		{"client-spin", cfg.Spin >= 0, "at least 0s"},
		{"pid", cfg.PID >= 0, "a process ID"},
		{"protocol", cfg.Framing == load.Plain || cfg.Framing == load.RESP || cfg.Framing == load.Inline, "plain, resp or inline"},
	} {
		if !f.ok {
			return cfg, usageError("--%s must be %s, not %v", f.name, f.wanted, c.Value(f.name))
		}
	}
	if cfg.Command == "" && cfg.Framing == load.Inline {
		return cfg, usageError("--protocol inline is only for --command. A node answers plain requests in plain lines")
	}
	if cfg.Command != "" && cfg.Batch > 1 {
		return cfg, usageError("--batch is only for GET. Leave out --batch or --command")
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
		return exitWith(exitFailure, "%w. Raise the limit of open files (ulimit -n), or give fewer --conns", err)
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
	return &progressLine{out: out, at: time.Now(), terminal: isTerminal(out)}
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
func grouped(n int64) string { return clusterview.Thousands(fmt.Sprint(n)) }
