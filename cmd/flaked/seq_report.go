package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/ops/view"
)

// seqStatesText describes the states of view.SequenceState.
const seqStatesText = `STATE is
  in-use      nodes issue its values
  template    nodes create each sequence that it matches at its first use
  family      nodes issue values of each name that it matches
  after-loss  ZooKeeper lost data: the next node first skips what may have been issued
  frozen      the same, but nodes refuse until an operator says where it goes on
  exhausted   all values are taken, or a template has created all that it may
  damaged     its record cannot be used by this version of flaked
  deleted     the name is kept, so that it never begins again below its old values`

// seqReport is a sequence in JSON. Values and positions are strings, as JavaScript and others round
// large numbers. Position p has the value start + p * increment.
type seqReport struct {
	Name  string `json:"name"`
	State string `json:"state"`
	// Error says why a record is damaged. Other fields are then empty.
	Error string `json:"error,omitempty"`
	// Mode is segment, strict or ordered.
	Mode string `json:"mode"`
	// Next is the first value that no node has taken. It is null if there is none, or if it depends on the
	// key of the sequence.
	Next      *int64 `json:"next,string"`
	Start     int64  `json:"start,string"`
	Increment int64  `json:"increment,string"`
	Max       int64  `json:"max,string"`
	// Salt and Scatter are bits. They are missing where they are 0.
	Salt    int `json:"salt,omitempty"`
	Scatter int `json:"scatter,omitempty"`
	// Used is the part of all values that nodes have taken, from 0 to 1.
	Used float64 `json:"used"`
	// Skips is the number of positions that the next block leaves out, because ZooKeeper lost
	// data.
	Skips int64 `json:"skips,string"`

	record.Settings

	// By wrote the record last, at WrittenMs by the clock of ZooKeeper's leader: for a block, or to renew it.
	By        string `json:"by"`
	WrittenMs int64  `json:"written_ms"`
	// DeletedMs and PurgeableInMs are null if the sequence is not deleted. PurgeableInMs is the time for which
	// nodes that are cut off may still issue its values. It passes only while nodes are connected.
	DeletedMs     *int64 `json:"deleted_ms"`
	PurgeableInMs *int64 `json:"purgeable_in_ms"`

	// MaxNames is the most sequences that a template creates, and Names the number of those that it has
	// created. Both are 0 for a sequence.
	MaxNames int64 `json:"max_names"`
	Names    int64 `json:"names"`

	// LeaseMs is for how long the owner of an ordered sequence issues without ZooKeeper. It is missing in other modes.
	LeaseMs int64 `json:"lease_ms,omitempty"`
	ownership
	// Sections are those of a family.
	Sections []sectionReport `json:"sections,omitempty"`

	ID           string `json:"id"`
	NextPosition int64  `json:"next_position,string"`
	Positions    int64  `json:"positions,string"`
	Incarnation  int64  `json:"incarnation"`
	// ClusterIncarnation grows each time ZooKeeper loses data.
	ClusterIncarnation int64 `json:"cluster_incarnation"`

	record record.Record
}

// describeSequence returns the report of a record. now is Unix ms.
func describeSequence(n record.Named, st record.State, now int64) seqReport {
	s, r := view.Recorded(n, st, now), n.Record
	if n.Err != nil {
		return seqReport{Name: n.Name, State: s.State, Error: s.Why, WrittenMs: n.Written}
	}
	d := seqReport{
		record: r, Name: n.Name, State: s.State, Mode: r.Mode.String(), Skips: r.Standing(st).Skip,
		Start: r.Start, Increment: r.Increment, Max: r.Max, Salt: r.Salt, Scatter: r.Scatter,
		Used: view.Part(view.Taken(r)), Settings: r.Settings, By: r.By, WrittenMs: n.Written, MaxNames: r.MaxNames,
		Names: r.Names, ID: r.ID, NextPosition: r.Next, Positions: r.Positions(),
		Incarnation: r.Incarnation, ClusterIncarnation: st.Incarnation,
	}
	if r.Next < r.Positions() && !r.Keyed() {
		d.Next = new(r.Value(r.Next))
	}
	if r.Kind() == record.Tombstone {
		d.DeletedMs, d.PurgeableInMs = new(r.DeletedAt), new(r.IssuableFor(st).Milliseconds())
	}
	if r.Mode.Owned() {
		d.describeOwners(n, st, now)
	}
	if s.State == view.SeqDamaged {
		d.Error = s.Why
	}
	return d
}

