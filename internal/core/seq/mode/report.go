package mode

import (
	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// Counts counts over all lives of a name, and measures the rate. AskedAt is no count.
type Counts struct {
	Totals
	// AskedAt is the time at which the node last answered a request or, of an ordered sequence, was last asked, ns of
	// AtMost.
	AskedAt int64
	// Unanswered is the number of positions that writes for requests of a strict sequence took, or perhaps took, and no
	// request got.
	Unanswered int64
	minuteRate minuteRate
}

// Totals counts what a series did, or several: the positions that were issued, the blocks that were taken, and the
// requests that waited.
type Totals struct{ Issued, Blocks, Waits int64 }

// Add adds o.
func (t *Totals) Add(o Totals) {
	t.Issued, t.Blocks, t.Waits = t.Issued+o.Issued, t.Blocks+o.Blocks, t.Waits+o.Waits
}

// Use is one sequence as a node knows it.
type Use struct {
	Name   string
	Record record.Record
	// Held is the number of values that the node has taken and not issued.
	Held int64
	// Unanswered is the number of values of a strict sequence that the node has taken, or perhaps taken, and not
	// answered. Nobody will get them, but for those that are being answered.
	Unanswered int64
	// Owns: this node is the owner of the ordered sequence. FromOthers is the number of values that it got from other
	// nodes in this life of the name, and Lapses that of its leases that ended before they were renewed.
	Owns               bool
	FromOthers, Lapses int64
	// Block is the last block that the node has taken.
	Block positions.Block
	// PerSecond is the number of values that the node has issued in a second, over the last minute or longer.
	PerSecond float64
	// Refusal is the reason why the node gets no block at present, "" if it gets one or has not asked.
	Refusal record.Reason
}
