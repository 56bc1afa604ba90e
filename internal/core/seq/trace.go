package seq

import (
	"fmt"
	"strings"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// traceWrite traces a write that is about to be sent over what was read: one that takes a block, gives positions back,
// or changes the owner. The writes of a strict sequence are no steps, because each is an answer.
func (i *Rounds) traceWrite(s *series, v mode.View, t mode.Write, hold Hold) {
	r, was := t.Record, v.Record
	if i.trace == nil || was == nil || r.Mode == record.Strict || r.Next == was.Next && r.Owner == was.Owner {
		return
	}
	about := []any{
		"name", s.Name, "id", r.ID, "inc", v.Incarnation(), "first", t.Block.First, "end", t.Block.End, "next", r.Next,
		"credit", r.Credit, "at", r.At, "owner", r.Owner, "nonce", r.Nonce,
		"slot", hold.Version, "wait_ms", hold.Wait.Milliseconds(),
		"was_next", was.Next, "was_inc", was.Incarnation, "was_credit", was.Credit, "was_at", was.At,
		"peak_from", was.PeakFrom, "peak_at", was.PeakAt, "ceiling", int64(was.CeilingInForce()), "hard", was.HardCeiling,
		"positions", was.Positions(), "was_owner", was.Owner, "hold_ms", was.HoldMs,
	}
	s.Mu.Lock()
	if m, ok := s.Mode.(*ordered.Section); ok {
		about = append(about, m.Traced()...)
	}
	s.Mu.Unlock()
	i.trace.Step("writes", about...)
}

// traceBlock traces a block that is the node's from now on. s.mu is held.
func (s *series) traceBlock(t mode.Write) {
	if t.Block.Len() > 0 && t.Record.Mode != record.Strict {
		s.Trace.Step("block", "name", s.Name, "id", t.Record.ID, "inc", t.Record.Incarnation,
			"first", t.Block.First, "end", t.Block.End, "nonce", t.Record.Nonce)
	}
}

// traceBound traces that positions below bound may be issued from now on (S30). s.mu is held.
func (s *segment) traceBound(bound int64) {
	s.Trace.Step("journal", "name", s.Name, "id", s.Known.ID, "bound", bound)
}

// words returns blocks as one word.
func words(blocks []positions.Block) string {
	all := make([]string, len(blocks))
	for k, b := range blocks {
		all[k] = fmt.Sprintf("%d-%d", b.First, b.End)
	}
	return strings.Join(all, ",")
}