func (d seqReport) nextText() string {
	switch {
	case d.Next != nil:
		return strconv.FormatInt(*d.Next, 10)
	case d.NextPosition < d.Positions: // it depends on the key
		return "secret"
	}
	return "-"
}

func (d seqReport) usedText() string { return view.PartText(view.Taken(d.record)) }

// meaning explains a state other than in-use. The text begins with a colon.
func (d seqReport) meaning() string {
	set := fmt.Sprintf("`flaked seq set '%s' ", d.Name)
	template := d.MaxNames > 0
	switch d.State {
	case view.SeqAfterLoss:
		return ": ZooKeeper lost data since a node last took values. The next node that takes some first skips " +
			view.Plural(d.Skips, "value")
	case view.SeqDamaged:
		return ": " + d.Error + ". Nodes that know them put them back. If none does, delete the family, and " +
			"create it again"
	case view.SeqFrozen:
		switch {
		case template && d.Scatter > 0:
			return ": ZooKeeper lost data, and perhaps sequences that it created. Delete it, and create it again " +
				"with a --start above all their values"
		case template:
			return ": ZooKeeper lost data, and perhaps sequences that it created. " + set +
				"--next VALUE --vouch-after-loss` says where new ones begin"
		case !d.taken():
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
	case view.SeqExhausted:
		if template {
			return ": it has created as many sequences as it may. " + set + "--max-names N` raises that"
		}
		return ": nodes have taken all values. " + set + "--max VALUE` raises the max"
	case view.SeqDeleted:
		if *d.PurgeableInMs > 0 {
			return fmt.Sprintf(": nodes that are cut off may issue its values for another %s", millis(*d.PurgeableInMs))
		}
		return fmt.Sprintf(": `flaked seq purge '%s'` may forget its values", d.Name)
	}
	return ""
}

// taken reports whether nodes take values of the sequence in advance.
func (d seqReport) taken() bool { return d.record.Mode.Holds() }

// unused replaces a setting that the mode does not use.
func (d seqReport) unused(text string) string {
	if !d.taken() {
		return "-"
	}
	return text
}

// supplyRows returns how long nodes issue what they have taken.
func (d seqReport) supplyRows() textTable {
	if d.LeaseMs > 0 {
		return textTable{{"lease", millis(d.LeaseMs).String()}}
	}
	return textTable{
		{"supply", d.unused(millis(d.SupplyMs).String())},
		{"hold", d.unused(millis(d.HoldMs).String())},
	}
}

func aSecond(n int64) string { return grouped(n) + " a second" }

func seqRows(d seqReport, now time.Time) textTable {
	top := strconv.FormatInt(d.Max, 10)
	if name := maxText(d.Max); name != top {
		top += " (" + name + ")"
	}
	rows := textTable{
		{"sequence", d.Name},
		{"state", d.State + d.meaning()},
		{"mode", d.Mode},
		{"next value", d.nextText()},
		{"start", strconv.FormatInt(d.Start, 10)},
		{"increment", strconv.FormatInt(d.Increment, 10)},
		{"max", top},
		{"used", d.usedText()},
		{"block", d.unused(fmt.Sprintf("%s or more", view.Plural(d.Block, "value")))},
	}
	rows = slices.Concat(rows, d.supplyRows(), textTable{
		{"ceiling", d.unused(aSecond(d.Ceiling))},
		{"hard ceiling", d.unused(aSecond(d.HardCeiling))},
		{"last writer", printable(d.By)},
		{"last written", view.Instant(d.WrittenMs, now)},
	}, d.ownerRows(now))
	if d.record.Keyed() {
		rows.add("map", d.record.MapName())
	}
	if d.MaxNames > 0 {
		rows.add("sequences created", fmt.Sprintf("%d of %d", d.Names, d.MaxNames))
	}
	if d.DeletedMs != nil {
		rows.add("deleted", view.Instant(*d.DeletedMs, now))
		rows.add("may be purged in", millis(*d.PurgeableInMs).String())
	}
	return append(rows, textTable{
		{"id", printable(d.ID)},
		{"next position", fmt.Sprintf("%d of %d", d.NextPosition, d.Positions)},
		{"incarnation", fmt.Sprintf("%d (the cluster's: %d)", d.Incarnation, d.ClusterIncarnation)},
	}...)
}
