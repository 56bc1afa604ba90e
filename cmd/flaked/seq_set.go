package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/seqstore"
	"github.com/flaked/flaked/sequence"
)

func seqSet(open storeOpener) *cli.Command {
	return &cli.Command{
		Name:      "set",
		Usage:     "change a named sequence",
		UsageText: "flaked seq set --zk HOST:PORT NAME [flags]",
		ArgsUsage: "NAME",
		Description: `Changes what is given, nothing else, and prints it before and after. Connected nodes
follow at their next heartbeat. The max and the next value can only become higher.

--next skips all values below VALUE for good. Values that nodes hold already are skipped
as well, as soon as they follow. It must be confirmed: type the words that the command
asks for on a terminal, or give them with --confirm. Without them, it prints which words
it needs.

After ZooKeeper has lost data, a sequence skips all values that may have been issued, or
is frozen until an operator says where it goes on. --next VALUE --vouch-after-loss ends
both. The words that confirm it name the epoch of the loss, so that they confirm nothing
after another loss. The flag also ends the wait after a node whose clock was ahead has
taken values. Use it only if you know that no value from VALUE on was issued: otherwise
values are issued twice. Choose a VALUE well above the highest one that programs have
seen. Of a template, --next is the first value of all sequences that it creates from
then on.

The values of a scattered sequence have no order, so it needs --next-position in place of
--next: ` + "`flaked seq verify`" + ` prints the positions of values. A template of scattered sequences
has neither: delete it, and create it again with a start above all values.

` + waitText + `

Examples:
  flaked seq set --zk zk1:2181 order --ceiling 50000 --block 1024
  flaked seq set order --max int64 --note 'raised in May' --dry-run
  flaked seq set order --next 5000 --confirm 'skip values of order below 5000'
  flaked seq set 'order:*' --max-names 20000
  flaked seq set order --next 5000 --vouch-after-loss \
    --confirm 'order is unused from 5000 on in epoch 2'`,
		Flags: append(append([]cli.Flag{
			&cli.Int64Flag{Name: "next", Usage: "skip all values below `VALUE`", DefaultText: unchanged, Category: callFlags},
			&cli.Int64Flag{Name: "next-position", Usage: "skip all positions below `POSITION`", DefaultText: unchanged, Category: callFlags},
			&cli.BoolFlag{Name: "vouch-after-loss", Usage: "with --next or --next-position: no value from there on was issued, although ZooKeeper has lost data or a clock was wrong", DisableDefaultText: true, Category: callFlags},
			maxFlag(unchanged, ""),
			maxNamesFlag(unchanged),
		}, settingFlags(false)...), append([]cli.Flag{waitFlag(), dryRunFlag(), confirmFlag(), outputFlag()}, zkFlags("")...)...),
		Action: func(c *cli.Context) error {
			name, err := sequenceArgument(c)
			if err != nil {
				return err
			}
			change, err := changeGiven(c)
			if err != nil {
				return err
			}
			limit, err := waitGiven(c)
			if err != nil {
				return err
			}
			return open.sequences(c, func(ctx context.Context, o seqstore.Operator) error {
				w := changeWaiter{c, o.Now, name, limit}
				s := seqSetter{c: c, o: w.waiting(o), name: name, change: change, waiter: w}
				return s.set(ctx)
			})
		},
	}
}

// changeGiven returns the change that the command line describes.
func changeGiven(c *cli.Context) (seqstore.Change, error) {
	change := seqstore.Change{
		Settings: func(s *seqstore.Settings) { changeSettings(c, s) },
	}
	given := false
	for _, name := range []string{"next", "next-position", "max", "max-names", "block", "supply", "hold", "ceiling", "note"} {
		given = given || c.IsSet(name)
	}
	switch {
	case c.IsSet("next") && c.IsSet("next-position"):
		return change, usageError("--next and --next-position are both given. Give one of them")
	case c.Bool("vouch-after-loss") && !c.IsSet("next") && !c.IsSet("next-position"):
		return change, usageError("--vouch-after-loss needs --next VALUE or --next-position POSITION")
	case !given:
		return change, usageError("nothing to change. Give at least one flag, such as --ceiling")
	}
	if c.IsSet("max") {
		top, err := parseMax(c.String("max"))
		if err != nil {
			return change, err
		}
		change.Max = &top
	}
	if c.IsSet("max-names") {
		change.MaxNames = new(c.Int64("max-names"))
	}
	if c.IsSet("next") {
		next := c.Int64("next")
		if next < 0 {
			return change, usageError("--next must be 0 or more, not %d", next)
		}
		change.Next = &next
	}
	if c.IsSet("next-position") {
		change.NextPosition = new(c.Int64("next-position"))
	}
	return change, nil
}

