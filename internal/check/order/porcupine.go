package order

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"
)

// partSize is the number of requests after which the next quiet moment ends a part of a history.
const partSize = 500

// Rising returns requests that break the order of counters that rise, at most one pair for each counter. A counter
// may have any gaps, so requests of unknown outcome take no part. counter returns to which counter a request belongs.
func Rising[K comparable](all []Request, counter func(Request) K) (found []Violation) {
	histories := map[K][]Request{}
	for _, r := range answered(all) {
		histories[counter(r)] = append(histories[counter(r)], r)
	}
	for _, mine := range histories {
		found = append(found, check(mine, math.MaxInt64/2, nil, partSize)...)
	}
	return found
}

// Strict returns requests that break the order of a strict sequence, which gives the values from the lowest one on in
// the order of real time. Values are missing only below those at which an operator let it go on, jumps, and as many as
// requests of unknown outcome had asked for before. Requests with one key get one value.
func Strict(all []Request, jumps []int64) []Violation { return check(all, 0, jumps, partSize) }

// taken is a request, the next value of the counter when it was served, and how many values are missing from there.
type taken struct {
	Request
	next, missing int64
}

// take returns the requests in the order of their values, those of unknown outcome first.
//
// The values that a request found and left are known from the history. So porcupine need not try other orders, and it
// decides about a hundred requests at once. A model that allows less cannot accept a wrong history.
//
// A request of unknown outcome adds to what may be missing when it is sent: later would be no better. If its key was
// answered later, it may have taken that value until then.
func take(all []Request, jumps []int64) (sorted []taken) {
	first := map[string]Request{} // answer, by key
	for _, r := range answered(all) {
		if a, ok := first[r.Key]; r.Key != "" && (!ok || r.Answered < a.Answered) {
			first[r.Key] = r
		}
	}
	for _, r := range all {
		if a, ok := first[r.Key]; r.Lost > 0 && !ok {
			r.First, r.Answered = math.MinInt64, r.Sent
		} else if r.Lost > 0 && r.Sent > a.Answered {
			continue // it could only have got the same value again
		} else if r.Lost > 0 {
			r.Lost, r.First, r.Last, r.Answered = 0, a.First, a.Last, a.Answered
		}
		sorted = append(sorted, taken{Request: r})
	}
	slices.SortFunc(sorted, func(a, b taken) int {
		return cmp.Or(byValue(a.Request, b.Request), cmp.Compare(a.Key, b.Key))
	})
	next := int64(math.MinInt64) // value
	for i := range sorted {
		r := &sorted[i]
		switch {
		case r.Lost > 0:
			continue
		case next == math.MinInt64:
			next = r.First
		case r.Key != "" && r.Key == sorted[i-1].Key && r.First == sorted[i-1].First:
			r.next, r.missing = sorted[i-1].next, sorted[i-1].missing
			continue
		}
		r.next, r.missing = next, r.First-next
		for _, jump := range jumps {
			if next <= jump && jump <= r.First {
				r.missing = min(r.missing, r.First-jump)
			}
		}
		next = max(next, r.Last+1)
	}
	return sorted
}

// state is that of the model: a counter, and a map from keys to values.
type state struct {
	next  int64 // value
	spare int64 // values that requests of unknown outcome asked for, and that are not missing yet
	keys  map[string]int64
}

// step is the model. It reports whether a counter in a state may answer a request so, and returns the state after it.
func step(before, request, _ any) (bool, any) {
	s, r := before.(state), request.(taken)
	if r.Lost > 0 {
		s.spare += r.Lost
		return true, s
	}
	if value, ok := s.keys[r.Key]; ok {
		return r.First == value, s
	}
	legal := s.next == r.next && r.next <= r.First && r.missing <= s.spare
	if s.next, s.spare = r.Last+1, s.spare-r.missing; r.Key != "" {
		s.keys = maps.Clone(s.keys)
		s.keys[r.Key] = r.First
	}
	return legal, s
}

// check lets porcupine decide about each part of the history of a counter, and returns the first violation.
//
// The history is cut at quiet moments, when no request is under way. There the counter's state is certain: whatever the
// order before was, it has served exactly the requests before. So the parts have an order if and only if the whole has.
func check(all []Request, spare int64, jumps []int64, size int) []Violation {
	history, keys := take(all, jumps), map[string]int64{}
	s := state{spare: spare}
	if i := slices.IndexFunc(history, func(r taken) bool { return r.Lost == 0 }); i >= 0 {
		s.next = history[i].next
	}
	for _, part := range cut(history, size) {
		s.keys = map[string]int64{} // those of this part: each step copies them
		for _, r := range part {
			if v, ok := keys[r.Key]; ok {
				s.keys[r.Key] = v
			}
		}
		if v := s.violation(part); v != nil {
			return v
		}
		for _, r := range part {
			_, after := step(s, r, nil)
			s = after.(state)
		}
		maps.Copy(keys, s.keys)
	}
	return nil
}

// violation lets porcupine decide about a part. The requests that it returns show why there is no order: the lowest one
// that porcupine could not place, and one that was answered before, or else the one with the next lower values.
func (s state) violation(part []taken) []Violation {
	var all []porcupine.Operation
	for _, r := range part {
		all = append(all, porcupine.Operation{Call: r.Sent, Return: r.Answered, Input: r})
	}
	same := func(a, b any) bool { // porcupine asks only after the same requests, so the keys are the same
		return a.(state).next == b.(state).next && a.(state).spare == b.(state).spare
	}
	model := porcupine.Model{Init: func() any { return s }, Step: step, Equal: same}
	if porcupine.CheckOperations(model, all) {
		return nil
	}
	_, info := porcupine.CheckOperationsVerbose(model, all, 0)
	var placed []int
	for _, p := range info.PartialLinearizations()[0] {
		if len(p) > len(placed) {
			placed = p
		}
	}
	wrong := -1
	var v Violation
	for i, r := range part {
		switch {
		case slices.Contains(placed, i) || r.Lost > 0:
		case wrong < 0:
			if wrong, v = i, (Violation{Rule: InOrder, After: r.Request}); i > 0 && part[i-1].Lost == 0 {
				v.Before = part[i-1].Request
			}
		case r.Answered < v.After.Sent && v.Before.First <= v.After.First:
			v.Before = r.Request
		}
	}
	return []Violation{v}
}

// cut splits requests, which are in the order of their values, into parts: all requests of a part were answered before
// those of the next one were sent. A part has size requests or more, as many as there are until a quiet moment. Each
// part is in the order of the values.
func cut(all []taken, size int) (parts [][]taken) {
	bySent := slices.Clone(all)
	slices.SortStableFunc(bySent, func(a, b taken) int { return cmp.Compare(a.Sent, b.Sent) })
	var starts []int64
	for i, n, last := 0, 0, int64(math.MinInt64); i < len(bySent); i, n = i+1, n+1 {
		if i == 0 || n >= size && bySent[i].Sent > last {
			starts, n = append(starts, bySent[i].Sent), 0
		}
		last = max(last, bySent[i].Answered)
	}
	parts = make([][]taken, len(starts))
	for _, r := range all {
		i, exact := slices.BinarySearch(starts, r.Sent)
		if !exact {
			i--
		}
		parts[i] = append(parts[i], r)
	}
	return parts
}
