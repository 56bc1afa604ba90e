package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/poll"
	"github.com/flaked/flaked/internal/ops/words"
)

func seqRecoverCommand() *cli.Command {
	return &cli.Command{
		Name:      "recover",
		Usage:     "let a strict sequence go on after ZooKeeper has lost data",
		ArgsUsage: "NAME",
		Description: `After ZooKeeper has lost data, a strict sequence is frozen: nothing bounds how many values
were issued that ZooKeeper does not know. This command asks for the highest value that is
known to be committed: the nodes at --addr, all that have a record in ZooKeeper, and those
that these nodes have met. It prints the answers, the nodes that do not answer, and the
workers whose records are missing. Then it sets the next value. It leaves out a tenth as
many values as were issued, at least ten. --next gives another value.

It must be confirmed. Without --confirm, it prints the words that it needs, and changes
nothing. The words name whom nobody could ask. Do three things before. Stop each node that
does not answer. ZooKeeper may have lost the record of a node that runs, and no other node
may have met it: add its --addr. And nodes that do not answer, or have ended, may have issued
higher values: look at the highest value that programs have stored.

Examples:
  flaked seq recover --zk zk1:2181 invoice
  flaked seq recover invoice --addr ids-3:7609
  flaked seq recover invoice --next 5000 --confirm 'invoice is unused from 5000 on in incarnation 2'`,
		Flags: slices.Concat(inCategory(categoryCommandLineOnly,
			&cli.Int64Flag{Name: "next", Usage: "go on at `VALUE`", DefaultText: "leaves out a tenth as many values " +
				"as were issued"},
			&cli.StringSliceFlag{Name: "addr", Usage: "also ask the node at `HOST:PORT` or unix:/PATH. Repeatable"},
			confirmFlag(),
		), surveyAccessFlags(), zkFlags("")),
		Action: onSequence(seqRecover),
	}
}

func seqRecover(c *cli.Context, o operator.Commands, name string) error {
	if next := c.Int64("next"); next < 0 {
		return usageError("--next must be 0 or more, not %d", next)
	}
	nodes, err := readAsker(c)
	if err != nil {
		return err
	}
	addrs, err := readAddrs(c)
	if err != nil {
		return err
	}
	return recovery{c: c, o: o, name: name, nodes: nodes, addrs: addrs}.run()
}

// recovery is one run of `flaked seq recover`.
type recovery struct {
	c     *cli.Context
	o     operator.Commands
	name  string
	nodes *poll.Asker
	addrs []string // the addresses of --addr
}

// run asks the nodes, and makes the sequence go on above all that they know.
func (r recovery) run() error {
	found, state, err := r.o.Find(r.c.Context, r.name)
	before := found.Record
	switch {
	case err != nil:
		return err
	case before.Kind() == record.Tombstone:
		return deletedError(r.name)
	case before.Mode.Holds() || before.Kind() == record.Template:
		return failure("%s is not a strict sequence. `flaked seq set %[1]s --next VALUE "+
			"--vouch-after-loss` says where it goes on after a loss of data", r.name)
	case before.Incarnation == state.Incarnation:
		return failure("%s is not frozen. Nothing was changed", r.name)
	}
	survey, err := poll.AskCluster(r.c.Context, r.o.Store, r.nodes, r.addrs, "SEQ "+r.name)
	if err != nil {
		return err
	}
	taken := before.Next
	takenAt := make([]int64, len(survey.Replies)) // by the reply of each node
	for k := range survey.Replies {
		takenAt[k] = r.noteTaken(&survey.Replies[k], before)
		taken = max(taken, takenAt[k])
	}
	next, err := goesOnAt(r.c, before, taken)
	if err != nil {
		return failure("%w", err)
	}
	if err := printKnown(r.c.App.Writer, before, survey, takenAt); err != nil {
		return err
	}
	fmt.Fprintf(r.c.App.Writer, "The highest known value is %s. The sequence can go on at %d.\n",
		lastValueText(before, taken), next)
	return changeSequence(r.c, r.o, found, state, operator.Change{Next: &next, VouchedIn: state.Incarnation},
		survey.UnheardText())
}

