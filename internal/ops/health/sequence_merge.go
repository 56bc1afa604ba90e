package health

import (
	"slices"
	"strings"

	"github.com/flaked/flaked/internal/ops/words"
)

// merge adds what nodes say of sequences to what the records say: rates, and problems that the records do not show. nil
// stands for no sequences. read means that the records were read. They then decide which sequences are used up, because
// a node may not know of a change yet.
func merge(records *Sequences, read bool, nodes []WorkerReport) *Sequences {
	all, most := records.clone(), map[string]int{}
	isReady := func(w WorkerReport) bool { return w.Says != nil && w.Says.Ready }
	if all != nil && slices.ContainsFunc(nodes, isReady) { // a ready node would say so if requests for these failed
		delete(all.ByCause, rowSequencesOwnerGone.cause)
	}
	for _, w := range nodes {
		if w.Says == nil || w.Says.Sequences == nil {
			continue
		}
		if all == nil {
			all = &Sequences{ByCause: map[string]SequenceGroup{}}
		}
		for cause, n := range all.addAnswer(Whom([]WorkerReport{w}), w.Says.Ready, read, *w.Says.Sequences) {
			most[cause] = max(most[cause], n)
		}
	}
	if all == nil {
		return nil
	}
	for cause, n := range most {
		if some := all.ByCause[cause]; len(some.First) > 0 {
			all.ByCause[cause] = SequenceGroup{max(n, some.Count), some.First}
		}
	}
	all.sortAndCut()
	return all
}

// clone returns a copy that may be changed, nil for nil.
func (s *Sequences) clone() *Sequences {
	if s == nil {
		return nil
	}
	c := &Sequences{Count: s.Count, Templates: s.Templates, ByCause: map[string]SequenceGroup{}}
	for cause, some := range s.ByCause {
		c.ByCause[cause] = SequenceGroup{some.Count, slices.Clone(some.First)}
	}
	return c
}

// addAnswer adds what a node says of sequences. who names the node, and ready means that the node is ready. For read,
// see merge. addAnswer returns how many sequences have each problem at this node. Two nodes may count the same
// sequences, so their numbers must not be added up.
func (s *Sequences) addAnswer(who string, ready, read bool, said Sequences) map[string]int {
	if !read {
		s.Count, s.Templates = max(s.Count, said.Count), max(s.Templates, said.Templates)
	}
	counts := map[string]int{}
	for cause, some := range said.ByCause {
		r := rowOf(cause)
		if r.unserved() && !ready {
			continue // the node's own problem says so
		}
		if !read || r.onlyNodesSay { // else the records count those that the node does not name
			counts[cause] = some.Count - len(some.First)
		}
		for _, q := range some.First {
			counts[cause] += oneIf(s.addSaid(who, r, read, q))
		}
	}
	return counts
}

// addSaid adds what a node says of a sequence with a problem, and reports whether the sequence counts for this problem.
func (s *Sequences) addSaid(who string, r row, read bool, q SequenceNote) bool {
	why := strings.TrimSpace(words.Clean(q.Why) + " at " + who)
	known, as := s.find(q.Name, r.cause)
	switch {
	case known == nil && read && q.Why == "" && !r.onlyNodesSay: // the records were read, and do not show it
		return false
	case known == nil:
		q.Name, q.Why = words.Clean(q.Name), why
		s.add(r.cause, q)
	default:
		known.Held += q.Held
		if known.PerSecond += q.PerSecond; r.unserved() && known.Why != "" {
			known.Why += ", " + why
		}
		return as == r.cause
	}
	return true
}

// find returns the entry of a sequence with this problem, or else its entry with a worse problem. as is the cause of
// the entry's problem. find returns nil if there is no entry.
func (s *Sequences) find(name, cause string) (q *SequenceNote, as string) {
	causes := []string{cause}
	for _, r := range table[:place(cause)] {
		causes = append(causes, r.cause)
	}
	for _, cause := range causes {
		first := s.ByCause[cause].First
		if at := slices.IndexFunc(first, func(q SequenceNote) bool { return q.Name == name }); at >= 0 {
			return &first[at], cause
		}
	}
	return nil, ""
}
