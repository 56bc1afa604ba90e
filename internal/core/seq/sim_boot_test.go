package seq

import (
	"context"
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
)

// bootAlone: a node is cut off, and its machine is off for longer than the hold. Meanwhile an operator deletes the
// name, purges it if he may, and creates it again, and other nodes issue the values of the new life. Then the machine
// starts again without ZooKeeper. Its wall clock has stood still, as where no battery feeds it, or was set back
// further. All that the disk has fits that.
func (h *history) bootAlone() {
	h.calm()
	name, n := h.names[h.rng.IntN(2)%len(h.names)], h.nodes[h.rng.IntN(len(h.nodes))]
	op := h.operator(h.Mem.Session())
	op.IgnoredWorkers = []int{n.id} // its lease is over by then
	r, _, err := op.Find(context.Background(), name)
	if err != nil || r.DeletedAt != 0 || r.Mode != record.Segment || !h.stockUp(n, name) {
		return
	}
	h.run(h.rng.Int64N(3000))
	h.note("node %d is cut off, and its machine goes off", n.id)
	n.cut, n.pauseTill = true, 1<<60
	n.store.Partition()
	n.store.Expire()
	stood := n.machine.Skew() + time.Duration(h.now)*time.Millisecond
	h.remove(op, name)
	h.wait()
	if !r.Endless() {
		h.run(r.LongestHoldMs() + 60_000)
	}
	purged := h.purge(op, name)
	h.wait()
	h.createFrom(op, name, r.Start)
	h.wait()
	for _, other := range h.nodes {
		if other != n {
			h.stockUp(other, name)
		}
	}
	if h.right != wallRight {
		n.machine.SetSkew(stood - time.Duration(h.now+h.rng.Int64N(5000))*time.Millisecond)
	}
	n.reboot()
	n.cut = true
	n.store.Partition()
	h.note("it starts again without ZooKeeper. Its clock is off by %s", n.machine.Skew())
	for range 3 {
		n.round()
		h.ask(n, name, 1+h.rng.IntN(40), false)
		if n.max[name] != 0 && purged {
			h.violated("hold", "node %d issues values of %s from before it was purged", n.id, name)
		}
		h.run(h.rng.Int64N(1500))
	}
	n.machine.SetSkew(h.offset())
	n.cut = false
	n.store.Heal()
}

// stockUp asks a node for values until it holds some more, and reports whether it does.
func (h *history) stockUp(n *simNode, name string) bool {
	for range 10 {
		h.ask(n, name, 1+h.rng.IntN(40), false)
		if s := n.is.issuer.series.find(name); s != nil && s.stocked() != nil && s.stocked().stock.Left() > 0 {
			return true
		}
		h.run(h.heartbeat.Milliseconds())
	}
	return false
}
