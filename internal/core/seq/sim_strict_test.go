package seq

import (
	"context"
	"errors"
	"time"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
)

// simStrict has a history's facts about a strict sequence.
type simStrict struct {
	// committed is the highest next value that a node has written.
	committed int64
	answered  int64 // positions
	lost      int64 // positions that processes which have ended did not answer
	keys      []*simKey
	// counts: no data were lost since then was the record. Then answered and unanswered positions were answeredThen
	// and unansweredThen.
	counts                       bool
	then                         record.Record
	answeredThen, unansweredThen int64
}

// simPace has a history's facts about the pace of a node's writes of a strict sequence. All times are ns of the node's
// AtMost.
type simPace struct {
	round int64 // when the last round began
	begun int64 // when the last transaction was sent
	until int64 // when the pause ends that the node makes at least after its last write
}

// checkPace checks that the write of a strict sequence which is about to be made does not come in a pause.
func (n *simNode) checkPace(name string) {
	if n.pace.begun < n.pace.until {
		n.h.violated("pace", "node %d writes %s %s before its pause ends", n.id, name,
			time.Duration(n.pace.until-n.pace.begun))
	}
}

// writerCountsFor is that of package strict.
const writerCountsFor = time.Second

// beginPause notes that a node has written a strict sequence over the record of a writer. If that is another node, this
// one leaves the sequence to it for about the time of the write. A node need not remember a writer for longer than
// writerCountsFor.
func (n *simNode) beginPause(writer string) {
	now := n.is.issuer.now()
	if writer == "" || writer == n.name() || now-n.pace.round >= int64(writerCountsFor) {
		return
	}
	n.pace.until = now + min(now-n.pace.begun, int64(writerCountsFor)/2) // Config.Retry returns half of the longest pause
}

func (h *history) modeOf(name string) record.Mode {
	if h.strict[name] != nil {
		return record.Strict
	}
	if isOrdered(name) {
		return record.Ordered
	}
	return record.Segment
}

func (s *simStrict) answer(n int64) {
	if s != nil {
		s.answered += n
	}
}

// putBack notes that a node puts back a record that ZooKeeper lost, perhaps with a next value that an operator had
// raised.
func (s *simStrict) putBack() {
	if s != nil {
		s.counts = false
	}
}

// ended adds what a process that ends has not answered.
func (s *simStrict) ended(i *Rounds) {
	if s != nil && i != nil {
		s.lost += unansweredBy(i)
	}
}

func unansweredBy(i *Rounds) (n int64) {
	for _, s := range i.issuer.series.list() {
		n += s.Unanswered
	}
	return n
}

func (h *history) unanswered(s *simStrict) int64 {
	n := s.lost
	for _, node := range h.nodes {
		n += unansweredBy(node.is)
	}
	return n
}

// countGaps begins to count the positions of a strict sequence.
func (h *history) countGaps(name string) {
	s := h.strict[name]
	if s == nil {
		return
	}
	h.Mem.Deliver() // what is counted as unanswered must not be written later
	data, _, err := h.Mem.Peek(record.Path(name))
	r, parseErr := record.Parse(data)
	if s.counts = err == nil && parseErr == nil && h.now >= h.noticeBy; s.counts {
		s.then, s.answeredThen, s.unansweredThen = r, s.answered, h.unanswered(s)
	}
}

// checkGaps checks that all positions of a strict sequence were answered, or are counted as unanswered.
func (h *history) checkGaps(name string) {
	s := h.strict[name]
	if s == nil || !s.counts {
		return
	}
	data, _, err := h.Mem.Peek(record.Path(name))
	r, parseErr := record.Parse(data)
	if err != nil || parseErr != nil {
		h.violated("gaps", "the record of %s: %v, %v", name, err, parseErr)
		return
	}
	if r.ID != s.then.ID || r.RaisedTo != s.then.RaisedTo { // an operator has acted
		return
	}
	answered, unanswered := s.answered-s.answeredThen, h.unanswered(s)-s.unansweredThen
	if missing := r.Next - s.then.Next - answered; missing > unanswered {
		h.violated("gaps", "%s has %d positions more than were answered, and the nodes count %d", name, missing,
			unanswered)
	}
}

// vouch says where a strict sequence goes on after a loss of data: above all that was committed.
func (h *history) vouch(op operator.Commands, name string) {
	s := h.strict[name]
	if s == nil || h.now < h.noticeBy {
		return
	}
	ctx := context.Background()
	r, st, err := op.Find(ctx, name)
	if err != nil || r.Incarnation == st.Incarnation || r.DeletedAt != 0 {
		return
	}
	next := max(r.Value(r.Next), s.committed, h.highest[name]+1) + h.rng.Int64N(1000)
	_, err = op.Set(ctx, name, operator.Change{Next: &next, VouchedIn: st.Incarnation})
	h.note("by hand: %s goes on at %d: %v", name, next, err)
	h.countGaps(name)
}

// askTogether sends a node some requests at once. They may share a write.
func (h *history) askTogether(n *simNode, name string) {
	if h.now < n.pauseTill {
		return
	}
	waits := make([]sequence.Wait, 2+h.rng.IntN(4))
	counts := make([]int, len(waits))
	open := make(map[int]bool)
	for k := range waits {
		counts[k], open[k] = 1+h.rng.IntN(5), true
	}
	before := h.highest[name]
	for range 3 {
		for k := range waits {
			if !open[k] {
				continue
			}
			runs, err := n.is.issuer.Take(&waits[k], []byte(name), counts[k], false, func() {}, nil)
			if open[k] = errors.Is(err, sequence.ErrPending); err == nil {
				h.check(n, name, runs, counts[k], before)
			}
		}
		n.round()
	}
}
