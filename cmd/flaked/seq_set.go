package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/ops/view"
)

func seqSet() *cli.Command {
	return &cli.Command{
		Name:      "set",
		Usage:     "change a named sequence",
		ArgsUsage: "NAME",
		Description: `Changes what is given, nothing else, and prints it before and after. Connected nodes
follow at their next heartbeat. The max and the next value can only become higher.

--next skips all values below VALUE for good. It must be confirmed. Without --confirm, the
command prints the words that it needs. A scattered sequence needs --next-position instead.
Each node that holds a worker must be connected and follow. If one is not, the words name it:
should ZooKeeper be restored to a copy from before, that node may issue values that others had.
Of a template, --next is the first value of all sequences that it creates from then on. Of a
family, all sections change together.

After ZooKeeper has lost data, a sequence skips all values that may have been issued, or is
frozen. --next VALUE --vouch-after-loss ends both. Use it only if you know that no value from
VALUE on was issued: otherwise values are issued twice. Choose a VALUE well above the highest
one that programs have seen.

Examples:
  flaked seq set --zk zk1:2181 order --ceiling 50000 --block 1024
  flaked seq set order --next 5000 --confirm 'skip values of order below 5000'
  flaked seq set 'order:*' --max-names 20000
  flaked seq set order --next 5000 --vouch-after-loss \
    --confirm 'order is unused from 5000 on in incarnation 2'`,
		Flags: slices.Concat(inCategory(callFlags,
			&cli.Int64Flag{Name: "next", Usage: "skip all values below `VALUE`", DefaultText: unchanged},
			&cli.Int64Flag{Name: "next-position", Usage: "skip all positions below `POSITION`", DefaultText: unchanged},
			&cli.BoolFlag{Name: "vouch-after-loss", DisableDefaultText: true,
				Usage: "with --next or --next-position: no value from there on was issued, although ZooKeeper has " +
					"lost data or a clock was wrong"},
			maxFlag(unchanged, ""), maxNamesFlag(unchanged), confirmFlag(),
		), settingFlags(false), zkFlags("")),
		Action: ofOne(setSequence),
	}
}

func setSequence(c *cli.Context, o operator.Sequences, name string) error {
	change, err := changeGiven(c)
	if err != nil {
		return err
	}
	r, st, err := o.Find(c.Context, name)
	if err != nil {
		return err
	}
	if c.Bool("vouch-after-loss") {
		if r.Incarnation == st.Incarnation {
			return failure("%s: --vouch-after-loss: the sequence is not affected by a loss of data, so "+
				"there is nothing to vouch for. Leave the flag out", name)
		}
		change.VouchedIn = st.Incarnation
	}
	return changeSequence(c, o, r, st, change, "")
}

// changeGiven returns the change that the command line describes.
func changeGiven(c *cli.Context) (change operator.Change, err error) {
	change.Settings = func(s *record.Settings) { changeSettings(c, s) }
	changing := []string{"next", "next-position", "max", "max-names", "block", "hold", "ceiling"}
	switch {
	case c.IsSet("next") && c.IsSet("next-position"):
		return change, usageError("--next and --next-position are both given. Give one of them")
	case c.Bool("vouch-after-loss") && !c.IsSet("next") && !c.IsSet("next-position"):
		return change, usageError("--vouch-after-loss needs --next VALUE or --next-position POSITION")
	case !slices.ContainsFunc(changing, c.IsSet):
		return change, usageError("nothing to change. Give at least one flag, such as --ceiling")
	case c.Int64("next") < 0:
		return change, usageError("--next must be 0 or more, not %d", c.Int64("next"))
	}
	if c.IsSet("max") {
		top, err := parseMax(c.String("max"))
		if err != nil {
			return change, err
		}
		change.Max = &top
	}
	for flag, to := range map[string]**int64{
		"max-names": &change.MaxNames, "next": &change.Next, "next-position": &change.NextPosition,
	} {
		if c.IsSet(flag) {
			*to = new(c.Int64(flag))
		}
	}
	return change, nil
}

