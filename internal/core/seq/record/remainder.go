package record

import (
	"github.com/flaked/flaked/internal/core/positions"
)

// Remainder has the last positions that a node took from the record with this ID, in this incarnation, and did not
// issue. They may be of several blocks.
type Remainder struct {
	ID          string
	Incarnation int64
	Block       positions.Block
}

// ReturnOf returns the record that gives rest back. It is possible only if nobody has taken a block since. Within an
// incarnation, the next position shows that. Where data were lost since the block was taken, the next skip counts on
// the credit as it is.
func (r Record) ReturnOf(rest Remainder, incarnation int64) (after Record, possible bool) {
	b := rest.Block
	switch {
	case r.ID != rest.ID, r.Kind() != Sequence, b.First < r.RaisedTo, b.Len() <= 0:
		return Record{}, false
	case r.Incarnation != incarnation, rest.Incarnation != incarnation:
		return Record{}, false
	//mutant:s4-return-below-others by seqsim -> case false:
	case r.Next != b.End: // a return moves no next value below what others took (S4)
		return Record{}, false
	}
	r.Credit = max(r.Credit, min(r.CeilingInForce().Burst(), r.Credit+b.Len()))
	r.Next = b.First
	return r, true
}
