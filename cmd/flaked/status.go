package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/zkstore"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "print the workers of a cluster, and their problems",
		UsageText: "flaked status [--zk HOST:PORT | --addr HOST:PORT ...] [flags]",
		Description: `Reads ZooKeeper, and asks the nodes that it can reach at their admin addresses for
their own state (in less than a second; --no-ask skips that). It changes nothing. A
worker is
  live            its holder is connected to ZooKeeper
  disconnected    its holder is not connected, and may serve until its lease expires
  stopped         its holder stopped cleanly, and may come back until its lease expires
  releasing       it was released, and is free when its lease has expired
  record-missing  ZooKeeper lost its record
  free            any node may acquire it; shown with -o wide if it was ever held
SAYS is the node's own answer: ready, or why not. CLOCK is the offset of its clock from
that of ZooKeeper's leader, for live nodes with a recent report: fast is ahead. Ages
are by this machine's clock, unless the reports show that this clock is wrong.

Problems follow on standard error, one a line, the worst first, each with what to do.
Critical: a node refuses, is down, or will soon refuse. Warning: IDs are served.
Exits with 0 if all is well, and with 4, after printing, if
  - a worker is disconnected or record-missing,
  - a live one refuses to serve, is past its lease, has not reported for more than
    three heartbeats and a second, or reports a problem itself,
  - the node of a live one does not answer at its admin address,
  - the clock of a live one is off by more than 500 ms,
  - registration is frozen,
  - fewer than 5 % of the workers are free.
A line below the table counts the named sequences, and those that are frozen, exhausted
or used to 80 % or more. It does not change the exit code.

WITHOUT ZOOKEEPER. --addr asks the nodes at these addresses (those for clients), and
does not read ZooKeeper. If ZooKeeper cannot be reached, the command asks the nodes at
the addresses that this user last read from it on this machine. They are kept in the
user's cache directory. Their age is printed, and values in parentheses are cached.
HEARTBEAT is the time since ZooKeeper acknowledged the node's last heartbeat. The exit
code is then 0 if all nodes answer, are ready and have no problems, 3 if no node
answers, and 4 otherwise. It is never 0 if ZooKeeper cannot be reached.

With -o json it prints one document {"cluster":{...},"workers":[...],"summary":{...},
"sequences":{...}} of all workers that were ever held, or {"zookeeper":{...},
"nodes":[...],"summary":{...}} if ZooKeeper was not read (source says which). --watch
prints each document on one line. For tables, it redraws in place on a terminal, and
otherwise prints one table after the other. If a table cannot be read again, a terminal
keeps the last one, and says how old it is and why. On a terminal, tables leave out
columns that do not fit.

Examples:
  flaked status --zk zk1:2181,zk2:2181,zk3:2181
  flaked status --cluster eu -o wide --watch 5s
  flaked status --addr ids-1:7609 --addr ids-2:7609
  flaked status -o json | jq '.workers[] | select(.state == "live") | .name'`,
		Flags: append([]cli.Flag{
			wideOutputFlag(),
			&cli.StringSliceFlag{Name: "addr", Usage: "ask the node at `HOST:PORT` or unix:/PATH instead of reading ZooKeeper. Repeatable"},
			&cli.DurationFlag{Name: "watch", Usage: "print again every `INTERVAL` (2s if none is given) until Ctrl-C", EnvVars: env("watch"), DefaultText: "once"},
		}, slices.Concat(askFlags(), zkFlags(localZK))...),
		Action: status,
	}
}

// statusPage is one output of status: the records in ZooKeeper, or what nodes say.
type statusPage interface {
	print(w io.Writer, s style) error
	// verdict returns the error that the command ends with after printing, nil if all
	// is well.
	verdict() error
}

// readPage returns the page to print now.
type readPage func(context.Context) (statusPage, error)

// recordsPage shows what ZooKeeper has recorded.
type recordsPage struct {
	clusterview.Report
	sequencesRead
}

