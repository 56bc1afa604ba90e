package positions

import (
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// Block is the positions from First to End-1.
type Block struct{ First, End int64 }

// Len returns the number of positions.
func (b Block) Len() int64 { return b.End - b.First }

// AppendRuns appends the values of the positions to to.
func (b Block) AppendRuns(to []worker.Run, v *sequence.Values) []worker.Run {
	if !v.Keyed() {
		first := worker.ID(v.Map.Value(b.First))
		return append(to, worker.Run{First: first, Step: worker.ID(v.Increment), Len: int(b.Len())})
	}
	for p := b.First; p < b.End; p++ {
		to = append(to, worker.Run{First: worker.ID(v.Value(p)), Len: 1})
	}
	return to
}

// Stock is the positions of one sequence that a node has and has not issued. It gives them out
// in ascending order and never goes back to a lower one. Only those below its bound may be given
// out: see SetBound. The zero value is empty, with the bound 0. A Stock is not safe for concurrent
// use.
type Stock struct {
	blocks []Block // ascending, none empty, no two touch
	left   int64   // positions
	free   int64   // of them below bound
	bound  int64
	// floor is the lowest position that may be added.
	floor int64
}

// SetBound sets the position at and above which no position is given out.
func (s *Stock) SetBound(p int64) {
	s.bound, s.free = p, 0
	for _, b := range s.blocks {
		s.free += min(b.End, p) - min(b.First, p)
	}
}

// Bound returns the bound, and Free the number of positions below it.
func (s *Stock) Bound() int64 { return s.bound }
func (s *Stock) Free() int64  { return s.free }

// After returns the position that follows the n lowest ones. If there are no more than n, it is the one after
// the last, and 0 for an empty stock.
func (s *Stock) After(n int64) (p int64) {
	for _, b := range s.blocks {
		if p = b.First + min(n, b.Len()); n < b.Len() {
			return p
		}
		n -= b.Len()
	}
	return p
}

// AfterWhole returns the position that follows the first n positions without a gap, as TakeWhole would take
// them if all were below the bound. It is 0 if there are none.
func (s *Stock) AfterWhole(n int64) int64 {
	for _, b := range s.blocks {
		if b.Len() >= n {
			return b.First + n
		}
	}
	return 0
}

// From returns the positions at and above p.
func (s *Stock) From(p int64) (rest []Block) {
	for _, b := range s.blocks {
		if b.First = max(b.First, p); b.Len() > 0 {
			rest = append(rest, b)
		}
	}
	return rest
}

// Left returns the number of positions.
func (s *Stock) Left() int64 { return s.left }

// Longest returns the number of positions in the longest part that follow each other.
func (s *Stock) Longest() (n int64) {
	for _, b := range s.blocks {
		n = max(n, b.Len())
	}
	return n
}

// Tail returns the positions at the end of the stock that follow each other without a gap. They are
// empty if the stock is.
func (s *Stock) Tail() Block {
	if len(s.blocks) == 0 {
		return Block{}
	}
	return s.blocks[len(s.blocks)-1]
}

// Add adds a block. It reports false and adds nothing if the block is empty or begins below a
// position that was added or skipped before: later requests would get lower positions.
func (s *Stock) Add(b Block) bool {
	if b.Len() <= 0 || b.First < s.floor {
		return false
	}
	s.left += b.Len()
	s.free += min(b.End, s.bound) - min(b.First, s.bound)
	if n := len(s.blocks); n > 0 && s.blocks[n-1].End == b.First {
		s.blocks[n-1].End = b.End
	} else {
		s.blocks = append(s.blocks, b)
	}
	s.floor = b.End
	return true
}

// Take removes the n lowest positions and appends them to to. It reports false and removes nothing
// if there are fewer below the bound.
func (s *Stock) Take(n int64, to []Block) ([]Block, bool) {
	if n > s.free {
		return to, false
	}
	for n > 0 {
		part := Block{s.blocks[0].First, min(s.blocks[0].End, s.blocks[0].First+n)}
		n -= part.Len()
		to = append(to, part)
		s.skipTo(part.End)
	}
	return to, true
}

// TakeWhole removes n positions that follow each other. Lower positions in blocks that are too
// short are skipped for ever. It reports false and removes nothing if no block is long enough
// below the bound.
func (s *Stock) TakeWhole(n int64) (Block, bool) {
	for _, b := range s.blocks {
		if b.Len() >= n && b.First+n <= s.bound {
			part := Block{b.First, b.First + n}
			s.skipTo(part.End)
			return part, true
		}
	}
	return Block{}, false
}

// SkipTo removes all positions below p. Add refuses them from now on.
func (s *Stock) SkipTo(p int64) {
	s.skipTo(p)
	s.floor = max(s.floor, p)
}

func (s *Stock) skipTo(p int64) {
	done := 0
	for i := range s.blocks {
		b := &s.blocks[i]
		first := min(max(b.First, p), b.End)
		s.left -= first - b.First
		s.free -= min(first, s.bound) - min(b.First, s.bound)
		if b.First = first; b.Len() == 0 {
			done++
		}
	}
	if s.blocks = s.blocks[done:]; len(s.blocks) == 0 {
		s.blocks = nil
	}
}

// Drop removes all positions.
func (s *Stock) Drop() { s.skipTo(s.floor) }
