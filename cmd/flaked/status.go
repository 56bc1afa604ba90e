package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/flaked/flaked/coordinator"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "print the workers of a cluster, and what is wrong with them",
		UsageText: "flaked status --zk HOST:PORT [flags]",
		Description: `Reads ZooKeeper, asks the nodes that it can reach at their admin addresses for what
they say themselves (for less than a second; --no-ask leaves that out), and changes
nothing. A worker is
  live      its node is connected to ZooKeeper
  detached  its node is not, and may still serve until its lease ends
  stopped   its node stopped cleanly, and may come back until its lease ends
  cooling   it was given back, and is free once its lease has ended
  lost      ZooKeeper lost its record
  free      anybody may take it; shown if it was ever held, with -o wide
SAYS is what the node itself says: ready, or why not. CLOCK is its clock against that
of ZooKeeper's leader, for live nodes that have reported lately: fast is ahead. Ages
are by this machine's clock, unless the reports say that it is wrong.

Exits with 0 when all is well, and with 4, after printing, when
  - a worker is detached or lost,
  - a live one refuses to serve, is past its lease, has not reported for more than
    three heartbeats and a second, or says that something is not well with it,
  - a live one's clock is off by more than 500 ms,
  - registration is frozen,
  - fewer than 5 % of the workers are free.

With -o json it prints one document {"cluster":{...},"workers":[...],"summary":{...}}
of all workers that were ever held; with --watch one a line. --watch redraws in place
on a terminal, and elsewhere prints one after the other.

Examples:
  flaked status --zk zk1:2181,zk2:2181,zk3:2181
  flaked status --cluster eu -o wide --watch 5s
  flaked status -o json | jq '.workers[] | select(.state == "live") | .name'`,
		Flags: append([]cli.Flag{
			outputFlag(),
			&cli.DurationFlag{Name: "watch", Usage: "print again every `INTERVAL`, 2s if none is given, until Ctrl-C", EnvVars: env("watch"), DefaultText: "once"},
		}, slices.Concat(askFlags(), zkFlags(localZK))...),
		Action: status,
	}
}

// degraded is what the printed status is not well for.
func degraded(r statusReport) error {
	if !r.Summary.Degraded {
		return nil
	}
	return exitWith(exitDegraded, "degraded: %s", joinProblems(r.Summary.Problems))
}

func status(c *cli.Context) error {
	format, err := outputFormat(c)
	if err != nil {
		return err
	}
	every := c.Duration("watch")
	if c.IsSet("watch") && every < 100*time.Millisecond {
		return usageError("--watch: every %s is too often; 100ms is the least", every)
	}
	nodes, err := nodeAsker(c)
	if err != nil {
		return err
	}
	return withStore(c, func(ctx context.Context, store coordinator.Store) error {
		read := func() (statusReport, error) { return readStatus(ctx, store, c.String("cluster"), nodes) }
		if every > 0 {
			return watchStatus(ctx, c, format, every, read)
		}
		r, err := read()
		if err != nil {
			return err
		}
		if format == formatJSON {
			err = printJSON(c.App.Writer, r)
		} else {
			err = printStatus(c.App.Writer, r, format == formatWide, colours(c.App.Writer))
		}
		return errors.Join(err, degraded(r))
	})
}

// readStatus reads ZooKeeper, and asks nodes unless there is nobody to do it.
func readStatus(ctx context.Context, store coordinator.Store, name string, nodes *asker) (statusReport, error) {
	cl, err := coordinator.ReadCluster(ctx, store)
	if err != nil {
		return statusReport{}, err
	}
	entries, err := coordinator.ReadSlots(ctx, store, cl)
	if err != nil {
		return statusReport{}, err
	}
	r, suspect := assess(name, cl, entries, time.Now())
	if nodes != nil {
		nodes.ask(ctx, r.Workers)
		r.Summary.Asked = true
	}
	r.judge(suspect)
	return r, nil
}

// watchStatus prints until the context ends, which is how it is meant to end.
// What cannot be read the first time is an error; later on it is shown, and
// tried again.
func watchStatus(ctx context.Context, c *cli.Context, format string, every time.Duration, read func() (statusReport, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for first := true; ; first = false {
		r, err := read()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		}
		if err := redraw(c, format, first, r, err); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// redraw prints one round: in place on a terminal, else one below the other.
func redraw(c *cli.Context, format string, first bool, r statusReport, failed error) error {
	out := c.App.Writer
	switch {
	case failed != nil:
		_, text := explain(context.Background(), failed)
		_, err := fmt.Fprintf(c.App.ErrWriter, "flaked: %s\n", text)
		return err
	case format == formatJSON:
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		return enc.Encode(r)
	}
	var text bytes.Buffer
	if err := printStatus(&text, r, format == formatWide, colours(out)); err != nil {
		return err
	}
	if r.Summary.Degraded {
		fmt.Fprintf(&text, "degraded: %s\n", joinProblems(r.Summary.Problems))
	}
	switch rows, terminal := height(out); {
	case terminal:
		return drawScreen(out, text.String(), rows)
	case !first:
		if _, err := fmt.Fprintln(out); err != nil {
			return err
		}
	}
	_, err := out.Write(text.Bytes())
	return err
}

// drawScreen writes a text over what is on a terminal of so many rows: line by
// line, so that nothing flickers. What has no room is left out above the last
// lines, which say how things are; long lines are cut off by the terminal.
func drawScreen(out io.Writer, text string, rows int) error {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if over := len(lines) - (rows - 1); rows > 0 && over > 0 {
		below := len(lines) - slices.Index(lines, "") // all but the table
		cut := min(max(1, rows-2-below), len(lines)-over-1)
		lines = slices.Concat(lines[:cut], []string{fmt.Sprintf("... %d lines more than there is room for", over+1)}, lines[cut+over+1:])
	}
	const (
		home, noWrap, wrap   = "\x1b[H", "\x1b[?7l", "\x1b[?7h"
		clearLine, clearRest = "\x1b[K\n", "\x1b[J"
	)
	_, err := io.WriteString(out, home+noWrap+strings.Join(lines, clearLine)+clearLine+clearRest+wrap)
	return err
}

// height is how many rows a terminal has, 0 where that cannot be told.
func height(w io.Writer) (rows int, terminal bool) {
	f, ok := w.(*os.File)
	if !ok || !isTerminal(w) {
		return 0, false
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, true
	}
	return int(size.Row), true
}
