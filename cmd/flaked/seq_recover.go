package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/internal/credentials"
	"github.com/flaked/flaked/seqstore"
)

func seqRecover(open storeOpener) *cli.Command {
	return &cli.Command{
		Name:      "recover",
		Usage:     "let a strict sequence go on after ZooKeeper has lost data",
		UsageText: "flaked seq recover --zk HOST:PORT NAME [flags]",
		ArgsUsage: "NAME",
		Description: `After ZooKeeper has lost data, a strict sequence is frozen: nothing bounds how many values
were issued that ZooKeeper does not know. This command asks all nodes that are connected
or disconnected, and those at --addr, for the highest value that they know to be committed.
It prints them, and the nodes that do not answer. Then it sets the next value, 10 % above
the highest one and at least ten values. --next gives another one.

It must be confirmed: type the words that it asks for on a terminal, or give them with
--confirm. Check two things before. A node that does not answer may have issued higher
values: look at its log, and stop it. And programs may have stored higher values than the
nodes know, if the nodes that issued them have ended: look at the highest one.

Exits with 2 without the words, and then changes nothing.

` + waitText + `

Examples:
  flaked seq recover --zk zk1:2181 invoice
  flaked seq recover invoice --addr ids-3:7609 --dry-run -o json
  flaked seq recover invoice --next 50000 --confirm 'invoice is unused from 50000 on in epoch 2'`,
		Flags: append(append([]cli.Flag{
			&cli.Int64Flag{Name: "next", Usage: "go on at `VALUE`", DefaultText: "10 % above the highest known value", Category: callFlags},
			&cli.StringSliceFlag{Name: "addr", Usage: "also ask the node at `HOST:PORT` or unix:/PATH. Repeatable"},
			waitFlag(), dryRunFlag(), confirmFlag(), outputFlag(),
		}, askFlags()...), zkFlags("")...),
		Action: func(c *cli.Context) error {
			name, err := sequenceArgument(c)
			if err != nil {
				return err
			}
			nodes, err := nodeAsker(c)
			if err != nil {
				return err
			}
			limit, err := waitGiven(c)
			if err != nil {
				return err
			}
			named, err := namedTargets(c.StringSlice("addr"))
			if err != nil {
				return err
			}
			return open.sequences(c, func(ctx context.Context, o seqstore.Operator) error {
				w := changeWaiter{c, o.Now, name, limit}
				r := recoverer{seqSetter{c: c, o: w.waiting(o), name: name, waiter: w}, nodes, named}
				return r.recover(ctx)
			})
		},
	}
}

// recoverer finds out where a strict sequence goes on.
type recoverer struct {
	seqSetter
	nodes *asker // nil: no node is asked
	named []target
}

// knownNode is what a node knows of a sequence.
type knownNode struct {
	Address string `json:"address"`
	Names   string `json:"names"` // of the node's workers
	// Asked is the outcome, as in `flaked status`, and Why explains it.
	Asked string `json:"asked"`
	Why   string `json:"why"`
	// Highest is the highest value that the node knows to be committed, null if it does not say.
	Highest *int64 `json:"highest,string"`
	taken   int64  // positions
}

// recovery is what `flaked seq recover` has found out.
type recovery struct {
	// Record is the highest value by the record in ZooKeeper, null for none.
	Record *int64      `json:"record,string"`
	Nodes  []knownNode `json:"nodes"`
	// Highest is the highest of all these values. Next is the value at which the sequence goes on.
	Highest *int64 `json:"highest,string"`
	Next    int64  `json:"next,string"`
}

func (r recoverer) recover(ctx context.Context) error {
	record, st, err := r.o.Show(ctx, r.name)
	if err != nil {
		return ofSequence(r.name, err)
	}
	switch {
	case record.DeletedAt != 0:
		return exitWith(exitFailure, "%s: the sequence was deleted. `flaked seq create %[1]s` creates it again", r.name)
	case record.Mode != seqstore.Strict || record.IsTemplate():
		return exitWith(exitFailure, "%s is not a strict sequence. `flaked seq set %[1]s --next VALUE --vouch-after-loss` says where it goes on after a loss of data", r.name)
	case record.Epoch == st.Epoch:
		return exitWith(exitFailure, "%s is not frozen. Nothing was changed", r.name)
	}
	found, err := r.ask(ctx, record)
	if err != nil {
		return err
	}
	f := recovery{Record: lastOf(record, record.Next), Nodes: found}
	taken, err := f.decide(r.c, record)
	if err != nil {
		return exitWith(exitFailure, "%w. The highest known value is %s", err, valueText(lastOf(record, taken)))
	}
	if !asJSON(r.c) {
		if err := f.print(r.c.App.Writer); err != nil {
			return err
		}
	}
	r.change = seqstore.Change{Settings: func(*seqstore.Settings) {}, Next: &f.Next, VouchedIn: st.Epoch}
	r.recovery = &f
	return r.set(ctx)
}

// decide sets the highest known value and the next one. It returns the number of positions that the record or a node
// knows to be taken.
func (f *recovery) decide(c *cli.Context, r seqstore.Record) (taken int64, err error) {
	taken = r.Next
	for _, n := range f.Nodes {
		taken = max(taken, n.taken)
	}
	f.Highest = lastOf(r, taken)
	next := taken + margin(taken)
	if c.IsSet("next") {
		next = r.PositionAtOrAbove(c.Int64("next"))
	}
	switch {
	case c.Int64("next") < 0:
		return taken, fmt.Errorf("--next must be 0 or more, not %d", c.Int64("next"))
	case next < taken:
		return taken, fmt.Errorf("--next: values up to a higher one than %d may have been issued. Give a higher one", c.Int64("next"))
	case next >= r.Positions():
		return taken, fmt.Errorf("that is too close to the max, %d. Give another --next, or raise the max: `flaked seq set --max`", r.Max)
	}
	f.Next = r.Value(next)
	return taken, nil
}

