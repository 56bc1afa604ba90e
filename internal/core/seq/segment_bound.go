package seq

import "time"

// leastMargin is the number of positions below a bound for a sequence that is hardly used: so many are lost at kill -9.
// A node that holds blocks of many sequences writes its journal less often for each of them.
func leastMargin(sequences int) int64 { return 2 + int64(sequences)/1000 }

// planBound returns the bound that should count next. Below it, the stock has the positions that the waiting requests
// need, and a margin: what the node issues in a second and a quarter, but at least minMargin. If the bound must fall,
// planBound lowers it at once, in memory. busy: the margin is above minMargin, so the bound must fall when the sequence
// has been quiet for a second.
func (s *segment) planBound(now, minMargin int64) (bound int64, busy bool) {
	second := s.secondRate.update(s.Issued, now)
	margin := max(minMargin, second+second/4)
	s.wakeBelow = margin / 5
	bound = s.stock.Bound()
	need := s.needs().all
	if next := s.boundFor(need, margin); next > bound && (need > 0 || s.stock.Free() <= s.wakeBelow) {
		bound = next
	} else if s.stock.Free() > margin+margin/2 && need == 0 {
		bound = s.stock.After(margin)
		s.traceBound(bound)
		//mutant:s30-lowered-on-the-disk-first by seqsim ->
		s.stock.SetBound(bound)
	}
	return bound, margin > minMargin
}

// boundFor returns a bound below which requests for need positions find theirs, and margin more.
func (s *segment) boundFor(need, margin int64) int64 {
	bound := s.stock.After(need + margin)
	for _, r := range s.Waiting {
		if r.Whole { // the blocks before may be too short
			bound = max(bound, s.stock.AfterWhole(r.N))
		}
	}
	return bound
}

// waitsForDisk reports whether requests wait that the stock could answer, but for its bound.
func (s *segment) waitsForDisk() bool { return len(s.Waiting) > 0 && !s.needs().lacking }

// traceBound traces that positions below bound may be issued from now on (S30). Mu is held.
func (s *segment) traceBound(bound int64) {
	s.Trace.Step("journal", "name", s.Name, "id", s.Known.ID, "bound", bound)
}

// secondRate counts what a sequence issues in a second.
type secondRate struct {
	beganAt, issued int64 // when the present second began, ns of AtMost, and what was issued before
	last            int64 // what was issued in a second before
}

// update returns what was issued in the last second, or in the present one if that is more.
func (p *secondRate) update(issued, now int64) int64 {
	n := issued - p.issued
	if passed := now - p.beganAt; passed >= int64(time.Second) {
		p.last = int64(float64(n) * float64(time.Second) / float64(passed))
		p.beganAt, p.issued = now, issued
		return p.last
	}
	return max(n, p.last)
}
