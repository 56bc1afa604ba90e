package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/ops/view"
)

func seqRecover() *cli.Command {
	return &cli.Command{
		Name:      "recover",
		Usage:     "let a strict sequence go on after ZooKeeper has lost data",
		ArgsUsage: "NAME",
		Description: `After ZooKeeper has lost data, a strict sequence is frozen: nothing bounds how many values
were issued that ZooKeeper does not know. This command asks for the highest value that is
known to be committed: the nodes at --addr, all that have a record in ZooKeeper, and those
that these nodes have met. It prints the answers, the nodes that do not answer, and the
workers whose records are missing. Then it sets the next value, 10 % above the highest one
and at least ten values. --next gives another one.

It must be confirmed. Without --confirm, it prints the words that it needs, and changes
nothing. The words name whom nobody could ask. Check three things before. A node that does
not answer may have issued higher values: look at its log, and stop it. ZooKeeper may have
lost the record of a node that runs, and no other node may have met it: add its --addr.
And programs may have stored higher values than the nodes know, if the nodes that issued
them have ended: look at the highest one.

Examples:
  flaked seq recover --zk zk1:2181 invoice
  flaked seq recover invoice --addr ids-3:7609
  flaked seq recover invoice --next 5000 --confirm 'invoice is unused from 5000 on in incarnation 2'`,
		Flags: slices.Concat(in(callFlags,
			&cli.Int64Flag{Name: "next", Usage: "go on at `VALUE`", DefaultText: "10 % above the highest known value"},
			&cli.StringSliceFlag{Name: "addr", Usage: "also ask the node at `HOST:PORT` or unix:/PATH. Repeatable"},
			confirmFlag(),
		), askFlags(), zkFlags("")),
		Action: ofOne(recoverSequence),
	}
}

func recoverSequence(c *cli.Context, o seq.Operator, name string) error {
	nodes, err := nodeAsker(c)
	if err != nil {
		return err
	}
	named, err := namedAddrs(c)
	if err != nil {
		return err
	}
	return recoverer{c, o, name, nodes, named}.recover()
}

// recoverer finds out where a strict sequence goes on.
type recoverer struct {
	c     *cli.Context
	o     seq.Operator
	name  string
	nodes *asker
	named []string
}

// knownNode is what a node knows of a sequence.
type knownNode struct {
	address, name string // name is the display name, "" if ZooKeeper does not have the node
	// asked is the outcome, as in `flaked status`, and why explains it.
	asked, why string
	taken      int64 // the number of positions that the node knows to be taken, 0 if it does not say
	named      bool  // by --addr
	ended      bool  // by its record it has stopped: nobody expects an answer
	worker     int   // that it holds, -1 if it does not say
	met        []coordinator.Peer
}

// silent reports whether a node may have issued values that it does not tell.
func (n knownNode) silent() bool { return n.asked != view.Answered && !n.ended }

func (r recoverer) recover() error {
	found, st, err := r.o.Find(r.c.Context, r.name)
	record := found.Record
	switch {
	case err != nil:
		return err
	case record.Kind() == seq.Tombstone:
		return failure("%s: the sequence was deleted. `flaked seq create %[1]s` creates it again", r.name)
	case record.Mode.Holds() || record.Kind() == seq.Template:
		return failure("%s is not a strict sequence. `flaked seq set %[1]s --next VALUE "+
			"--vouch-after-loss` says where it goes on after a loss of data", r.name)
	case record.Incarnation == st.Incarnation:
		return failure("%s is not frozen. Nothing was changed", r.name)
	}
	nodes, missing, err := r.ask(record)
	if err != nil {
		return err
	}
	taken := record.Next
	for _, n := range nodes {
		taken = max(taken, n.taken)
	}
	next, err := goesOnAt(r.c, record, taken)
	if err != nil {
		return failure("%w. The highest known value is %s", err, lastOf(record, taken))
	}
	if err := printKnown(r.c.App.Writer, record, nodes, missing); err != nil {
		return err
	}
	fmt.Fprintf(r.c.App.Writer, "The highest known value is %s. The sequence can go on at %d.\n",
		lastOf(record, taken), next)
	return changeSequence(r.c, r.o, found, st, seq.Change{Next: &next, VouchedIn: st.Incarnation},
		unasked(nodes, missing))
}

// goesOnAt returns the value at which the sequence goes on. taken is the number of positions that the record or a node
// knows to be taken.
func goesOnAt(c *cli.Context, r seq.Record, taken int64) (int64, error) {
	next := taken + margin(taken)
	if c.IsSet("next") {
		next = r.PositionAtOrAbove(c.Int64("next"))
	}
	switch {
	case c.Int64("next") < 0:
		return 0, fmt.Errorf("--next must be 0 or more, not %d", c.Int64("next"))
	case next < taken:
		return 0, fmt.Errorf("--next: values up to a higher one than %d may have been issued. Give a higher one",
			c.Int64("next"))
	case next >= r.Positions():
		return 0, fmt.Errorf("that is too close to the max, %d. Give another --next, or raise the max: `flaked seq "+
			"set --max`",
			r.Max)
	}
	return r.Value(next), nil
}

// margin returns the positions that are left out beyond those that are known: a tenth of them, and ten at least.
func margin(taken int64) int64 { return max(10, taken/10+min(taken%10, 1)) }

// lastOf returns the last of the first n values, - for none.
func lastOf(r seq.Record, n int64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatInt(r.Value(n-1), 10)
}

