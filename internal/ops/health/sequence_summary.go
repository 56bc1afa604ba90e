package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/ops/words"
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

// stateRanks has the states of sections, the worst first.
var stateRanks = []string{SeqDamaged, SeqFrozen, SeqExhausted, SeqAfterLoss, SeqInUse}

// SequenceState returns the state of a sequence by its record.
func SequenceState(r record.Record, st record.State) string {
	s := r.NextBlockOutlook(st)
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

// Problem returns the row of the sequence's problem, and false if it has none.
func (r *SequenceReport) Problem() (p Problem, is bool) {
	switch r.State {
	case SeqDamaged:
		return sequencesDamaged, true
	case SeqFrozen:
		return sequencesFrozen, true
	case SeqExhausted:
		return sequencesExhausted, true
	case SeqDeleted:
		return p, false
	}
	switch r.atNode().Refusal {
	case record.CeilingReached:
		return sequencesCeiling, true
	case record.NoOwner:
		return sequencesNoOwner, true
	case record.NoBlock, record.Confirming, record.Unknown:
		return sequencesUnserved, true
	}
	if r.ownersGone() > 0 {
		return sequencesOwnerGone, true
	}
	return sequencesNearlyUsed, r.Used() >= nearlyUsed
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

// nearlyUsed is the used part from which a sequence needs attention.
const nearlyUsed = 0.8

// usage returns how many of all values nodes have taken. For a template, it is how many of the
// sequences that it may create exist.
func (r *SequenceReport) usage() (done, all int64) {
	if r.MaxNames > 0 {
		return r.Names, r.MaxNames
	}
	return r.Taken, r.Positions
}

// Used returns the part of all values that nodes have taken, or of the names of a template, from 0 to 1.
func (r *SequenceReport) Used() float64 { return part(r.usage()) }

// UsedText returns Used in percent.
func (r *SequenceReport) UsedText() string { return partText(r.usage()) }

func part(done, all int64) float64 { return min(1, float64(done)/float64(all)) }

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

// WrongSequence is the part of a sequence's report that a problem shows: SequenceReport.wrong makes it. It is not the
// whole report, because addAnswer adds up what several nodes say of one sequence, and STATUS carries up to 20 for each
// problem.
type WrongSequence struct {
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

// firstSequences is the number of sequences that SomeSequences has at most.
const firstSequences = 20

// CountSequences counts sequences, and lists those that have a problem. It returns nil if there are none but deleted
// ones.
func CountSequences(all []SequenceReport) *Sequences {
	s := &Sequences{Wrong: map[string]SomeSequences{}}
	for k := range all {
		q := &all[k]
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
	s.shorten()
	if s.Count+s.Templates+len(s.Wrong) == 0 {
		return nil
	}
	return s
}

// shorten sorts the sequences of each problem, and leaves as many of them as SomeSequences has at most.
func (s *Sequences) shorten() {
	for cause, some := range s.Wrong {
		slices.SortFunc(some.First, func(a, b WrongSequence) int { return cmp.Compare(a.Name, b.Name) })
		s.Wrong[cause] = SomeSequences{some.Count, some.First[:min(firstSequences, len(some.First))]}
	}
}

func (r *SequenceReport) wrong() WrongSequence {
	w := WrongSequence{Name: words.Clean(r.Name), Why: r.Why, Held: r.atNode().Held, PerSecond: r.atNode().PerSecond}
	if r.State == SeqDamaged {
		return w // nothing else is known
	}
	w.Taken, w.Positions = r.usage()
	switch p, _ := r.Problem(); p.Cause {
	case sequencesUnserved.Cause, sequencesNoOwner.Cause:
		w.Why = string(r.Refusal)
	case sequencesOwnerGone.Cause:
		if w.Why = words.Clean(r.Record.Address); r.KnownSections > 0 {
			w.Why = words.OfSections(r.ownersGone(), r.KnownSections)
		}
	}
	return w
}

func (s *Sequences) add(cause string, q WrongSequence) {
	some := s.Wrong[cause]
	s.Wrong[cause] = SomeSequences{some.Count + 1, append(some.First, q)}
}

// addAnswer adds what a node says of sequences: their rates, and the problems that ZooKeeper's records do not show. who
// names the node, and ready says whether it is. read: the records were read. They decide then what is used up, because
// a node may not have followed a change yet. The caller must call shorten after the last node.
func (s *Sequences) addAnswer(who string, ready, read bool, said Sequences) {
	for cause, some := range said.Wrong {
		for _, q := range some.First {
			why := strings.TrimSpace(words.Clean(q.Why) + " at " + who)
			inRecords := q.Why == "" && cause != sequencesCeiling.Cause // the records show such a problem, too
			switch known := s.find(q.Name, cause); {
			case unserved(cause) && !ready: // the node's own problem says so
			case known == nil && read && inRecords: // the records were read, and do not show it
			case known == nil:
				q.Name, q.Why = words.Clean(q.Name), why
				s.add(cause, q)
			default:
				known.Held += q.Held
				if known.PerSecond += q.PerSecond; unserved(cause) && known.Why != "" {
					known.Why += ", " + why
				}
			}
		}
	}
}

// unserved reports whether a cause is that a node gets no values of a sequence.
func unserved(cause string) bool {
	return cause == sequencesUnserved.Cause || cause == sequencesNoOwner.Cause
}

// find returns the entry of a sequence that has this problem, else that with a problem that outweighs it. It returns nil
// for none.
func (s *Sequences) find(name, cause string) *WrongSequence {
	causes := []string{cause}
	for _, p := range AllProblems[:max(0, row(cause))] {
		causes = append(causes, p.Cause)
	}
	for _, cause := range causes {
		first := s.Wrong[cause].First
		if at := slices.IndexFunc(first, func(q WrongSequence) bool { return q.Name == name }); at >= 0 {
			return &first[at]
		}
	}
	return nil
}

// Problems returns the problems of sequences, the worst first. now is Unix ms.
func (s *Sequences) Problems(now int64) (out []Problem) {
	if s == nil {
		return nil
	}
	for _, p := range AllProblems {
		some, is := s.Wrong[p.Cause]
		if !is || some.Count == 0 || len(some.First) == 0 {
			continue
		}
		var names []string
		for _, q := range some.First {
			names = append(names, q.text(p.Cause, now))
		}
		p.Advice = strings.Replace(p.Advice, "NAME", some.First[0].Name, 1)
		out = append(out, p.With(": "+words.Listed(names, some.Count)))
	}
	return out
}

// UsedUp returns when the values are used up at the rate that is known, "" if no rate is known or none are left. now is
// Unix ms.
func (r *SequenceReport) UsedUp(now int64) string { return r.wrong().usedUp(now) }

func (q WrongSequence) usedUp(now int64) string {
	left := max(0, q.Positions-q.Taken) + q.Held
	if q.PerSecond <= 0 || left == 0 {
		return ""
	}
	return usedUpText(left, q.PerSecond, now)
}

// text returns the name of a sequence, with what an operator should know.
func (q WrongSequence) text(cause string, now int64) string {
	why := q.Why
	switch {
	case cause == sequencesNearlyUsed.Cause:
		why = partText(q.Taken, q.Positions)
	case cause == sequencesExhausted.Cause && q.Held > 0:
		why = "nodes hold " + words.Thousands(fmt.Sprint(q.Held))
	}
	if when := q.usedUp(now); why != q.Why && when != "" {
		why += ", used up " + when + ", at " + words.RateText(q.PerSecond)
	}
	if why == "" {
		return q.Name
	}
	return q.Name + " (" + why + ")"
}

// partText returns a part in percent. Only 0 has 0%, and only all has 100%.
func partText(done, all int64) string {
	percent := part(done, all) * 100
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
