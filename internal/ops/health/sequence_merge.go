package health

import (
	"slices"
	"strings"

	"github.com/flaked/flaked/internal/ops/words"
)

// merge adds to the records of sequences what nodes say of sequences: their rates, and the problems that the records do
// not show. It changes records, and returns them. nil stands for none. read: the records were read. They decide then
// what is used up, because a node may not have followed a change yet.
func merge(records *Sequences, read bool, nodes []WorkerReport) *Sequences {
	all := records
	for _, w := range nodes {
		if w.Says == nil {
			continue
		}
		if w.Says.Ready && records != nil { // this node would say so if requests for them failed
			delete(records.Wrong, sequencesOwnerGone.Cause)
		}
		if w.Says.Sequences == nil {
			continue
		}
		if all == nil {
			all = &Sequences{Wrong: map[string]SomeSequences{}}
		}
		all.addAnswer(Whom([]WorkerReport{w}), w.Says.Ready, read, *w.Says.Sequences)
	}
	if all != nil {
		all.shorten()
	}
	return all
}

// addAnswer adds what a node says of sequences. who names the node, and ready says whether it is. For read, see merge.
func (s *Sequences) addAnswer(who string, ready, read bool, said Sequences) {
	for cause, some := range said.Wrong {
		if unserved(cause) && !ready {
			continue // the node's own problem says so
		}
		for _, q := range some.First {
			s.addSaid(who, cause, read, q)
		}
	}
}

// addSaid adds what a node says of a sequence with a problem.
func (s *Sequences) addSaid(who, cause string, read bool, q WrongSequence) {
	why := strings.TrimSpace(words.Clean(q.Why) + " at " + who)
	inRecords := q.Why == "" && cause != sequencesCeiling.Cause // the records show such a problem, too
	switch known := s.find(q.Name, cause); {
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