// goesOnAt returns the value at which the sequence goes on. taken is the number of positions that the record or a node
// knows to be taken.
func goesOnAt(c *cli.Context, r record.Record, taken int64) (int64, error) {
	next := taken + margin(taken)
	if c.IsSet("next") {
		next = r.PositionAtOrAbove(c.Int64("next"))
	}
	switch {
	case next < taken:
		return 0, fmt.Errorf("--next %d: values up to %s may have been issued. Give a higher one", c.Int64("next"),
			lastValueText(r, taken))
	case next >= r.Positions():
		return 0, fmt.Errorf("that is too close to the max, %d. Give another --next, or raise the max: `flaked seq "+
			"set --max`. The highest known value is %s", r.Max, lastValueText(r, taken))
	}
	return r.Value(next), nil
}

// margin returns the positions that are left out beyond those that are known: a tenth of them, and ten at least.
func margin(taken int64) int64 { return max(10, taken/10+min(taken%10, 1)) }

// lastValueText returns the last of the first n values, - for none.
func lastValueText(r record.Record, n int64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatInt(r.Value(n-1), 10)
}

// noteTaken returns the number of positions that a node knows to be taken, by its reply to SEQ, 0 if it does not say.
// It marks a reply about another sequence as not answered, so that the words to confirm name that node.
func (r recovery) noteTaken(reply *poll.Reply, inZooKeeper record.Record) (taken int64) {
	if reply.Outcome != health.Answered {
		return 0
	}
	err := reply.Refused()
	fields := dialog.Fields(reply.Line)
	taken, parseErr := strconv.ParseInt(fields["taken"], 10, 64)
	switch {
	case err != nil && strings.Contains(err.Error(), "reason="+string(record.NoSequence)):
		reply.Why = "it does not know the sequence"
		return 0
	case err != nil:
		reply.Outcome, reply.Why = r.nodes.WhySilent(err)
	case fields["mode"] != inZooKeeper.Mode.String() || fields["start"] != strconv.FormatInt(inZooKeeper.Start, 10) ||
		fields["increment"] != strconv.FormatInt(inZooKeeper.Increment, 10):
		reply.Outcome, reply.Why = health.AnotherNode, "it knows another sequence with this name"
	case parseErr != nil || taken < 0 || taken > inZooKeeper.Positions():
		reply.Outcome, reply.Why = health.AnotherNode, "its reply is not a node's"
	default:
		return taken
	}
	return 0
}

// printKnown prints what ZooKeeper and each node know. takenAt has the number of positions that each of the replies
// knows to be taken.
func printKnown(w io.Writer, r record.Record, survey *poll.Survey, takenAt []int64) error {
	var t textTable
	t.add("KNOWN BY", "HIGHEST VALUE", "NODE", "ANSWER")
	t.add("ZooKeeper", lastValueText(r, r.Next), "", "")
	add := func(address string, taken int64, name string, outcome health.Outcome, why string) {
		answer := string(outcome)
		if why != "" {
			answer += ": " + why
		}
		t.add(words.Short(address), lastValueText(r, taken), name, answer)
	}
	for k, reply := range survey.Replies {
		if reply.Outcome == health.Answered {
			add(reply.Address, takenAt[k], reply.Name, reply.Outcome, reply.Why)
		}
	}
	silent := survey.Silent()
	for _, h := range silent[:min(len(silent), mostSilent)] {
		asked, why := survey.OutcomeOf(h)
		add(h.Address, 0, h.Name, asked, why)
	}
	if err := t.print(w); err != nil {
		return err
	}
	text := ""
	if n := len(silent) + survey.LeftOut; n > 0 {
		text = words.Count(int64(n), "node") + " did not answer, and may have issued higher values.\n"
	}
	if missing := survey.MissingWorkers(); len(missing) > 0 {
		text += "ZooKeeper has lost the records of " + words.WorkerNumbers(missing) + ". Their holders, if there are any, " +
			"could not be asked, and may have issued higher values. Add the --addr of each that runs.\n"
	}
	_, err := fmt.Fprint(w, text+"ZooKeeper may have lost other nodes without a trace. If one runs that is not "+
		"listed here, add its --addr.\n")
	return err
}

// The table shows at most mostSilent nodes that did not answer. A layout of 10 bits has so many workers.
const mostSilent = 1024
