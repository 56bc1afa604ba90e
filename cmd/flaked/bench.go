package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/internal/load"
	"github.com/flaked/flaked/internal/ops/poll"
	"github.com/flaked/flaked/internal/ops/words"
)

func benchCommand() *cli.Command {
	return &cli.Command{
		Name:  "bench",
		Usage: "measure a node under load, and check its IDs",
		Description: `Requests IDs from a node over many connections. Prints how many IDs it got, how fast
the node answered, and the errors. Checks that no ID is a duplicate, and that IDs
increase on each connection. The IDs are real: the node never issues them again.

Without --rate, each connection sends its next requests when the node has answered the
previous ones: the highest throughput. With --rate, requests are due at fixed times, and
their latency counts from then: how long clients wait at this load. Ctrl-C ends it early.

Exits with 0 if all is well, 4 if the node did not keep up with --rate, 1 if IDs were
wrong or requests failed or were not answered, and 3 if no node answers.

Examples:
  flaked bench                                      50 connections, one request at a time
  flaked bench --conns 8 --batch 100                eight programs that fetch 100 at a time
  flaked bench --rate 20000 --duration 60s          a steady load: what will p99 be?
  flaked bench --addr unix:/run/flaked.sock -o json | jq .latency_us.p99`,
		Flags:  benchFlags(),
		Action: bench,
	}
}

func benchFlags() []cli.Flag {
	return append([]cli.Flag{
		addrFlag(), nodeClusterFlag(),
		&cli.IntFlag{Name: "conns", Usage: "number of connections", Value: 50},
		&cli.IntFlag{Name: "pipeline", Usage: "requests that a connection sends before it waits for the replies. " +
			"With --rate: at most, if that many are due", Value: 1},
		&cli.IntFlag{Name: "batch", Usage: "IDs per request: GET `N`", Value: 1},
		&cli.Float64Flag{Name: "rate", Usage: "requests per second over all connections",
			DefaultText: "as many as the node answers"},
		&cli.DurationFlag{Name: "duration", Usage: "how long to measure", Value: 10 * time.Second},
		&cli.DurationFlag{Name: "warmup", Usage: "how long to load the node before measuring", Value: time.Second},
		&cli.DurationFlag{Name: "timeout", Usage: "how long to wait for a connection or a reply",
			Value: 5 * time.Second},
		outputFlag(),
	}, clientAccessFlags()...)
}

func bench(c *cli.Context) error {
	cfg, err := readBench(c)
	if err != nil {
		return err
	}
	report, err := load.Run(c.Context, cfg)
	if err != nil {
		return benchFailed(c, cfg, err)
	}
	report.Addr = c.String("addr")
	err = printDoc(c, report, func(w io.Writer) error { return printBench(w, report) })
	return errors.Join(err, benchVerdict(report))
}

func readBench(c *cli.Context) (load.Config, error) {
	addr := c.String("addr")
	if err := checkAddrFlag(addr); err != nil {
		return load.Config{}, err
	}
	cfg := load.Config{
		Conns: c.Int("conns"), Pipeline: c.Int("pipeline"), Batch: c.Int("batch"), Rate: c.Float64("rate"),
		Warmup: c.Duration("warmup"), Duration: c.Duration("duration"), Timeout: c.Duration("timeout"),
	}
	for _, f := range []struct {
		name   string
		ok     bool
		wanted string
	}{
		{"conns", within(cfg.Conns, load.MaxConns), fmt.Sprintf("1 to %d", load.MaxConns)},
		{"pipeline", within(cfg.Pipeline, load.MaxPipeline), fmt.Sprintf("1 to %d", load.MaxPipeline)},
		{"batch", within(cfg.Batch, load.MaxBatch), fmt.Sprintf("1 to %d", load.MaxBatch)},
		{"rate", !c.IsSet("rate") || cfg.Rate > 0 && cfg.Rate <= 1e9, "more than 0 and at most 1000000000"},
		{"duration", cfg.Duration > 0, "more than 0s"},
		{"warmup", cfg.Warmup >= 0, "at least 0s"},
		{"timeout", cfg.Timeout > 0, "more than 0s"},
	} {
		if !f.ok {
			return cfg, usageError("--%s must be %s, not %v", f.name, f.wanted, c.Value(f.name))
		}
	}
	creds, err := readClientAccess(c)
	creds.Cluster = dialog.Want(c.String("cluster")) // "" means that of the first connection
	err = cmp.Or(err, checkClusterFlag(c.String("cluster")))
	cfg.Dial = func(ctx context.Context) (net.Conn, error) { return creds.Dial(ctx, addr) }
	return cfg, err
}

// benchFailed returns the error of a run that has no result.
func benchFailed(c *cli.Context, cfg load.Config, err error) error {
	reply, refused := errors.AsType[*ids.ReplyError](err)
	switch {
	case refused:
		return failure("%w%s", reply, replyAdvice(reply))
	case errors.Is(err, syscall.EMFILE):
		return failure("%w. Raise the limit of open files (ulimit -n), or give fewer --conns", err)
	case errors.Is(err, load.ErrConnect):
		return poll.NewSilentError(c.String("addr"), cfg.Timeout, err)
	case errors.Is(err, context.Canceled):
		return err
	}
	return usageError("%w", err)
}

