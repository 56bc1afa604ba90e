package seq

import (
	"fmt"
	"strings"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// traceWrite traces a write that is about to be sent over what was read: one that takes a block, gives positions back,
// or changes the owner. The writes of a strict sequence are no steps, because each is an answer.
func (i *Rounds) traceWrite(s *series, v sight, t blockWrite, hold Hold) {
	r, was := t.Record, v.Record
	if i.trace == nil || was == nil || r.Mode == record.Strict || r.Next == was.Next && r.Owner == was.Owner {
		return
	}
	about := []any{
		"name", s.name, "id", r.ID, "inc", v.Incarnation(), "first", t.Block.First, "end", t.Block.End, "next", r.Next,
		"credit", r.Credit, "at", r.At, "owner", r.Owner, "nonce", r.Nonce,
		"slot", hold.Version, "wait_ms", hold.Wait.Milliseconds(),
		"was_next", was.Next, "was_inc", was.Incarnation, "was_credit", was.Credit, "was_at", was.At,
		"peak_from", was.PeakFrom, "peak_at", was.PeakAt, "ceiling", int64(was.CeilingInForce()), "hard", was.HardCeiling,
		"positions", was.Positions(), "was_owner", was.Owner, "hold_ms", was.HoldMs,
	}
	s.mu.Lock()
	if m, ok := s.mode.(*ordered); ok {
		about = append(about, m.traced()...)
	}
	s.mu.Unlock()
	i.trace.Step("writes", about...)
}

// traceBlock traces a block that is the node's from now on. s.mu is held.
func (s *series) traceBlock(t blockWrite) {
	if t.Block.Len() > 0 && t.Record.Mode != record.Strict {
		s.trace.Step("block", "name", s.name, "id", t.Record.ID, "inc", t.Record.Incarnation,
			"first", t.Block.First, "end", t.Block.End, "nonce", t.Record.Nonce)
	}
}

// traceBound traces that positions below bound may be issued from now on (S30). s.mu is held.
func (s *segment) traceBound(bound int64) {
	s.trace.Step("journal", "name", s.name, "id", s.known.ID, "bound", bound)
}

// traced returns what a trace of a write says of how the ownership came about.
func (m *ordered) traced() []any { return []any{"ended", m.ended, "since", m.watch.since.Boot} }

// traceOwner traces that the owner may issue until its lease ends. sent and now are times of AtMost, and steps are
// compared by the boot clock.
func (m *ordered) traceOwner(sent, now int64) {
	if m.trace == nil {
		return
	}
	at := m.node.elapsed.Now()
	boot := func(most int64) int64 { return at.Boot - (at.Most - most) }
	m.trace.Step("owns", "name", m.name, "owner", m.lease.owner, "sent", boot(sent), "now", boot(now),
		"until", boot(m.lease.until), "hold_ms", m.known.HoldMs)
}

// words returns blocks as one word.
func words(blocks []positions.Block) string {
	all := make([]string, len(blocks))
	for k, b := range blocks {
		all[k] = fmt.Sprintf("%d-%d", b.First, b.End)
	}
	return strings.Join(all, ",")
}
