package sequence

// Block is the positions from First to End-1.
type Block struct{ First, End int64 }

// Len returns the number of positions.
func (b Block) Len() int64 { return b.End - b.First }

// Stock is the positions of one sequence that a node has and has not issued. It gives them out
// in ascending order and never goes back to a lower one. The zero value is empty. A Stock is not
// safe for concurrent use.
type Stock struct {
	blocks []Block // ascending, none empty, no two touch
	left   int64
	// floor is the lowest position that may be added.
	floor int64
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
	if n := len(s.blocks); n > 0 && s.blocks[n-1].End == b.First {
		s.blocks[n-1].End = b.End
	} else {
		s.blocks = append(s.blocks, b)
	}
	s.floor = b.End
	return true
}

// Take removes the n lowest positions and appends them to to. It reports false and removes nothing
// if there are fewer.
func (s *Stock) Take(n int64, to []Block) ([]Block, bool) {
	if n > s.left {
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
// short are skipped for ever. It reports false and removes nothing if no block is long enough.
func (s *Stock) TakeWhole(n int64) (Block, bool) {
	for _, b := range s.blocks {
		if b.Len() >= n {
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
