package health

import (
	"cmp"
	"slices"
	"strings"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/ops/words"
)

// SequenceState is the state of a named sequence.
type SequenceState string

const (
	SeqInUse     SequenceState = "in-use"
	SeqTemplate  SequenceState = "template"
	SeqFamily    SequenceState = "family"
	SeqAfterLoss SequenceState = "after-loss"
	SeqFrozen    SequenceState = "frozen"
	SeqExhausted SequenceState = "exhausted"
	SeqDamaged   SequenceState = "damaged"
	SeqDeleted   SequenceState = "deleted"
)

// stateRanks has the states of sections, the worst first.
var stateRanks = []SequenceState{SeqDamaged, SeqFrozen, SeqExhausted, SeqAfterLoss, SeqInUse}

// sequenceStateOf returns the state of a sequence by its record.
func sequenceStateOf(r record.Record, st record.State) SequenceState {
	s := r.NextBlockOutlook(st)
	switch {
	case r.Kind() == record.Tombstone:
		return SeqDeleted
	case r.Next >= r.Positions(), s.Refusal == record.NoSequence: // NoSequence: a template that has created its names
		return SeqExhausted
	case s.Refusal == record.Frozen:
		return SeqFrozen
	case r.Incarnation < st.Incarnation:
		return SeqAfterLoss
	case r.Kind() == record.Template:
		return SeqTemplate
	case r.Kind() == record.Family:
		return SeqFamily
	}
	return SeqInUse
}

// Stopped reports whether nodes get no values of the sequence until an operator acts.
func (r *SequenceReport) Stopped() bool {
	return r.State == SeqDamaged || r.State == SeqFrozen || r.State == SeqExhausted
}

// Waits returns why the node gets no values at present although the state allows that, "" if it gets some.
func (r *SequenceReport) Waits() string {
	switch refusal := r.atNode().Refusal; refusal {
	case record.Frozen, record.Exhausted: // which is the state, too
		return ""
	default:
		return string(refusal)
	}
}

// CompareUrgency is below 0 if sequence a of a node should be shown before b: the stopped ones come first, then those
// that wait, then the most used ones.
func CompareUrgency(a, b *SequenceReport) int {
	return cmp.Or(cmp.Compare(a.urgency(), b.urgency()), cmp.Compare(b.Used(), a.Used()), cmp.Compare(a.Name, b.Name))
}

// urgency returns a number that is lower for a more urgent sequence. Stopped ones have the places of their problems.
func (r *SequenceReport) urgency() int {
	switch {
	case r.Stopped():
		p, _ := r.problem()
		return place(p.cause)
	case r.Waits() != "":
		return len(table)
	}
	return len(table) + 1
}

// HasProblem reports whether the sequence needs attention.
func (r *SequenceReport) HasProblem() bool {
	_, is := r.problem()
	return is
}

// problem returns the row of the sequence's problem, and false if it has none.
func (r *SequenceReport) problem() (p row, is bool) {
	switch r.State {
	case SeqDamaged:
		return rowSequencesDamaged, true
	case SeqFrozen:
		return rowSequencesFrozen, true
	case SeqExhausted:
		return rowSequencesExhausted, true
	case SeqDeleted:
		return p, false
	}
	switch r.atNode().Refusal {
	case record.CeilingReached:
		return rowSequencesCeiling, true
	case record.NoOwner:
		return rowSequencesNoOwner, true
	case record.NoBlock, record.Confirming, record.Unknown:
		return rowSequencesUnserved, true
	}
	if r.ownersGone() > 0 {
		return rowSequencesOwnerGone, true
	}
	return rowSequencesNearlyUsed, r.Used() >= nearlyUsed
}

// atNode returns what a node knows, and nothing for a record in ZooKeeper.
func (r *SequenceReport) atNode() AtNode {
	if r.AtNode == nil {
		return AtNode{}
	}
	return *r.AtNode
}

// ownersGone returns the number of sections whose owner has not renewed its lease. An ordered sequence has one section.
func (r *SequenceReport) ownersGone() int {
	n := oneIf(r.OwnerGone)
	for _, s := range r.BySection {
		n += oneIf(s.OwnerGone)
	}
	return n
}

// oneIf returns 1 for true and 0 for false.
func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}

// nearlyUsed is the lowest value of Used that is a problem.
const nearlyUsed = 0.8

// usedOf returns how many values nodes have taken, and how many the sequence has. For a template, it returns how many
// sequences it has created, and how many it may create.
func (r *SequenceReport) usedOf() (done, all int64) {
	if r.MaxNames > 0 {
		return r.Names, r.MaxNames
	}
	return r.Taken, r.Positions
}

