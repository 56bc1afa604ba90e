package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/words"
)

// seqStatesText describes each health.SequenceState.
const seqStatesText = `STATE is
  in-use      nodes issue its values
  template    nodes create each sequence that it matches at its first use
  family      nodes issue values of each name that it matches
  after-loss  ZooKeeper lost data: the next node first skips what may have been issued
  frozen      the same, but nodes refuse until an operator says where it goes on
  exhausted   all values are taken, or a template has created all that it may
  damaged     its record cannot be used by this version of flaked
  deleted     the name is kept, so that it never begins again below its old values`

// nextText returns the next value, "-" for none.
func nextText(d health.SequenceReport) string {
	switch {
	case d.Next != nil:
		return strconv.FormatInt(*d.Next, 10)
	case d.Taken < d.Positions: // it depends on the key
		return "secret"
	}
	return "-"
}

// stateMeaning explains a state other than in-use. The text begins with a colon.
func stateMeaning(d health.SequenceReport) string {
	set := fmt.Sprintf("`flaked seq set '%s' ", d.Name)
	template := d.MaxNames > 0
	switch d.State {
	case health.SeqAfterLoss:
		return ": ZooKeeper lost data since a node last took values. The next node that takes some first skips " +
			words.Count(d.Skips, "value")
	case health.SeqDamaged: // only a family that lacks sections: Find returns an error for other damage
		return ": " + d.Why + ". Nodes that know them put them back. If none does, delete the family, and " +
			"create it again"
	case health.SeqFrozen:
		switch {
		case template && d.Scatter > 0:
			return ": ZooKeeper lost data, and perhaps sequences that it created. Delete it, and create it again " +
				"with a --start above all their values"
		case template:
			return ": ZooKeeper lost data, and perhaps sequences that it created. " + set +
				"--next VALUE --vouch-after-loss` says where new ones begin"
		case !takenAhead(d):
			return ": ZooKeeper lost data, and values may have been issued that it does not know. `flaked seq " +
				"recover " + d.Name +
				"` says where it goes on"
		case d.Scatter > 0:
			set += "--next-position POSITION"
		default:
			set += "--next VALUE"
		}
		return ": ZooKeeper lost data, and many values may have been issued since. " + set +
			" --vouch-after-loss` says where it goes on"
	case health.SeqExhausted:
		if template {
			return ": it has created as many sequences as it may. " + set + "--max-names N` raises that"
		}
		all := "all values"
		if d.KnownSections > 0 { // after the number of sections that are exhausted
			all = "all their values"
		}
		return ": nodes have taken " + all + ". " + set + "--max VALUE` raises the max"
	case health.SeqDeleted:
		switch left := *d.PurgeableInMs; {
		case endless(left):
			return ": its name is kept for good, because its hold was " + forever
		case left > 0:
			return fmt.Sprintf(": nodes that are cut off may issue its values for another %s", millis(left))
		}
		return fmt.Sprintf(": `flaked seq purge '%s'` may forget its values", d.Name)
	}
	return ""
}

// takenAhead reports whether nodes take values of the sequence in advance.
func takenAhead(d health.SequenceReport) bool { return d.Record.Mode.Holds() }

// unlessStrict returns the text of a setting, "-" for a strict sequence: that mode does not use it.
func unlessStrict(d health.SequenceReport, text string) string {
	if !takenAhead(d) {
		return "-"
	}
	return text
}

// seqRows returns all that is known about a sequence. With meaning, they say what its state means.
func seqRows(d health.SequenceReport, now time.Time, meaning bool) textTable {
	state := string(d.State)
	if meaning {
		if d.Why != "" && d.State != health.SeqDamaged { // stateMeaning says what is damaged
			state += " (" + d.Why + ")"
		}
		state += stateMeaning(d)
	}
	top := strconv.FormatInt(d.Max, 10)
	if name := maxText(d.Max); name != top {
		top += " (" + name + ")"
	}
	lasts := textTable{ // how long nodes issue what they have taken
		{"supply", unlessStrict(d, millis(d.SupplyMs).String())}, {"hold", unlessStrict(d, holdText(d.HoldMs))},
	}
	if d.LeaseMs > 0 {
		lasts = textTable{{"lease", millis(d.LeaseMs).String()}}
	}
	rows := textTable{
		{"sequence", d.Name},
		{"state", state},
		{"mode", d.Mode},
		{"next value", nextText(d)},
		{"start", strconv.FormatInt(d.Start, 10)},
		{"increment", strconv.FormatInt(d.Increment, 10)},
		{"max", top},
		{"used", d.UsedText()},
		{"block", unlessStrict(d, fmt.Sprintf("%s or more", words.Count(d.Block, "value")))},
	}
	rows = slices.Concat(rows, lasts, textTable{
		{"ceiling", unlessStrict(d, words.Grouped(d.Ceiling)+" a second")},
		{"hard ceiling", unlessStrict(d, words.Grouped(d.HardCeiling)+" a second")},
		{"last writer", printable(d.By)},
		{"last written", words.Moment(d.WrittenMs, now)},
	}, ownerRows(d, now))
	if d.Record.Keyed() {
		rows.add("map", d.Record.MapName())
	}
	if d.MaxNames > 0 {
		rows.add("sequences created", fmt.Sprintf("%d of %d", d.Names, d.MaxNames))
	}
	if d.DeletedMs != nil {
		rows.add("deleted", words.Moment(*d.DeletedMs, now))
		rows.add("may be purged in", purgeableIn(*d.PurgeableInMs))
	}
	return append(rows, textTable{
		{"id", printable(d.ID)},
		{"next position", fmt.Sprintf("%d of %d", d.Taken, d.Positions)},
		{"incarnation", fmt.Sprintf("%d (the cluster's: %d)", d.Incarnation, d.ClusterIncarnation)},
	}...)
}