type seqSetter struct {
	c      *cli.Context
	o      seqstore.Operator
	name   string
	change seqstore.Change
	waiter changeWaiter
	// recovery is nil but for `flaked seq recover`.
	recovery *recovery
}

func (s seqSetter) set(ctx context.Context) error {
	before, st, err := s.o.Show(ctx, s.name)
	if err != nil {
		return ofSequence(s.name, err)
	}
	if s.c.Bool("vouch-after-loss") {
		s.change.VouchedIn = st.Epoch
	}
	if err := s.check(before, st); err != nil {
		return err
	}
	after, err := withoutWrites(s.o).Set(ctx, s.name, s.change)
	if err != nil {
		return ofSequence(s.name, err)
	}
	dry := s.c.Bool("dry-run")
	rows := s.changes(before, after, st)
	differs := len(rows) > 0 || s.change.VouchedIn != 0
	write := differs && !dry
	if write {
		if err := s.confirm(before, after, st); err != nil {
			return err
		}
		if after, err = s.o.Set(ctx, s.name, s.change); err != nil {
			return ofSequence(s.name, err)
		}
		rows = s.changes(before, after, st)
	}
	now := s.o.Now()
	was := describeSequence(s.name, before, st, now)
	report := seqChange{Changed: write, DryRun: dry, Before: &was, After: describeSequence(s.name, after, st, now)}
	report.Recovery, report.Text = s.recovery, s.text(report, differs)
	err, late := s.waiter.followed(ctx, s.o, after, &report)
	if err != nil {
		return err
	}
	err = show(s.c, report, func(w io.Writer) error {
		if _, err := fmt.Fprintln(w, report.Text); err != nil || len(rows) == 0 {
			return err
		}
		var t textTable
		t.add("", "BEFORE", "AFTER")
		for _, r := range rows {
			t.add(r[:]...)
		}
		return t.print(w, false)
	})
	return cmp.Or(err, late)
}

// check returns an error for a change that this record does not allow. seqstore refuses it too, but
// knows no flags.
func (s seqSetter) check(r seqstore.Record, st seqstore.State) error {
	if r.DeletedAt != 0 {
		return exitWith(exitFailure, "%s: the sequence was deleted. `flaked seq create %[1]s` creates it again", s.name)
	}
	if r.Mode == seqstore.Strict {
		if err := unusedByStrict(s.c); err != nil {
			return err
		}
	}
	settings := r.Settings
	s.change.Settings(&settings)
	if err := settings.Check(); err != nil {
		return usageError("--%w", err)
	}
	values := r.Map
	if top := s.change.Max; top != nil {
		if *top < r.Max {
			return exitWith(exitFailure, "--max: the max of %s is %d and cannot become lower, so it cannot be %d", s.name, r.Max, *top)
		}
		if r.Scatter > 0 && *top != r.Max {
			return exitWith(exitFailure, "--max: %s is scattered, so its max cannot change", s.name)
		}
		values.Max = *top
	}
	if s.change.NextPosition != nil || s.change.Next != nil {
		return s.checkNext(r, st, values)
	}
	return nil
}

