package health

import (
	"cmp"
	"math"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/ops/words"
)

// SequenceReport is a named sequence, as `flaked seq`, HTTP, the page and the metrics show it. Values, and numbers of
// values and of positions, are strings in JSON, as JavaScript and others round large numbers. Position p has the value
// start + p * increment.
type SequenceReport struct {
	Name  string        `json:"name"`
	State SequenceState `json:"state"`
	// Why has details of the state, for people. Of a record that cannot be read, only this, Name, State and WrittenMs
	// are set.
	Why string `json:"why,omitempty"`
	// Mode is segment, strict or ordered.
	Mode string `json:"mode"`
	// Next is the first value that no node has taken. It is null if there is none, or if it depends on the key of the
	// sequence.
	Next      *int64 `json:"next,string"`
	Start     int64  `json:"start,string"`
	Increment int64  `json:"increment,string"`
	Max       int64  `json:"max,string"`
	// Salt and Scatter are bits. They are missing where they are 0.
	Salt    int `json:"salt,omitempty"`
	Scatter int `json:"scatter,omitempty"`
	// Taken is the number of values that nodes have taken, of as many as Positions: the position of Next.
	Taken     int64 `json:"taken,string"`
	Positions int64 `json:"positions,string"`
	// UsedPercent is the part of all values that nodes have taken, to a tenth. Of a template, it is the part of the
	// sequences that it may create.
	UsedPercent float64 `json:"used_percent"`
	// Skips is the number of positions that the next block leaves out, because ZooKeeper lost data.
	Skips int64 `json:"skips,string"`

	record.Settings
	// HoldMs is Settings.HoldMs. An ordered sequence has LeaseMs in its place: the time for which its owner issues
	// without ZooKeeper.
	HoldMs  int64 `json:"hold_ms,omitempty"`
	LeaseMs int64 `json:"lease_ms,omitempty"`

	// By is the node or the operator that wrote the record last, at WrittenMs by the clock of ZooKeeper's leader. A
	// node does not know WrittenMs.
	By        string `json:"by"`
	WrittenMs int64  `json:"written_ms,omitempty"`
	// DeletedMs and PurgeableInMs are null if the sequence is not deleted. PurgeableInMs is the time for which nodes
	// that are cut off may still issue its values. It passes only while nodes are connected.
	DeletedMs     *int64 `json:"deleted_ms"`
	PurgeableInMs *int64 `json:"purgeable_in_ms"`

	// MaxNames is the most sequences that a template creates, and Names the number of those that it has created. Both
	// are 0 for a sequence.
	MaxNames int64 `json:"max_names"`
	Names    int64 `json:"names"`

	Ownership
	// Family is that of a section, and Section its number.
	Family  string `json:"family,omitempty"`
	Section *int   `json:"section,omitempty"`
	// KnownSections is the number of sections of a family that are known. BySection has these sections, but only in a
	// report of ZooKeeper's records.
	KnownSections int             `json:"known_sections,omitempty"`
	BySection     []SectionReport `json:"by_section,omitempty"`

	ID          string `json:"id"`
	Incarnation int64  `json:"incarnation"`
	// ClusterIncarnation grows each time ZooKeeper loses data.
	ClusterIncarnation int64 `json:"cluster_incarnation"`

	*AtNode

	Record record.Record `json:"-"`
}

// Ownership says who owns an ordered sequence, or a section of a family.
type Ownership struct {
	// Owner is the address at which other nodes reach the owner, or its name if they cannot. It is missing if there is
	// no owner.
	Owner string `json:"owner,omitempty"`
	// OwnedSinceMs is the time at which the owner took the section, Unix ms by its clock.
	OwnedSinceMs int64 `json:"owned_since_ms,omitempty"`
	// OwnerGone: the owner has not renewed its lease, so another node may take its place.
	OwnerGone bool `json:"owner_gone,omitempty"`
	// Term counts the ownerships. That of a family is the sum of its sections.
	Term int64 `json:"term,omitempty"`
}

// SectionReport is a section of a family.
type SectionReport struct {
	Section int           `json:"section"`
	State   SequenceState `json:"state"`
	Taken   int64         `json:"taken,string"`
	Ownership
}

// AtNode has the facts about a sequence that only one node knows, and ZooKeeper's records do not have.
type AtNode struct {
	// Held is the number of values that the node has taken and not issued, and PerSecond that of those that it issues
	// in a second.
	Held      int64   `json:"held,string"`
	PerSecond float64 `json:"values_per_second"`
	// Refusal is the reason for which the node gets no values now. It is missing if there is none.
	Refusal record.Reason `json:"refusal,omitempty"`
	// Unanswered is the number of values of a strict sequence that the node has taken, or perhaps taken, and not
	// answered. This field and all below are missing if 0.
	Unanswered int64 `json:"unanswered,string,omitempty"`
	// OwnedSections is the number of sections that the node owns. An ordered sequence has one section.
	OwnedSections int `json:"owned_sections,omitempty"`
	// Passed is the number of values of an ordered sequence that the node got from other nodes for its clients, and
	// Lapses that of the leases that it did not renew in time.
	Passed int64 `json:"passed,string,omitempty"`
	Lapses int64 `json:"lapses,string,omitempty"`
	// LastBlock is the last block that the node has taken.
	LastBlock positions.Block `json:"-"`
}