func printBench(w io.Writer, r *load.Report) error {
	loop := "closed loop"
	if r.Rate > 0 {
		loop = rateText(r.Rate) + " requests a second"
	}
	request := "GET"
	if r.Batch > 1 {
		request = fmt.Sprintf("GET %d", r.Batch)
	}
	fmt.Fprintf(w, "%s of %s: %s, connections %s, pipeline %d\n\n", request, r.Addr, loop,
		words.Grouped(int64(r.Conns)), r.Pipeline)
	measured := fmt.Sprintf("%.1f s", r.Seconds)
	if r.Warmup > 0 {
		measured += fmt.Sprintf(" after %s", time.Duration(r.Warmup*float64(time.Second)))
	}
	if r.Interrupted {
		measured += ", interrupted"
	}
	var t textTable
	t.add("MEASURED", measured)
	t.add("REQUESTS", fmt.Sprintf("%s (%s a second)", words.Grouped(r.Requests),
		words.Grouped(int64(r.RequestsPerSecond))))
	if r.Batch > 1 {
		t.add("IDS", fmt.Sprintf("%s (%s a second)", words.Grouped(r.IDs), words.Grouped(int64(r.IDsPerSecond))))
	}
	t.add("LATENCY", latencyText(r.Latency))
	errs := []string{}
	for _, code := range slices.Sorted(maps.Keys(r.Errors.ByCode)) {
		errs = append(errs, fmt.Sprintf("%s %s", words.Clean(code), words.Grouped(r.Errors.ByCode[code])))
	}
	t.add("ERRORS", cmp.Or(strings.Join(errs, ", "), "none"))
	if r.Unanswered > 0 {
		t.add("UNANSWERED", words.Grouped(r.Unanswered)+" requests were due, and not answered in time")
	}
	t.add("CHECK", checkText(r.Check))
	if err := t.print(w); err != nil {
		return err
	}
	for _, e := range r.Check.Examples {
		if _, err := fmt.Fprintf(w, "wrong: %s\n", e); err != nil {
			return err
		}
	}
	return nil
}

func latencyText(l load.LatencyReport) string {
	if l.Count == 0 {
		return "-"
	}
	return fmt.Sprintf("p50 %s, p90 %s, p99 %s, p99.9 %s, max %s", microsText(l.P50), microsText(l.P90),
		microsText(l.P99), microsText(l.P999), microsText(l.Max))
}

// checkText says what the check of the IDs has found.
func checkText(k load.CheckResult) string {
	text := fmt.Sprintf("%s IDs, no duplicates, increasing on each connection", words.Grouped(k.IDs))
	if k.Violations() > 0 {
		text = fmt.Sprintf("%s IDs: %s DUPLICATES, %s OUT OF ORDER on their connection", words.Grouped(k.IDs),
			words.Grouped(k.Duplicates), words.Grouped(k.Backwards))
	}
	if k.Unchecked > 0 {
		text += fmt.Sprintf(", %s too old to check for duplicates", words.Grouped(k.Unchecked))
	}
	return text
}

// microsText formats a latency in microseconds with three significant digits and a unit.
func microsText(us float64) string {
	switch { // three digits of 999.5 would be 1e+03
	case us < 999.5:
		return fmt.Sprintf("%.3gus", us)
	case us < 999.5e3:
		return fmt.Sprintf("%.3gms", us/1e3)
	}
	return fmt.Sprintf("%.3gs", us/1e6)
}

// benchVerdict returns the error that sets the exit code, nil for exitOK.
func benchVerdict(r *load.Report) error {
	var wrong []string
	if k := r.Check; k.Violations() > 0 {
		wrong = append(wrong, fmt.Sprintf("%s duplicate IDs, %s out of order", words.Grouped(k.Duplicates),
			words.Grouped(k.Backwards)))
	}
	if r.Unanswered > 0 && r.Rate == 0 {
		wrong = append(wrong, fmt.Sprintf("%s requests were not answered", words.Grouped(r.Unanswered)))
	}
	if counts := r.Errors.ByCode; r.Errors.Total > 0 { // the last, as its advice ends the sentence
		codes := slices.Sorted(maps.Keys(counts))
		most := slices.MaxFunc(codes, func(a, b string) int { return cmp.Compare(counts[a], counts[b]) })
		text := words.Clean(most)
		if most == string(ids.WRONGNODE) {
			text += ": " + words.Clean(r.Errors.Refused)
		}
		wrong = append(wrong, fmt.Sprintf("%s errors, most of them %s%s", words.Grouped(r.Errors.Total), text,
			codeAdvice(&ids.ReplyError{Code: ids.Code(most)})))
	}
	if len(wrong) > 0 {
		return failure("%s", strings.Join(wrong, ", "))
	}
	if r.Unanswered > 0 {
		return exitError(exitDegraded, "the node did not keep up with %s requests a second: %s were not answered in "+
			"time", rateText(r.Rate), words.Grouped(r.Unanswered))
	}
	return nil
}