// ask asks the nodes of --addr, those with a record, and those that any of these have met. missing are the workers
// whose records ZooKeeper has lost, without those of nodes that answered.
func (r recoverer) ask(record seq.Record) (found []knownNode, missing []int, err error) {
	report, err := view.Read(r.c.Context, r.o.Store, r.c.String("cluster"))
	if err != nil {
		return nil, nil, err
	}
	for _, addr := range r.named {
		found = append(found, knownNode{address: addr, named: true})
	}
	for _, w := range report.Workers {
		if w.State == view.RecordMissing {
			missing = append(missing, w.Worker)
		}
		ended := w.State != view.Live && w.State != view.Disconnected
		if w.Address != "" || !ended {
			found = r.add(found, w.Address, w.Host, w.Name, ended && w.State != view.RecordMissing)
		}
	}
	bounded, cancel := context.WithTimeout(r.c.Context, 3*nodesTime)
	defer cancel()
	for asked := 0; asked < len(found); {
		some := found[asked:]
		asked = len(found)
		allAtOnce(len(some), func(k int) { r.askOne(bounded, &some[k], record) })
		for _, n := range some {
			missing = slices.DeleteFunc(missing, func(w int) bool { return w == n.worker })
			for _, p := range n.met {
				found = r.add(found, p.Address, p.Host, p.Name, false)
			}
		}
	}
	return found, missing, r.c.Context.Err()
}

// add adds a node, unless its address is there.
func (r recoverer) add(found []knownNode, addresses, host, name string, ended bool) []knownNode {
	n := knownNode{address: r.nodes.reachLine(addresses, host), name: view.Clean(name), ended: ended}
	if n.address == "" {
		n.address, n.asked = view.Clean(addresses), view.NoAddress
	}
	for k := range found {
		if found[k].address == n.address {
			found[k].name, found[k].ended = cmp.Or(found[k].name, n.name), found[k].ended && ended
			return found
		}
	}
	return append(found, n)
}

func (r recoverer) askOne(ctx context.Context, n *knownNode, record seq.Record) {
	n.worker = -1
	if n.asked == view.NoAddress {
		return
	}
	var line string
	line, n.asked, n.why = r.nodes.overLine(ctx, n.address, n.named, "SEQ "+r.name)
	switch {
	case n.asked == view.Answered:
		n.asked, n.why, n.taken = takenBy(line, record)
	case strings.Contains(n.why, "reason="+string(seq.NoSequence)):
		n.asked, n.why = view.Answered, "it does not know the sequence"
	}
	if n.asked != view.Answered {
		return
	}
	if line, asked, _ := r.nodes.overLine(ctx, n.address, n.named, "STATUS"); asked == view.Answered {
		if doc, ok := parseStatus(line); ok {
			n.met = doc.Peers
			if doc.Node.Worker != nil {
				n.worker = *doc.Node.Worker
			}
		}
	}
}

// unasked names whom nobody could ask, for the words that confirm the command. It is "" if all have answered.
func unasked(nodes []knownNode, missing []int) string {
	var all []string
	for _, n := range nodes {
		if n.silent() {
			all = append(all, strings.TrimSpace(n.name+" "+n.address))
		}
	}
	if len(missing) > 0 {
		all = append(all, "the holders of the missing "+workersText(missing))
	}
	return strings.Join(all, ", ")
}

// workersText names workers, in ascending order: worker 3, or workers 1-2, 7.
func workersText(workers []int) string {
	var spans []string
	for k := 0; k < len(workers); {
		first := k
		for k++; k < len(workers) && workers[k] == workers[k-1]+1; k++ {
		}
		span := strconv.Itoa(workers[first])
		if last := workers[k-1]; last != workers[first] {
			span += "-" + strconv.Itoa(last)
		}
		spans = append(spans, span)
	}
	word := "worker "
	if len(workers) > 1 {
		word = "workers "
	}
	return word + strings.Join(spans, ", ")
}

// takenBy returns the number of positions that a node knows to be taken, by its reply to SEQ.
func takenBy(line string, r seq.Record) (outcome, why string, taken int64) {
	fields := make(map[string]string)
	for field := range strings.FieldsSeq(line) {
		name, value, _ := strings.Cut(field, "=")
		fields[name] = value
	}
	taken, err := strconv.ParseInt(fields["taken"], 10, 64)
	switch {
	case err != nil || taken < 0 || taken > r.Positions():
		return view.AnotherNode, fmt.Sprintf("it answered %.60q", line), 0
	case fields["mode"] != r.Mode.String(), fields["start"] != fmt.Sprint(r.Start),
		fields["increment"] != fmt.Sprint(r.Increment):
		return view.AnotherNode, "it knows another sequence with this name", 0
	}
	return view.Answered, "", taken
}

func printKnown(w io.Writer, record seq.Record, nodes []knownNode, missing []int) error {
	var t textTable
	t.add("KNOWN BY", "HIGHEST VALUE", "NODE", "ANSWER")
	t.add("ZooKeeper", lastOf(record, record.Next), "", "")
	silent := 0
	for _, n := range nodes {
		answer := n.asked
		if n.why != "" {
			answer += ": " + n.why
		}
		if n.silent() {
			silent++
		}
		t.add(n.address, lastOf(record, n.taken), n.name, answer)
	}
	if err := t.print(w); err != nil {
		return err
	}
	text := ""
	if silent > 0 {
		text = view.Plural(int64(silent), "node") + " did not answer, and may have issued higher values.\n"
	}
	if len(missing) > 0 {
		text += "ZooKeeper has lost the records of " + workersText(missing) + ". Their holders, if there are any, " +
			"could not be asked, and may have issued higher values. Add the --addr of each that runs.\n"
	}
	_, err := fmt.Fprint(w, text+"ZooKeeper may have lost other nodes without a trace. If one runs that is not "+
		"listed here, add its --addr.\n")
	return err
}
