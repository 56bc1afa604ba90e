package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// The states of a named sequence.
const (
	SeqInUse     = "in-use"
	SeqTemplate  = "template"
	SeqFamily    = "family"
	SeqAfterLoss = "after-loss"
	SeqFrozen    = "frozen"
	SeqExhausted = "exhausted"
	SeqDamaged   = "damaged"
	SeqDeleted   = "deleted"
)

// SequenceState returns the state of a sequence by its record.
func SequenceState(r record.Record, st record.State) string {
	s := r.Standing(st)
	switch {
	case r.Kind() == record.Tombstone:
		return SeqDeleted
	case r.Next >= r.Positions(), s.Refusal == record.NoSequence:
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

// Sequence is a named sequence as ZooKeeper or a node knows it.
type Sequence struct {
	mode.Use
	State string
	// Why has details of the state, for people.
	Why string
	// Sections is the number of sections of a family that are known, and Owned that of those that this node owns.
	Sections, Owned int
	// Gone is the number of sections whose owner has not renewed its lease. A plain sequence has one section.
	Gone int
}

// InUse returns a sequence as a node knows it.
func InUse(u mode.Use, st record.State) Sequence {
	s := Sequence{Use: u, State: SequenceState(u.Record, st)}
	if u.Refusal == record.Frozen && s.State != SeqFrozen {
		s.State, s.Why = SeqFrozen, "its record or key is damaged or missing"
	}
	return s
}

// Recorded returns a sequence as ZooKeeper has it. now is Unix ms.
func Recorded(n record.Named, st record.State, now int64) Sequence {
	s := Sequence{Use: mode.Use{Name: n.Name, Record: n.Record}}
	switch {
	case n.Err != nil:
		s.State, s.Why = SeqDamaged, Clean(n.Err.Error())
	case len(n.Sections) > 0:
		var sections []Sequence
		for _, section := range n.Sections {
			sections = append(sections, Recorded(section, st, now))
		}
		s = asFamily(sections)
		s.Name, s.Record = n.Name, n.Record
	default:
		s.State, s.Gone = SequenceState(n.Record, st), truth(OwnerGone(n, now))
	}
	if missing := n.Record.Sections - len(n.Sections); missing > 0 && n.Record.Kind() == record.Family && n.Err == nil {
		s.State, s.Why = SeqDamaged, OfSections(missing, n.Record.Sections)+" missing in ZooKeeper"
	}
	return s
}

// Problem returns the row of the sequence's problem, and false if it has none.
func (s Sequence) Problem() (p Problem, is bool) {
	switch {
	case s.State == SeqDamaged:
		return sequencesDamaged, true
	case s.State == SeqFrozen:
		return sequencesFrozen, true
	case s.State == SeqExhausted:
		return sequencesExhausted, true
	case s.State == SeqDeleted:
		return p, false
	case s.Refusal == record.CeilingReached:
		return sequencesCeiling, true
	case s.Refusal == record.NoOwner:
		return sequencesNoOwner, true
	case s.Refusal == record.NoBlock, s.Refusal == record.Confirming, s.Refusal == record.Unknown:
		return sequencesUnserved, true
	case s.Gone > 0:
		return sequencesOwnerGone, true
	}
	return sequencesNearlyUsed, Part(Taken(s.Record)) >= nearlyUsed
}

// nearlyUsed is the used part from which a sequence needs attention.
const nearlyUsed = 0.8

// Taken returns how many of all values nodes have taken. For a template, it is how many of the
// sequences that it may create exist.
func Taken(r record.Record) (done, all int64) {
	if r.MaxNames > 0 {
		return r.Names, r.MaxNames
	}
	return r.Next, r.Positions()
}

// Part returns done as a part of all, from 0 to 1.
func Part(done, all int64) float64 { return min(1, float64(done)/float64(all)) }

// PartText returns Part in percent. Only 0 has 0%, and only all has 100%.
func PartText(done, all int64) string {
	percent := Part(done, all) * 100
	switch {
	case done == 0:
		return "0%"
	case done >= all:
		return "100%"
	case percent < 0.1:
		return "<0.1%"
	case percent > 99.9:
		return ">99.9%"
	}
	return fmt.Sprintf("%.1f%%", percent)
}

// RateText returns a number of values or requests a second.
func RateText(perSecond float64) string {
	switch {
	case perSecond == 0:
		return "0/s"
	case perSecond < 0.05:
		return "<0.1/s"
	case perSecond < 10:
		return fmt.Sprintf("%.1f/s", perSecond)
	}
	return Thousands(fmt.Sprintf("%.0f", math.Round(perSecond))) + "/s"
}

// usedUpText returns when so many values are used up at this rate, "in about 12 days, 2026-12-11". It gets more exact
// only as the time gets shorter, so that the text changes seldom. now is Unix ms.
func usedUpText(left int64, perSecond float64, now int64) string {
	const minute, hour, day, year = 60, 3600, 24 * 3600, 365 * 24 * 3600
	seconds := float64(left) / perSecond
	if seconds >= 100*year {
		return "in more than 100 years"
	}
	ends := time.UnixMilli(now).Add(time.Duration(seconds * float64(time.Second))).UTC()
	switch {
	case seconds >= 2*year:
		return fmt.Sprintf("in about %.0f years, %s", seconds/year, ends.Format("2006"))
	case seconds >= 2*day:
		return fmt.Sprintf("in about %.0f days, %s", seconds/day, ends.Format(time.DateOnly))
	case seconds >= 2*hour:
		return fmt.Sprintf("in about %.0f hours, %s UTC", seconds/hour, ends.Format("2006-01-02 15:04"))
	case seconds >= 2*minute:
		return fmt.Sprintf("in about %.0f minutes, %s UTC", seconds/minute, ends.Format("15:04"))
	}
	return "in less than 2 minutes"
}

// Sequences counts named sequences, and lists those that have a problem.
type Sequences struct {
	// Count is the number of sequences, and Templates that of the templates. Deleted and damaged ones do not count.
	Count     int `json:"count"`
	Templates int `json:"templates"`
	// Wrong has the sequences with a problem, by its cause.
	Wrong map[string]SomeSequences `json:"wrong"`
}

// SomeSequences are the sequences with one problem.
type SomeSequences struct {
	Count int `json:"count"`
	// First are the first of them, by name.
	First []WrongSequence `json:"first"`
}

// WrongSequence is a sequence with a problem.
type WrongSequence struct {
	Name string `json:"name"`
	// Why has details for people, "" for none.
	Why string `json:"why"`
	// Taken is the number of values that nodes have taken, and Left that of the others.
	Taken int64 `json:"taken,string"`
	Left  int64 `json:"left,string"`
	// Held is the number of values that nodes have taken and not issued, as far as they have said it.
	Held int64 `json:"held,string"`
	// PerSecond is the number of values that nodes issue in a second, as far as they have said it.
	PerSecond float64 `json:"values_per_second"`
}

// firstSequences is the number of sequences that SomeSequences has at most.
const firstSequences = 20

// CountSequences returns nil if there are no sequences.
func CountSequences(all []Sequence) *Sequences {
	s := &Sequences{Wrong: map[string]SomeSequences{}}
	for _, q := range all {
		switch {
		case q.State == SeqDeleted, q.State == SeqDamaged:
		case q.Record.Kind() == record.Template:
			s.Templates++
		default:
			s.Count++
		}
		if p, is := q.Problem(); is {
			s.add(p.Cause, q.wrong())
		}
	}
	for cause, some := range s.Wrong {
		slices.SortFunc(some.First, func(a, b WrongSequence) int { return cmp.Compare(a.Name, b.Name) })
		s.Wrong[cause] = SomeSequences{some.Count, some.First[:min(firstSequences, len(some.First))]}
	}
	if s.Count+s.Templates+len(s.Wrong) == 0 {
		return nil
	}
	return s
}

func (s Sequence) wrong() WrongSequence {
	w := WrongSequence{Name: Clean(s.Name), Why: s.Why, Held: s.Held, PerSecond: s.PerSecond}
	if s.State == SeqDamaged {
		return w // nothing else is known
	}
	done, all := Taken(s.Record)
	w.Taken, w.Left = done, all-min(done, all)
	switch p, _ := s.Problem(); p.Cause {
	case sequencesUnserved.Cause, sequencesNoOwner.Cause:
		w.Why = string(s.Refusal)
	case sequencesOwnerGone.Cause:
		if w.Why = Clean(s.Record.Address); s.Sections > 0 {
			w.Why = OfSections(s.Gone, s.Sections)
		}
	}
	return w
}

func (s *Sequences) add(cause string, q WrongSequence) {
	some := s.Wrong[cause]
	s.Wrong[cause] = SomeSequences{some.Count + 1, append(some.First, q)}
}

// heard adds what a node says of sequences: their rates, and the problems that ZooKeeper's records do not show. If the
// records were read, they decide what is used up: a node may not have followed a change yet.
func (s *Sequences) heard(who string, ready, read bool, said Sequences) {
	for cause, some := range said.Wrong {
		for _, q := range some.First {
			why := strings.TrimSpace(Clean(q.Why) + " at " + who)
			switch old := s.find(q.Name, cause); {
			case unserved(cause) && !ready: // the node's own problem says so
			case old == nil && read && q.Why == "" && cause != sequencesCeiling.Cause:
			case old == nil:
				q.Name, q.Why = Clean(q.Name), why
				s.add(cause, q)
			default:
				old.Held += q.Held
				if old.PerSecond += q.PerSecond; unserved(cause) && old.Why != "" {
					old.Why += ", " + why
				}
			}
		}
	}
}

// unserved reports whether a cause is that a node gets no values of a sequence.
func unserved(cause string) bool {
	return cause == sequencesUnserved.Cause || cause == sequencesNoOwner.Cause
}

// find returns the entry of a sequence that has this problem, or one that outweighs it. It returns nil for none.
func (s *Sequences) find(name, cause string) *WrongSequence {
	for other, some := range s.Wrong {
		at := slices.IndexFunc(some.First, func(q WrongSequence) bool { return q.Name == name })
		if at >= 0 && row(other) <= row(cause) {
			return &some.First[at]
		}
	}
	return nil
}

// Problems returns the problems of sequences. Clients get no values of them, or soon none. now is Unix ms.
func (s *Sequences) Problems(now int64) (out []Problem) {
	if s == nil {
		return nil
	}
	for _, p := range Causes {
		some, is := s.Wrong[p.Cause]
		if !is || some.Count == 0 || len(some.First) == 0 {
			continue
		}
		var names []string
		for _, q := range some.First {
			names = append(names, q.text(p.Cause, now))
		}
		p.Advice = strings.Replace(p.Advice, "NAME", some.First[0].Name, 1)
		out = append(out, p.With(": "+Listed(names, some.Count)))
	}
	return out
}

// UsedUp returns when the values are used up at the rate that is known, "" if no rate is known or none are left. now is
// Unix ms.
func (s Sequence) UsedUp(now int64) string { return s.wrong().usedUp(now) }

func (q WrongSequence) usedUp(now int64) string {
	if q.PerSecond <= 0 || q.Left+q.Held == 0 {
		return ""
	}
	return usedUpText(q.Left+q.Held, q.PerSecond, now)
}

// text returns the name of a sequence, with what an operator should know.
func (q WrongSequence) text(cause string, now int64) string {
	why := q.Why
	switch {
	case cause == sequencesNearlyUsed.Cause:
		why = PartText(q.Taken, q.Taken+q.Left)
	case cause == sequencesExhausted.Cause && q.Held > 0:
		why = "nodes hold " + Thousands(fmt.Sprint(q.Held))
	}
	if when := q.usedUp(now); why != q.Why && when != "" {
		why += ", used up " + when + ", at " + RateText(q.PerSecond)
	}
	if why == "" {
		return q.Name
	}
	return q.Name + " (" + why + ")"
}

// Plural returns a number with thousands separated, and a noun in singular or plural.
func Plural(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Thousands(fmt.Sprint(n)) + " " + noun
}