// Used returns the part of all values that nodes have taken, from 0 to 1. For a template, it returns how much it has
// created of the sequences that it may create.
func (r *SequenceReport) Used() float64 { return ratio(r.usedOf()) }

func ratio(done, all int64) float64 { return min(1, float64(done)/float64(all)) }

// Sequences counts named sequences, and lists those that have a problem.
type Sequences struct {
	// Count is the number of sequences, and Templates that of the templates. Deleted and damaged ones do not count. If
	// nodes were asked, and the records were not read, these are the most that one node knows.
	Count     int `json:"count"`
	Templates int `json:"templates"`
	// ByCause has the sequences with a problem, by its cause.
	ByCause map[string]SequenceGroup `json:"wrong"`
}

// SequenceGroup are the sequences with one problem.
type SequenceGroup struct {
	// Count may be too low if only nodes were asked. It is then the largest number that one node says, or the number of
	// sequences that all nodes name, if that is larger.
	Count int `json:"count"`
	// First are the first of them, by name.
	First []SequenceNote `json:"first"`
}

// SequenceNote is the part of a sequence's report that a problem shows: SequenceReport.note makes it. It is not the
// whole report, because addAnswer adds up what several nodes say of one sequence, and STATUS carries up to 20 for each
// problem.
type SequenceNote struct {
	Name string `json:"name"`
	// Why has details for people, "" for none.
	Why string `json:"why"`
	// Taken is the number of values that nodes have taken, of Positions. Of a template, they count sequences.
	Taken     int64 `json:"taken,string"`
	Positions int64 `json:"positions,string"`
	// Held is the number of values that nodes have taken and not issued, as far as they have said it.
	Held int64 `json:"held,string"`
	// PerSecond is the number of values that nodes issue in a second, as far as they have said it.
	PerSecond float64 `json:"values_per_second"`
}

// firstSequences is the number of sequences that SequenceGroup has at most.
const firstSequences = 20

// CountSequences counts sequences, and lists those that have a problem. One that is nearly used up and has lost its
// owner has both problems. CountSequences returns nil if there are only deleted sequences.
func CountSequences(all []SequenceReport) *Sequences {
	s := &Sequences{ByCause: map[string]SequenceGroup{}}
	for k := range all {
		q := &all[k]
		switch {
		case q.State == SeqDeleted, q.State == SeqDamaged:
		case q.Record.Kind() == record.Template:
			s.Templates++
		default:
			s.Count++
		}
		p, is := q.problem()
		if is {
			s.add(p.cause, q.note())
		}
		if p.cause == rowSequencesOwnerGone.cause && q.Used() >= nearlyUsed { // merge may drop that problem
			near := q.note()
			near.Why = q.Why
			s.add(rowSequencesNearlyUsed.cause, near)
		}
	}
	s.sortAndCut()
	if s.Count+s.Templates+len(s.ByCause) == 0 {
		return nil
	}
	return s
}

// sortAndCut sorts the sequences of each problem, and leaves as many of them as SequenceGroup has at most.
func (s *Sequences) sortAndCut() {
	for cause, some := range s.ByCause {
		slices.SortFunc(some.First, func(a, b SequenceNote) int { return cmp.Compare(a.Name, b.Name) })
		s.ByCause[cause] = SequenceGroup{some.Count, some.First[:min(firstSequences, len(some.First))]}
	}
}

func (r *SequenceReport) note() SequenceNote {
	w := SequenceNote{Name: words.Clean(r.Name), Why: r.Why, Held: r.atNode().Held, PerSecond: r.atNode().PerSecond}
	if r.State == SeqDamaged {
		return w // nothing else is known
	}
	w.Taken, w.Positions = r.usedOf()
	switch p, _ := r.problem(); p.adds {
	case addRefusal:
		w.Why = string(r.Refusal)
	case addOwner:
		if w.Why = words.Clean(r.Record.Address); r.KnownSections > 0 {
			w.Why = OfSections(r.ownersGone(), r.KnownSections)
		}
	}
	return w
}

func (s *Sequences) add(cause string, q SequenceNote) {
	some := s.ByCause[cause]
	s.ByCause[cause] = SequenceGroup{some.Count + 1, append(some.First, q)}
}

// Problems returns the problems of sequences, the worst first. now is Unix ms.
func (s *Sequences) Problems(now int64) (out []Problem) {
	if s == nil {
		return nil
	}
	for _, r := range table {
		some, is := s.ByCause[r.cause]
		if !is || some.Count == 0 || len(some.First) == 0 {
			continue
		}
		var names []string
		for _, q := range some.First {
			names = append(names, q.text(r.adds, now))
		}
		p := r.problem(": " + words.List(names, some.Count))
		p.Advice = strings.Replace(p.Advice, "NAME", some.First[0].Name, 1)
		out = append(out, p)
	}
	return out
}