// RecordedReport returns the report of a record in ZooKeeper. now is Unix ms.
func RecordedReport(n record.Named, st record.State, now int64) SequenceReport {
	if n.Err != nil {
		return SequenceReport{Name: n.Name, State: SeqDamaged, Why: words.Clean(n.Err.Error()), WrittenMs: n.WrittenAt}
	}
	d := baseReport(n.Name, n.Record, st)
	d.WrittenMs = n.WrittenAt
	if !n.Mode.Owned() {
		return d
	}
	d.Ownership = ownershipOf(n, now)
	var sections []SequenceReport
	for _, section := range n.Sections {
		s := RecordedReport(section, st, now)
		_, k, _ := record.SectionOf(section.Name)
		d.Skips = max(d.Skips, s.Skips)
		d.BySection = append(d.BySection, SectionReport{k, s.State, s.Taken, s.Ownership})
		sections = append(sections, s)
	}
	if len(sections) > 0 {
		sortWorstFirst(sections)
		d.State, d.Why = familyState(sections)
		d.KnownSections = len(sections)
	}
	if missing := n.Record.SectionCount - len(n.Sections); missing > 0 && n.Record.Kind() == record.Family {
		d.State, d.Why = SeqDamaged, OfSections(missing, n.Record.SectionCount)+" missing in ZooKeeper"
	}
	return d
}

// NodeReport returns the report of what a node knows of a sequence.
func NodeReport(u mode.Use, st record.State) SequenceReport {
	d := baseReport(u.Name, u.Record, st)
	d.AtNode = &AtNode{Held: u.Held, PerSecond: u.PerSecond, Refusal: u.Refusal, Unanswered: u.Unanswered,
		OwnedSections: oneIf(u.Owns), Passed: u.FromOthers, Lapses: u.Lapses, LastBlock: u.Block}
	if u.Record.Mode.Owned() {
		d.Ownership = ownershipOf(record.Named{Record: u.Record}, 0)
	}
	if u.Refusal == record.Frozen && d.State != SeqFrozen {
		d.State, d.Why = SeqFrozen, "its record or key is damaged or missing"
	}
	return d
}

// baseReport returns the part of a report that the record alone decides.
func baseReport(name string, r record.Record, st record.State) SequenceReport {
	d := SequenceReport{
		Record: r, Name: name, State: sequenceStateOf(r, st), Mode: r.Mode.String(), Skips: r.NextBlockOutlook(st).Skip,
		Start: r.Start, Increment: r.Increment, Max: r.Max, Salt: r.Salt, Scatter: r.Scatter,
		Taken: r.Next, Positions: r.Positions(), Settings: r.Settings,
		By: r.WrittenBy, MaxNames: r.MaxNames, Names: r.Names, ID: r.ID,
		Incarnation: r.Incarnation, ClusterIncarnation: st.Incarnation,
	}
	d.UsedPercent = math.Round(1000*d.Used()) / 10
	if r.Next < r.Positions() && !r.Keyed() {
		d.Next = new(r.Value(r.Next))
	}
	if r.Kind() == record.Tombstone {
		d.DeletedMs, d.PurgeableInMs = new(r.DeletedAt), new(r.IssuableFor(st).Milliseconds())
	}
	if d.HoldMs = r.HoldMs; r.Mode.Owned() {
		d.HoldMs, d.LeaseMs = 0, r.HoldMs
	}
	if family, k, is := record.SectionOf(name); is {
		d.Family, d.Section = family, &k
	}
	return d
}

// ownershipOf returns who owns a sequence. now is Unix ms. A node does not know when the record was written. So
// NodeReport leaves WrittenAt and now 0, and the owner does not count as gone.
func ownershipOf(n record.Named, now int64) Ownership {
	o := Ownership{Term: n.Term}
	if n.HasOwner() {
		o.Owner, o.OwnedSinceMs, o.OwnerGone = cmp.Or(n.Address, n.WrittenBy, "unknown"), n.OwnedAt, ownerGone(n, now)
	}
	return o
}

// ownerGone reports whether an ordered sequence has an owner that has not renewed its lease, so that another node may
// take its place. now is Unix ms. HoldMs is the lease, which an owner renews after a third of it. Twice the lease
// leaves time for a renewal that is late, and for another node, which must see the record unchanged for one lease.
func ownerGone(n record.Named, now int64) bool {
	return n.HasOwner() && now-n.WrittenAt > 2*n.HoldMs
}
