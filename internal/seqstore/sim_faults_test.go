package seqstore

import (
	"context"
	"slices"

	"github.com/flaked/flaked/internal/zkstore"
)

func (n *simNode) fault(c zkstore.Call) zkstore.Fault {
	n.h.interleave(n)
	if n.h.strict["x0"] != nil && c.Op == "multi" && n.h.rng.IntN(4) == 0 {
		n.h.askLate(n, "x0")
	}
	n.intend(c)
	if n == n.h.heard && n.h.now < n.h.noticeBy {
		return zkstore.NoFault
	}
	switch n.h.rng.IntN(n.h.faulty) {
	case 0:
		return zkstore.FailBefore
	case 1:
		return zkstore.FailAfter
	case 2:
		return zkstore.FailLate
	}
	return zkstore.NoFault
}

// interleave lets something else happen in the middle of a round of n.
func (h *history) interleave(n *simNode) {
	if h.inside || h.rng.IntN(8) != 0 {
		return
	}
	h.inside = true
	defer func() { h.inside = false }()
	other := h.nodes[h.rng.IntN(len(h.nodes))]
	switch h.rng.IntN(6) {
	case 0:
		h.pass(h.rng.Int64N(300))
	case 1:
		if other != n && !other.busy && h.now >= other.pauseTill {
			other.beat()
			other.round()
		}
	case 2, 3:
		if other != n && !other.busy {
			h.ask(other, h.names[h.rng.IntN(max(1, len(h.names)))], 1+h.rng.IntN(100), false)
		}
	case 4:
		h.mem.Deliver()
		if h.rng.IntN(2) == 0 {
			other.store.Lag()
		}
	case 5:
		if h.rng.IntN(10) == 0 && !n.beating && !h.staged {
			h.lose()
		}
	}
}

// pass lets time pass. The node that must notice a loss of data reports before the confirming time is
// over.
func (h *history) pass(ms int64) {
	end, last := h.now+ms, h.noticeBy-50
	if n := h.heard; n != nil && h.now < last && last <= end && !n.busy {
		h.now = last
		was := h.inside
		h.inside, n.pauseTill = true, 0
		n.beat()
		n.round()
		h.inside = was
	}
	h.now = max(h.now, end)
}

// run lets time pass, with heartbeats and rounds of all nodes.
func (h *history) run(ms int64) {
	for end := h.now + ms; h.now < end; {
		h.pass(min(end-h.now, 1+h.rng.Int64N(int64([]int{50, 400}[h.rng.IntN(2)]))))
		for _, n := range h.nodes {
			if h.now < n.pauseTill {
				continue
			}
			if h.now-n.lastBeat >= h.heartbeat.Milliseconds() {
				if n == h.mute {
					n.lastBeat = h.now
				} else {
					n.beat()
				}
				n.round()
			}
		}
	}
}

// able returns the nodes that must notice if ZooKeeper goes back to a copy made at a time: those that
// are connected, and have written their slot at least two heartbeats later.
func (h *history) able(at int64) (able []*simNode) {
	for _, n := range h.nodes {
		if !n.busy && !n.cut && h.now >= n.pauseTill && n.sure && n.h.now >= n.confirmed && n.lastAcked > at+2*h.heartbeat.Milliseconds() && n.is.state != nil && !n.is.loss {
			able = append(able, n)
		}
	}
	return able
}

// calm ends all faults, and lets all nodes be well.
func (h *history) calm() {
	h.run(max(0, h.noticeBy-h.now) + 1)
	for _, n := range h.nodes {
		n.cut, n.pauseTill = false, 0
		n.store.Heal()
	}
	h.run(3*h.confirm.Milliseconds() + 3000)
}

// putBack puts ZooKeeper back to a copy. heard must notice it. nil: no node is sure to notice it in time.
func (h *history) putBack(c simCopy, heard *simNode) {
	h.heard, h.noticeBy = heard, h.now+h.confirm.Milliseconds()
	h.losses++
	h.mem.Deliver()
	h.checkGaps("x0")
	if s := h.strict["x0"]; s != nil {
		s.counts = false
	}
	h.note("ZooKeeper is put back to %.3f", float64(c.at)/1000)
	h.mem.Restore(c.data)
	h.mem.SetEpoch(uint32(h.mem.Zxid()>>32) + 1)
}

// lose wipes ZooKeeper or puts an older copy back, if a node can notice it: it is connected, and has
// written its slot at least two heartbeats after the copy was made.
func (h *history) lose() {
	at, wipe := int64(0), len(h.copies) == 0 || h.rng.IntN(4) == 0
	var c simCopy
	if !wipe {
		c = h.copies[h.rng.IntN(len(h.copies))]
		at = c.at
	}
	able := h.able(at)
	if len(able) == 0 || h.now < h.noticeBy {
		return
	}
	h.heard, h.noticeBy = able[h.rng.IntN(len(able))], h.now+h.confirm.Milliseconds()
	if h.rng.IntN(2) == 0 { // it notices at the last moment
		h.heard.pauseTill = h.noticeBy
	}
	h.losses++
	h.mem.Deliver()
	h.checkGaps("x0")
	if s := h.strict["x0"]; s != nil {
		s.counts = false
	}
	if wipe {
		h.note("ZooKeeper is wiped, node %d must notice", h.heard.id)
		h.mem.Wipe()
		_ = h.mem.Session().EnsureRoot(context.Background(), "/workers")
	} else {
		h.note("ZooKeeper is put back to %.3f, node %d must notice", float64(at)/1000, h.heard.id)
		h.mem.Restore(c.data)
	}
	h.copies = slices.DeleteFunc(h.copies, func(simCopy) bool { return h.rng.IntN(3) == 0 })
	h.mem.SetEpoch(uint32(h.mem.Zxid()>>32) + 1)
}