func (p recordsPage) verdict() error {
	return degraded(p.Summary.Problems)
}

func status(c *cli.Context) error {
	every := c.Duration("watch")
	if c.IsSet("watch") && every < 100*time.Millisecond {
		return usageError("--watch must be at least 100ms, not %s", every)
	}
	nodes, err := nodeAsker(c)
	if err != nil {
		return err
	}
	if c.IsSet("addr") {
		read, err := readNamed(c, nodes)
		if err != nil {
			return err
		}
		return showPages(c.Context, c, every, read)
	}
	return withStore(c, func(ctx context.Context, store zkstore.Store) error {
		s := &clusterStatus{
			store: store, nodes: nodes, cache: newSeenCache(),
			connect: c.String("zk"), cluster: c.String("cluster"),
		}
		return showPages(ctx, c, every, s.read)
	})
}

// showPages prints a page, once or every so often.
func showPages(ctx context.Context, c *cli.Context, every time.Duration, read readPage) error {
	if every > 0 {
		return watchStatus(ctx, c, every, read)
	}
	page, err := read(ctx)
	if err != nil {
		return err
	}
	err = show(c, page, func(w io.Writer) error { return page.print(w, styleOf(c, w)) })
	return errors.Join(err, page.verdict())
}

// readNamed returns a readPage that asks the nodes of --addr.
func readNamed(c *cli.Context, nodes *asker) (readPage, error) {
	cluster := ""
	if originOf(c, "cluster") == onCommandLine {
		cluster = c.String("cluster")
	}
	switch {
	case nodes == nil:
		return nil, usageError("--addr asks nodes, and --no-ask asks none. Leave one out")
	case originOf(c, "zk") == onCommandLine:
		return nil, usageError("--addr asks nodes and does not read ZooKeeper. Leave out --zk or --addr")
	}
	targets, err := namedTargets(c.StringSlice("addr"))
	if err != nil {
		return nil, err
	}
	if nodes.access.err != nil {
		return nil, nodes.access.err
	}
	return func(ctx context.Context) (statusPage, error) {
		found := nodes.askTargets(ctx, cluster, targets)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nodesPage{clusterview.AssessNodes(clusterview.Unread{}, clusterview.Addresses{From: clusterview.FromFlag}, found, time.Now())}, nil
	}, nil
}

// clusterStatus reads ZooKeeper. When ZooKeeper cannot be reached it asks nodes at
// the addresses that ZooKeeper had when it was last read.
type clusterStatus struct {
	store            zkstore.Store
	nodes            *asker // nil: nobody is asked
	cache            seenCache
	connect, cluster string
	last             lastSeen  // read by this process, or loaded
	saved            time.Time // when last was written to the cache
	sequences        sequencesReader
}

// saveEvery is the least time between two writes of the nodes' addresses to the cache.
const saveEvery = 30 * time.Second

func (s *clusterStatus) read(ctx context.Context) (statusPage, error) {
	r, err := readStatus(ctx, s.store, s.cluster, s.nodes)
	switch {
	case err == nil:
		s.last = seenIn(s.connect, r, time.Now())
		if time.Since(s.saved) >= saveEvery {
			s.cache.save(s.last)
			s.saved = time.Now()
		}
		return recordsPage{r, s.sequences.read(ctx, s.store)}, nil
	case ctx.Err() != nil || s.nodes == nil || !errors.Is(err, zkstore.ErrUnreachable):
		return nil, err
	}
	if s.last.SavedMs == 0 {
		s.last, _ = s.cache.load(s.connect, s.cluster)
	}
	if len(s.last.Nodes) == 0 {
		return nil, fmt.Errorf("%w. No addresses of nodes are cached. `flaked status --addr HOST:PORT` asks nodes without ZooKeeper", err)
	}
	found := s.nodes.askTargets(ctx, s.cluster, s.nodes.seenTargets(s.last.Nodes))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	now := time.Now()
	return nodesPage{clusterview.AssessNodes(clusterview.Unread{Connect: s.connect, Error: plain(err.Error())}, cachedAddresses(s.last, now), found, now)}, nil
}