// checkNext returns an error if a sequence cannot go on as the change says. values is its map after the change.
func (s seqSetter) checkNext(r seqstore.Record, st seqstore.State, values sequence.Map) error {
	next, position := s.change.Next, s.change.NextPosition
	switch {
	case r.Scatter > 0 && r.IsTemplate():
		return exitWith(exitFailure, "%s is a template of scattered sequences and has no next value. Delete it, and create it again with a --start above %d", s.name, r.Highest(0))
	case s.change.VouchedIn != 0 && r.Epoch == st.Epoch && !r.Ahead(s.o.Now()):
		return exitWith(exitFailure, "--vouch-after-loss: %s is not affected by a loss of data or a wrong clock, so there is nothing to vouch for. Leave the flag out", s.name)
	case position != nil && (*position < r.Next || *position >= values.Positions()):
		return exitWith(exitFailure, "--next-position: it must be %d to %d for %s, not %d", r.Next, values.Positions()-1, s.name, *position)
	case position != nil:
		return nil
	case r.Scatter > 0:
		return exitWith(exitFailure, "--next: %s is scattered, and its values have no order. Use --next-position", s.name)
	case *next > values.Max:
		return exitWith(exitFailure, "--next: %d is above the max of %s, %d. Give a higher --max too, or a lower --next", *next, s.name, values.Max)
	case values.PositionAtOrAbove(*next) < r.Next:
		return exitWith(exitFailure, "--next: values of %s up to %d may have been issued, so the next one cannot be %d. Give a higher one", s.name, r.Highest(r.Next-1), *next)
	case values.PositionAtOrAbove(*next) == values.Positions():
		return exitWith(exitFailure, "--next: %s has no value from %d up to its max, %d. Give a higher --max too, or a lower --next", s.name, *next, values.Max)
	}
	return nil
}

// confirm asks for confirmation if the change skips values, or can have values issued twice.
func (s seqSetter) confirm(before, after seqstore.Record, st seqstore.State) error {
	var next, of, first string // where it goes on, of what, and where it would have gone on
	switch {
	case s.change.Next != nil:
		next, of, first = fmt.Sprint(*s.change.Next), "values", fmt.Sprint(after.Value(before.Next))
	case s.change.NextPosition != nil:
		next, of, first = fmt.Sprintf("position %d", *s.change.NextPosition), "positions", fmt.Sprintf("position %d", before.Next)
	default:
		return nil
	}
	skipped := ""
	if n := after.Next - before.Next; n > 0 {
		skipped = fmt.Sprintf("%s of %s, from %s on, will never be issued", count(n, "value"), s.name, first)
	}
	switch {
	case s.change.VouchedIn != 0 && before.Epoch < st.Epoch:
		risk := fmt.Sprintf("ZooKeeper has lost data. If any value of %s from %s on was issued before, it will be issued twice", s.name, next)
		if skipped != "" {
			risk += ". " + skipped
		}
		return confirm(s.c, risk, fmt.Sprintf("%s is unused from %s on in epoch %d", s.name, next, st.Epoch))
	case skipped != "":
		return confirm(s.c, skipped, fmt.Sprintf("skip %s of %s below %s", of, s.name, strings.TrimPrefix(next, "position ")))
	}
	return nil
}

// changes returns the settings that differ, each with both values. Nodes take values meanwhile, so the
// next value counts only if it was given.
func (s seqSetter) changes(before, after seqstore.Record, st seqstore.State) (rows [][3]string) {
	now := s.o.Now()
	was, is := describeSequence(s.name, before, st, now).settingRows(), describeSequence(s.name, after, st, now).settingRows()
	for i := range was {
		name := was[i][0]
		if was[i][1] == is[i][1] || !s.shows(name, before.Keyed()) {
			continue
		}
		rows = append(rows, [3]string{name, was[i][1], is[i][1]})
	}
	return rows
}

// shows reports whether a setting that differs is due to the change.
func (s seqSetter) shows(setting string, keyed bool) bool {
	switch setting {
	case "next value":
		return s.change.Next != nil || s.change.NextPosition != nil
	case nextPosition:
		return s.change.NextPosition != nil || s.change.Next != nil && keyed
	}
	return true
}

// text says what was changed.
func (s seqSetter) text(r seqChange, differs bool) string {
	switch {
	case !differs:
		return fmt.Sprintf("sequence %s has these settings already. Nothing was changed.", s.name)
	case r.DryRun:
		return fmt.Sprintf("sequence %s can be changed. Nothing was changed.", s.name) + s.stillSkips(r.After)
	}
	return fmt.Sprintf("changed sequence %s. Connected nodes follow at their next heartbeat.", s.name) + s.stillSkips(r.After)
}

// stillSkips warns of a next value that is not where the sequence goes on.
func (s seqSetter) stillSkips(d seqReport) string {
	if s.change.Next == nil && s.change.NextPosition == nil || d.State != clusterview.SeqAfterLoss && d.State != clusterview.SeqFrozen {
		return ""
	}
	return " The sequence does not go on at the next value, because ZooKeeper has lost data and nobody vouched with --vouch-after-loss. See `flaked seq show " + s.name + "`."
}
