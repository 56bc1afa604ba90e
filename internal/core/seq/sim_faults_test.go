package seq

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

func (n *simNode) fault(c memzk.Call) memzk.Fault {
	if c.Op == "multi" {
		n.pace.begun = n.is.issuer.now()
	}
	n.takeLong(c)
	n.h.interleave(n)
	if n.h.strict["x0"] != nil && c.Op == "multi" && n.h.rng.IntN(4) == 0 {
		n.h.askLate(n, "x0")
	}
	n.intend(c)
	if n.h.mustNotice(n) {
		return memzk.NoFault
	}
	switch n.h.rng.IntN(n.h.faulty) {
	case 0:
		if c.Write() && n.h.rng.IntN(2) == 0 {
			return memzk.FailQuota
		}
		return memzk.FailBefore
	case 1:
		return memzk.FailAfter
	case 2:
		return memzk.FailLate
	}
	return memzk.NoFault
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
		if h.pass(h.rng.Int64N(300)); !h.staged && h.rng.IntN(5) == 0 {
			h.pass(h.rng.Int64N(2 * h.lease))
		}
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
		h.Mem.Deliver()
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
		h.inside = true
		n.goesOn()
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
		h.expireOrphans()
		for _, n := range h.nodes {
			if h.now < n.pauseTill {
				continue
			}
			if n.fly(); n.is.issuer.alarms.arm(n.is.issuer.now(), time.Hour) == 0 {
				n.round()
			}
			if h.now-n.lastBeat >= n.untilBeat() {
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

// able returns the nodes that must notice if ZooKeeper goes back to a copy made at a time: those that are connected,
// know all that has changed in the present incarnation, and have written their slot at least two heartbeats later.
func (h *history) able(at int64) (able []*simNode) {
	v, err := h.peek()
	if err != nil {
		return nil
	}
	for _, n := range h.nodes {
		here := !n.busy && !n.cut && h.now >= n.pauseTill && !n.nothing && n.elapsed.AtLeast() >= n.confirmed
		f := n.is.issuer.Followed()
		knows := f.Last.Number >= v.State.Changes && f.Last.Incarnation == v.Cluster.Incarnation && n.disk.witness != nil &&
			n.owed == 0
		if here && knows && n.claim.incarnation == v.Cluster.Incarnation &&
			n.claim.sent > at+2*h.heartbeat.Milliseconds() {
			able = append(able, n)
		}
	}
	return able
}

// peek returns /cluster and /seq.
func (h *history) peek() (record.Snapshot, error) {
	cluster, _, err := h.Mem.Peek(record.ClusterPath)
	if err != nil {
		return record.Snapshot{}, err
	}
	state, _, err := h.Mem.Peek(record.StatePath)
	if err != nil {
		return record.Snapshot{}, err
	}
	return record.ParseSnapshot([]store.Record{{Found: true, Data: cluster}, {Found: true, Data: state}})
}

// mustNotice reports whether a node must notice the last loss of data, or is about to put back what it knows.
func (h *history) mustNotice(n *simNode) bool {
	return n == h.heard && h.now < h.noticeBy+2*h.heartbeat.Milliseconds()
}

// calm ends all faults, and lets all nodes be well.
func (h *history) calm() {
	h.run(max(0, h.noticeBy-h.now) + 1)
	for _, n := range h.nodes {
		n.cut = false
		n.goesOn()
		n.store.Heal()
	}
	h.run(3*h.confirm.Milliseconds() + 3000)
	h.checkLives()
}

// checkLives checks that a node that has followed all changes knows the life that each name has now. Only such a node
// can put it back.
func (h *history) checkLives() {
	v, err := h.peek()
	if err != nil {
		return
	}
	at := coordinator.Change{Number: v.State.Changes, Incarnation: v.Incarnation()}
	for _, n := range h.nodes {
		if !n.is.issuer.Followed().Reaches(at) {
			continue
		}
		for _, s := range n.is.issuer.series.list() {
			data, _, _ := h.Mem.Peek(record.Path(s.Name))
			r, err := record.Parse(data)
			if known := s.Known; err == nil && known == nil && strings.HasPrefix(s.Name, "t:") {
				continue
			} else if err == nil && (known == nil || known.ID != r.ID || known.Kind() != r.Kind()) {
				h.violated("life", "node %d has followed, and knows %+v of %s, which is %+v", n.id, known, s.Name, r)
			}
		}
	}
}

// putBack puts ZooKeeper back to a copy. heard must notice it. nil: no node is sure to notice it in time.
func (h *history) putBack(c simCopy, heard *simNode) {
	h.notice(heard)
	h.note("ZooKeeper is put back to %.3f", float64(c.at)/1000)
	h.Mem.Restore(c.data)
	h.Mem.SetEpoch(uint32(h.Mem.Zxid()>>32) + 1)
}

// notice says which node must notice the loss of data that comes now.
func (h *history) notice(heard *simNode) {
	h.heard, h.noticeBy = heard, h.now+h.confirm.Milliseconds()
	h.lostAt = append(h.lostAt, h.now)
	h.Mem.Deliver()
	h.checkGaps("x0")
	if s := h.strict["x0"]; s != nil {
		s.counts = false
		s.keysAreLost(heard, len(h.lostAt))
	}
}

// lose wipes ZooKeeper or puts an older copy back, if a node can notice it.
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
	h.notice(able[h.rng.IntN(len(able))])
	h.copies = slices.DeleteFunc(h.copies, func(simCopy) bool { return h.rng.IntN(3) == 0 })
	switch {
	case wipe:
		h.note("ZooKeeper is wiped, node %d must notice", h.heard.id)
		h.Mem.Wipe()
		_ = h.Mem.Session().EnsureRoot(context.Background(), "/workers")
	case h.rng.IntN(3) == 0:
		h.note("ZooKeeper is put back to %.3f while it runs, node %d must notice", float64(at)/1000, h.heard.id)
		h.Mem.RestoreRunning(c.data)
	default:
		h.note("ZooKeeper is put back to %.3f, node %d must notice", float64(at)/1000, h.heard.id)
		h.Mem.Restore(c.data)
	}
	h.Mem.SetEpoch(uint32(h.Mem.Zxid()>>32) + 1)
	if h.rng.IntN(3) == 0 {
		h.restartAll()
	} else if h.rng.IntN(2) == 0 { // it notices at the last moment
		h.heard.pauseTill = h.noticeBy
	}
}

// restartAll kills all nodes. They start again at any time. The one that must notice the loss of data has its
// directory.
func (h *history) restartAll() {
	h.note("all nodes are killed")
	for _, n := range h.nodes {
		if !n.busy {
			n.start(n == h.heard || h.rng.IntN(3) > 0)
			n.pauseTill = h.now + h.rng.Int64N(h.confirm.Milliseconds())
		}
	}
}