// readStatus reads ZooKeeper. It also asks the nodes, unless nodes is nil.
func readStatus(ctx context.Context, store zkstore.Store, name string, nodes *asker) (clusterview.Report, error) {
	r, err := clusterview.Read(ctx, store, name)
	if err != nil {
		return r, err
	}
	if nodes != nil {
		nodes.ask(ctx, r.Workers)
		r.Summary.Asked = true
	}
	r.Judge()
	return r, nil
}

// watchStatus prints pages until the context ends, and then returns nil. If the first page cannot
// be read, it returns the error. Later the next read is a new try: see watched.failed.
func watchStatus(ctx context.Context, c *cli.Context, every time.Duration, read readPage) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	w := watched{c: c, every: every}
	for {
		page, err := read(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			err = w.show(page, time.Now())
		case w.at.IsZero():
			return err
		default:
			err = w.failed(err, time.Now())
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// watched is what --watch has shown last.
type watched struct {
	c     *cli.Context
	every time.Duration
	last  string
	at    time.Time // when last was read
}

// show prints a page: in place on a terminal, else below the page before.
func (w *watched) show(page statusPage, now time.Time) error {
	out := w.c.App.Writer
	first := w.at.IsZero()
	w.at = now
	if asJSON(w.c) {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		return enc.Encode(page)
	}
	var text bytes.Buffer
	if err := page.print(&text, styleOf(w.c, out)); err != nil {
		return err
	}
	rows, columns, terminal := size(out)
	if err := page.verdict(); err != nil {
		fmt.Fprintln(&text, wrapped(err, err.Error(), columns))
	}
	w.last = text.String()
	switch {
	case terminal:
		return drawScreen(out, fmt.Sprintf("%srefreshed %s UTC, every %s\n", w.last, now.UTC().Format(time.TimeOnly), w.every), rows)
	case !first:
		if _, err := fmt.Fprintln(out); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, w.last)
	return err
}

// failed reports that a page could not be read. On a terminal the last page stays, with its age.
// Elsewhere the error is a line on standard error.
func (w *watched) failed(why error, now time.Time) error {
	_, text := explain(context.Background(), why)
	out := w.c.App.Writer
	rows, columns, terminal := size(out)
	if !terminal || asJSON(w.c) {
		_, err := fmt.Fprintf(w.c.App.ErrWriter, "flaked: %s\n", text)
		return err
	}
	var b bytes.Buffer
	b.WriteString(w.last)
	age := now.Sub(w.at).Round(time.Second)
	note := fmt.Sprintf("NOT REFRESHED: the table is %s old, as of %s UTC. %s", age, w.at.UTC().Format(time.TimeOnly), text)
	if err := printLines(&b, []string{note}, columns); err != nil {
		return err
	}
	return drawScreen(out, b.String(), rows)
}

// drawScreen writes text over a terminal of so many rows: line by line, so that nothing
// flickers. If there are too many lines, it leaves some out above the last ones, which have the
// summary. The terminal cuts off long lines.
func drawScreen(out io.Writer, text string, rows int) error {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if over := len(lines) - (rows - 1); rows > 0 && over > 0 {
		below := len(lines) - slices.Index(lines, "") // all but the table
		cut := min(max(1, rows-2-below), len(lines)-over-1)
		lines = slices.Concat(lines[:cut], []string{fmt.Sprintf("... %d more lines", over+1)}, lines[cut+over+1:])
	}
	const (
		home, noWrap, wrap   = "\x1b[H", "\x1b[?7l", "\x1b[?7h"
		clearLine, clearRest = "\x1b[K\n", "\x1b[J"
	)
	_, err := io.WriteString(out, home+noWrap+strings.Join(lines, clearLine)+clearLine+clearRest+wrap)
	return err
}