// margin returns the positions that are left out beyond those that are known: a tenth of them, and ten at least.
func margin(taken int64) int64 { return max(10, taken/10+min(taken%10, 1)) }

// lastOf returns the last of the first n values, nil for none.
func lastOf(r seqstore.Record, n int64) *int64 {
	if n == 0 {
		return nil
	}
	return new(r.Value(n - 1))
}

// ask asks the nodes of the cluster, and those of --addr.
func (r recoverer) ask(ctx context.Context, record seqstore.Record) ([]knownNode, error) {
	if r.nodes == nil {
		return []knownNode{}, nil
	}
	report, err := clusterview.Read(ctx, r.o.Store, r.c.String("cluster"))
	if err != nil {
		return nil, err
	}
	targets := r.nodes.lineTargets(r.named, report.Workers)
	found := make([]knownNode, len(targets))
	bounded, cancel := context.WithTimeout(ctx, nodesTime)
	defer cancel()
	allAtOnce(len(targets), func(k int) { found[k] = r.askOne(bounded, targets[k], record) })
	return found, ctx.Err()
}

// lineTargets returns the addresses for clients of the nodes that run, after those in named.
func (a *asker) lineTargets(named []target, workers []clusterview.WorkerReport) []target {
	all := append([]target(nil), named...)
	for _, w := range workers {
		if w.State != clusterview.Live && w.State != clusterview.Disconnected {
			continue
		}
		t, seen := target{addr: a.reachLine(w.Address, w.Host)}, clusterview.Seen{Name: w.Name, Address: w.Address}
		known := -1
		for k := range all {
			if t.addr != "" && all[k].addr == t.addr {
				known = k
			}
		}
		if known < 0 {
			all, known = append(all, t), len(all)
		}
		all[known].seen = append(all[known].seen, seen)
	}
	return all
}

// askOne asks one node what it knows of the sequence.
func (r recoverer) askOne(ctx context.Context, t target, record seqstore.Record) knownNode {
	n := knownNode{Address: t.addr, Asked: clusterview.NoAddress}
	var names []string
	for _, s := range t.seen {
		names = append(names, clusterview.Clean(s.Name))
		if t.addr == "" {
			n.Address = clusterview.Clean(s.Address)
		}
	}
	n.Names = strings.Join(names, ", ")
	if t.addr == "" {
		return n
	}
	if n.Asked = clusterview.NoAnswer; r.nodes.access.err != nil {
		n.Why = r.nodes.access.err.Error()
		return n
	}
	lines, err := askAt(ctx, credentials.Client{TLS: r.nodes.access.tls, Token: r.nodes.lineToken(t)}, t.addr, nodesTime, "SEQ "+r.name, func(in *bufio.Reader) ([]string, error) { return readLines(in, 1) })
	var reply *replyError
	var silent *silentError
	switch {
	case err == nil:
		n.Asked, n.Why, n.taken = takenBy(lines[0], record)
		n.Highest = lastOf(record, n.taken)
	case errors.As(err, &reply) && strings.Contains(reply.line, " reason=no-sequence"):
		n.Asked, n.Why = clusterview.Answered, "it does not know the sequence"
	case errors.As(err, &reply) && accessAdvice(reply) != "":
		n.Asked, n.Why = clusterview.AccessDenied, clusterview.Clean(reply.line)
	case errors.As(err, &silent) && !silent.late:
		n.Why = clusterview.Clean(silent.why)
	case errors.As(err, &reply):
		n.Why = clusterview.Clean(reply.line)
	default:
		n.Asked, n.Why = clusterview.TimedOut, fmt.Sprintf("timed out after %s", nodesTime)
	}
	return n
}

// takenBy returns the number of positions that a node knows to be taken, by its reply to SEQ.
func takenBy(line string, r seqstore.Record) (outcome, why string, taken int64) {
	fields := make(map[string]string)
	for field := range strings.FieldsSeq(line) {
		name, value, _ := strings.Cut(field, "=")
		fields[name] = value
	}
	taken, err := strconv.ParseInt(fields["taken"], 10, 64)
	switch {
	case err != nil || taken < 0 || taken > r.Positions():
		return clusterview.AnotherNode, fmt.Sprintf("it answered %.60q", line), 0
	case fields["mode"] != seqstore.Strict.String(), fields["start"] != strconv.FormatInt(r.Start, 10), fields["increment"] != strconv.FormatInt(r.Increment, 10):
		return clusterview.AnotherNode, "it knows another sequence with this name", 0
	}
	return clusterview.Answered, "", taken
}

func valueText(v *int64) string {
	if v == nil {
		return "-"
	}
	return strconv.FormatInt(*v, 10)
}

// print prints what the record and the nodes know.
func (f recovery) print(w io.Writer) error {
	t := textTable{right: map[int]bool{1: true}}
	t.add("KNOWN BY", "HIGHEST VALUE", "NODES", "ANSWER")
	t.add("ZooKeeper", valueText(f.Record), "", "")
	silent := 0
	for _, n := range f.Nodes {
		answer := n.Asked
		if n.Why != "" {
			answer += ": " + n.Why
		}
		if n.Asked != clusterview.Answered {
			silent++
		}
		t.add(n.Address, valueText(n.Highest), n.Names, answer)
	}
	if err := t.print(w, false); err != nil {
		return err
	}
	if silent > 0 {
		if _, err := fmt.Fprintf(w, "%s did not answer, and may have issued higher values.\n", count(int64(silent), "node")); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "The highest known value is %s. The sequence can go on at %d.\n", valueText(f.Highest), f.Next)
	return err
}
