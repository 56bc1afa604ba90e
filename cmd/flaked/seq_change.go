package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/words"
)

// changeSequence changes the sequence r, and prints what it has changed. unasked names the nodes that the command could
// not ask for values that they have issued, "" for none.
func changeSequence(
	c *cli.Context, o operator.Commands, r record.Named, state record.State, change operator.Change, unasked string,
) error {
	name := r.Name
	if r.Kind() == record.Tombstone {
		return deletedError(name)
	}
	if err := checkFlagsOfMode(c, r.Mode); err != nil {
		return err
	}
	after, err := change.ApplyTo(r, state)
	if err != nil {
		return err
	}
	moved := change.Next != nil || change.NextPosition != nil
	if sameSettings(r.Record, after.Record) {
		if moved { // the command that has changed it was perhaps ended while it waited
			if err := o.AwaitFollowed(c.Context, r, state); err != nil {
				return err
			}
		}
		return printText(c, "sequence %s has these settings already. Nothing was changed.\n", name)
	}
	var absent []coordinator.Entry
	if operator.IsFarJump(r, after) {
		if absent, err = allowAbsent(c, &o); err != nil {
			return err
		}
	}
	if err := confirmChange(c, r, after, state, change, absent, unasked); err != nil {
		return err
	}
	if _, err := o.Set(c.Context, name, change); err != nil {
		return err
	}
	text := fmt.Sprintf("changed sequence %s. Connected nodes follow at their next heartbeat.", name)
	word := health.RecordedReport(after, state, o.Now()).State
	if moved && (word == health.SeqAfterLoss || word == health.SeqFrozen) {
		text += " The sequence does not go on at the next value, because ZooKeeper has lost data and nobody vouched " +
			"with --vouch-after-loss. See `flaked seq show " + name + "`."
	}
	if err := printText(c, "%s\n", text); err != nil {
		return err
	}
	return changedRows(r, after, state, o.Now()).print(c.App.Writer)
}

// deletedError returns the error of a command that cannot change a deleted sequence.
func deletedError(name string) error {
	return failure("%s: the sequence was deleted. `flaked seq create %[1]s` creates it again", name)
}

// sameSettings reports whether a change leaves all of a sequence as it is that an operator can change.
func sameSettings(before, after record.Record) bool {
	return before.Settings == after.Settings && before.Map == after.Map && before.MaxNames == after.MaxNames &&
		before.Next == after.Next && before.Incarnation == after.Incarnation
}

// changedRows returns a header, and what differs between a sequence before and after a change.
func changedRows(before, after record.Named, state record.State, now int64) (t textTable) {
	was, is := health.RecordedReport(before, state, now), health.RecordedReport(after, state, now)
	at := time.UnixMilli(now)
	old, explained := seqRows(was, at, false), seqRows(is, at, true)
	t.add("", "BEFORE", "AFTER")
	for i, row := range seqRows(is, at, false) {
		if old[i][1] != row[1] {
			t.add(row[0], old[i][1], explained[i][1])
		}
	}
	return t
}

// confirmChange asks for confirmation if the change skips values, or can have values issued twice. absent are the
// workers whose nodes cannot follow it. unasked is that of changeSequence.
func confirmChange(
	c *cli.Context, before, after record.Named, state record.State, change operator.Change, absent []coordinator.Entry,
	unasked string,
) error {
	name := before.Name
	var next, of, first string // where it goes on, values or positions, and where it would have gone on
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
		skipped = fmt.Sprintf("%s of %s, from %s on, will never be issued", words.Count(n, "value"), name, first)
	}
	switch {
	case change.VouchedIn != 0 && before.Incarnation < state.Incarnation:
		risk := fmt.Sprintf("ZooKeeper has lost data. If any value of %s from %s on was issued before, it will be "+
			"issued twice", name, next)
		if skipped != "" {
			risk += ". " + skipped
		}
		phrase := fmt.Sprintf("%s is unused from %s on in incarnation %d", name, next, state.Incarnation)
		if unasked != "" {
			risk += ". Nobody could ask " + unasked
			phrase += ", also by " + unasked
		}
		return confirmDespiteAbsent(c, absent, risk, phrase)
	case skipped != "":
		return confirmDespiteAbsent(c, absent, skipped, fmt.Sprintf("skip %s of %s below %s", of, name,
			strings.TrimPrefix(next, "position ")))
	}
	return nil
}

// allowAbsent lets a far jump go on without the nodes that are absent. The caller must call
// confirmDespiteAbsent with them.
func allowAbsent(c *cli.Context, o *operator.Commands) (absent []coordinator.Entry, err error) {
	absent, err = o.Absent(c.Context)
	for _, e := range absent {
		o.IgnoredWorkers = append(o.IgnoredWorkers, e.Worker)
	}
	return absent, err
}

// confirmDespiteAbsent is confirm for a jump that absent nodes cannot follow. The phrase that it asks for also names
// their workers.
func confirmDespiteAbsent(c *cli.Context, absent []coordinator.Entry, risk, phrase string) error {
	if len(absent) == 0 {
		return confirm(c, risk, phrase)
	}
	var workers []int
	for _, e := range absent {
		workers = append(workers, e.Worker)
	}
	risk += fmt.Sprintf(". Nodes that are not connected hold workers: %s. If ZooKeeper is restored to a copy from "+
		"before, such a node may issue values that others had. Start or connect it first, or wait until its lease is "+
		"over", leasesText(absent))
	all := phrase + " despite absent " + words.WorkerNumbers(workers)
	if c.String("confirm") == phrase { // which is enough if no node is absent
		return usageError("%s. Nothing was changed. To go on, use --confirm %s", risk, quoted(all))
	}
	return confirm(c, risk, all)
}
