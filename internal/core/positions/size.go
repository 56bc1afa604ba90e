package positions

import (
	"math/bits"
	"time"
)

// MinBlock and MaxBlock bound the size of a block that a node chooses by demand.
const (
	MinBlock = 32
	MaxBlock = 1 << 30
)

// growth is how many times larger than the last block a block may be.
const growth = 8

// leftPart divides the positions of a sequence that nobody has taken yet: a block is no larger, so that other nodes
// find some. A node takes a block when a tenth of the last one is used, so it holds an eighth of what is left, or less.
// It takes all n positions in about 16 ln(n/32) + 32 blocks, at any rate: 200 for a million.
const leftPart = 16

// Demand has the facts by which a node chooses the size of a block.
type Demand struct {
	// Rate is the positions that the node issued in a second, lately.
	Rate float64
	// Supply is the time that a block should last.
	Supply time.Duration
	// Smallest is the sequence's smallest block. Last is the size of the node's last one, 0
	// for none.
	Smallest, Last int64
	// Need is the number of positions that waiting requests lack.
	Need int64
	// Credit is the number of positions that the ceiling allows now. Left is the number that nobody has taken.
	Credit, Left int64
}

// Share returns the most positions of those that are left that a node takes in advance.
func (d Demand) Share() int64 { return max(d.Left/leftPart, 1) }

// Size returns the size of the next block: what the node issues in Supply, as a power of two. It is
// at most growth times the last block, a quarter of the credit, and Share, so that other nodes find some.
// It is never below Need. It may be above the credit: then the ceiling forbids the block.
func (d Demand) Size() int64 {
	size := powerOfTwo(int64(min(d.Rate*d.Supply.Seconds(), MaxBlock)))
	smallest := max(d.Smallest, MinBlock)
	size = min(size, growth*max(d.Last, smallest/growth), max(d.Credit/4, 1))
	size = max(size, min(smallest, d.Credit))
	return max(min(size, d.Share()), d.Need)
}

// powerOfTwo returns the least power of two that is n or more, at least 1.
func powerOfTwo(n int64) int64 {
	if n <= 1 {
		return 1
	}
	return 1 << bits.Len64(uint64(n-1))
}