// changeSequence changes a sequence that was read, and prints what it has changed.
// unasked names whom nobody could ask for values that were issued, "" for nobody.
func changeSequence(
	c *cli.Context, o operator.Sequences, r record.Named, st record.State, change operator.Change, unasked string,
) error {
	name := r.Name
	if r.Kind() == record.Tombstone {
		return failure("%s: the sequence was deleted. `flaked seq create %[1]s` creates it again", name)
	}
	if err := checkUnused(c, r.Mode); err != nil {
		return err
	}
	after, err := change.ApplyTo(r, st)
	if err != nil {
		return err
	}
	t := changedRows(r, after, st, o.Now())
	moved := change.Next != nil || change.NextPosition != nil
	if len(t) == 1 && change.VouchedIn == 0 {
		if moved { // the command that has changed it was perhaps ended while it waited
			if err := o.AllHave(c.Context, r, st); err != nil {
				return err
			}
		}
		return say(c, "sequence %s has these settings already. Nothing was changed.\n", name)
	}
	var absent []coordinator.Entry
	if operator.Far(r, after) {
		if absent, err = allowAbsent(c, &o); err != nil {
			return err
		}
	}
	if err := confirmChange(c, r, after, st, change, absent, unasked); err != nil {
		return err
	}
	if _, err := o.Set(c.Context, name, change); err != nil {
		return err
	}
	text := fmt.Sprintf("changed sequence %s. Connected nodes follow at their next heartbeat.", name)
	state := view.RecordedReport(after, st, o.Now()).State
	if moved && (state == view.SeqAfterLoss || state == view.SeqFrozen) {
		text += " The sequence does not go on at the next value, because ZooKeeper has lost data and nobody vouched " +
			"with --vouch-after-loss. See `flaked seq show " + name + "`."
	}
	if err := say(c, "%s\n", text); err != nil || len(t) == 1 {
		return err
	}
	return t.print(c.App.Writer)
}

// changedRows returns a header, and what differs between a sequence before and after a change.
func changedRows(before, after record.Named, st record.State, now int64) (t textTable) {
	at := time.UnixMilli(now)
	was := seqRows(view.RecordedReport(before, st, now), at)
	is := seqRows(view.RecordedReport(after, st, now), at)
	t.add("", "BEFORE", "AFTER")
	for i := range was {
		before, _, _ := strings.Cut(was[i][1], ": ZooKeeper") // without what the state means
		if was[i][1] != is[i][1] {
			t.add(was[i][0], before, is[i][1])
		}
	}
	return t
}

// confirmChange asks for confirmation if the change skips values, or can have values issued twice. absent are the
// workers whose nodes cannot follow it. unasked names whom nobody could ask for values that were issued.
func confirmChange(
	c *cli.Context, before, after record.Named, st record.State, change operator.Change, absent []coordinator.Entry,
	unasked string,
) error {
	name := before.Name
	var next, of, first string // where it goes on, of what, and where it would have gone on
	switch {
	case change.Next != nil:
		next, of, first = fmt.Sprint(*change.Next), "values", fmt.Sprint(after.Value(before.Next))
	case change.NextPosition != nil:
		next, of = fmt.Sprintf("position %d", *change.NextPosition), "positions"
		first = fmt.Sprintf("position %d", before.Next)
	default:
		return nil
	}
	skipped := ""
	if n := after.Next - before.Next; n > 0 {
		skipped = fmt.Sprintf("%s of %s, from %s on, will never be issued", view.Plural(n, "value"), name, first)
	}
	switch {
	case change.VouchedIn != 0 && before.Incarnation < st.Incarnation:
		risk := fmt.Sprintf("ZooKeeper has lost data. If any value of %s from %s on was issued before, it will be "+
			"issued twice", name, next)
		if skipped != "" {
			risk += ". " + skipped
		}
		words := fmt.Sprintf("%s is unused from %s on in incarnation %d", name, next, st.Incarnation)
		if unasked != "" {
			risk += ". Nobody could ask " + unasked
			words += ", also by " + unasked
		}
		return confirmWithout(c, absent, risk, words)
	case skipped != "":
		return confirmWithout(c, absent, skipped, fmt.Sprintf("skip %s of %s below %s", of, name,
			strings.TrimPrefix(next, "position ")))
	}
	return nil
}

// allowAbsent lets a far jump go on without the nodes that are absent. The caller calls confirmWithout with them.
func allowAbsent(c *cli.Context, o *operator.Sequences) (absent []coordinator.Entry, err error) {
	absent, err = o.Absent(c.Context)
	for _, e := range absent {
		o.Without = append(o.Without, e.Worker)
	}
	return absent, err
}

// confirmWithout is confirm of a jump that some nodes do not hear of. The words name their workers.
func confirmWithout(c *cli.Context, absent []coordinator.Entry, risk, words string) error {
	if len(absent) == 0 {
		return confirm(c, risk, words)
	}
	var workers []int
	for _, e := range absent {
		workers = append(workers, e.Worker)
	}
	risk += fmt.Sprintf(". Nodes that are not connected hold workers: %s. If ZooKeeper is restored to a copy from "+
		"before, such a node may issue values that others had. Start or connect it first, or wait until its lease is "+
		"over", leased(absent))
	all := words + " despite absent " + view.WorkersText(workers)
	if c.String("confirm") == words { // they are enough if all nodes are connected
		return usageError("%s. Nothing was changed. To go on, use --confirm %s", risk, quoted(all))
	}
	return confirm(c, risk, all)
}
