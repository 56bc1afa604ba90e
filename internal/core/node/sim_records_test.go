package node

import (
	"path"
	"strconv"
	"strings"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/localcache"
)

// wrote is called for each write that the store has carried out. acked reports whether the client got the answer.
func (s *sim) wrote(c memzk.Call, acked bool) {
	switch c.Op {
	case "set", "create":
		s.wroteSlot(c.Path, c.Data, acked)
	case "multi":
		for _, op := range c.Ops {
			switch op := op.(type) {
			case store.SetOp:
				s.wroteSlot(op.Path, op.Data, acked)
			case store.CreateOp:
				s.wroteSlot(op.Path, op.Data, acked)
			}
		}
	}
}

func (s *sim) wroteSlot(at string, data []byte, acked bool) {
	if !strings.HasPrefix(at, "/workers/") {
		return
	}
	n, _ := strconv.Atoi(path.Base(at))
	w := &s.workers[n]
	w.held = w.held || text(data, "node") != ""
	r := slotRecord{
		node: text(data, "node"), nonce: text(data, "nonce"), term: number(data, "term"),
		leaseUntil: number(data, "lease_until"),
		generation: uint64(number(data, "generation")),
		confirmed:  has(data, "confirmed"), released: has(data, "released"), stopped: has(data, "stopped"),
	}
	was := w.record
	// A record without a node replaces a lost one. It says nothing of the holder's bound.
	if w.known && was.node != "" && (r.leaseUntil < was.leaseUntil && !(r.released && r.nonce == was.nonce) ||
		r.term < was.term) {
		s.violated(wrongLeaseFell, "the record of worker %d goes from %+v to %+v", n, was, r)
	}
	if w.known && was.released && r.node == was.node && r.term > was.term {
		delete(s.acked, holding{r.node, n}) // its holder takes it again
	}
	// Clocks in use may be 10 s apart. A clock that is further off is refused.
	if w.known && was.confirmed && !was.released && r.node != was.node && was.leaseUntil > s.now/1e6+10_000 {
		s.violated(wrongTaken, "the record of worker %d goes from %+v to %+v", n, was, r)
	}
	if r.released && !was.released && !s.lossy {
		for _, t := range w.tenures {
			if end := s.layout.Start(t.max + 1); r.leaseUntil < end {
				s.violated(wrongLeaseFell, "worker %d is released from %d on, where %s has issued below %d", n,
					r.leaseUntil, t.p.name, end)
			}
		}
	}
	w.record, w.known = r, true
	if acked && r.confirmed {
		at := holding{r.node, n}
		s.acked[at] = max(s.acked[at], r.leaseUntil)
	}
}

// saved is called when a record has been saved, which makes its reserved bound (ReservedUntil)
// count. That bound must never go down, except at a stop.
func (s *sim) saved(m *machine, r localcache.Record) {
	was := m.saved
	same := text(was.Payload, "node") == text(r.Payload, "node") &&
		number(was.Payload, "worker") == number(r.Payload, "worker")
	if same && r.ReservedUntil < was.ReservedUntil && !has(r.Payload, "stopped") {
		s.violated(wrongBoundFell, "%s: the bound on the disk goes from %d to %d", m.name, was.ReservedUntil,
			r.ReservedUntil)
	}
	m.saved = r
}
