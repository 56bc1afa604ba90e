package seq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

// raiseUnheard: an operator raises a next value while a node is cut off, by about as much as that one would skip after
// a loss of data. Others issue from there, and are lost with their directories. ZooKeeper is put back to before. Only
// the node that was cut off is left.
func (h *history) raiseUnheard() {
	h.calm()
	name := h.names[h.rng.IntN(len(h.names))]
	x, gone := h.nodes[0], h.nodes[1]
	c := simCopy{h.now, h.Mem.Snapshot()}
	h.run(3*h.heartbeat.Milliseconds() + 1000)
	x.cut = true
	x.store.Partition()
	x.store.Expire()
	_ = h.Mem.Session().Delete(context.Background(), fmt.Sprintf("/live/%04d", x.id), store.AnyVersion) // of any session
	p, ceiling, ok := h.raise(name)
	if ok {
		gone.beat()
		for range 8 {
			h.ask(gone, name, int(1+h.rng.Int64N(min(3000, ceiling))), false)
			h.run(1000)
		}
	}
	for _, n := range h.nodes {
		if n != x {
			n.start(false)
		}
	}
	h.putBack(c, nil)
	x.cut = false
	x.store.Heal()
	x.beat()
	x.round()
	h.reach(x, name, p, ceiling)
}

// raise raises the next value of a sequence a little further than a node skips after a loss of data that comes soon. It
// returns the new next position and the ceiling.
func (h *history) raise(name string) (p, ceiling int64, ok bool) {
	op, ctx := h.operator(h.Mem.Session()), context.Background()
	r, st, err := op.Find(ctx, name)
	if err != nil || !r.Exists() || r.Mode == record.Strict {
		return 0, 0, false
	}
	p = r.Next + r.Credit + r.HardCeiling*(max(0, st.Time-r.CreditAt)/1000+60+h.rng.Int64N(30))
	_, err = op.Set(ctx, name, operator.Change{NextPosition: &p})
	h.note("by hand: next position of %s is %d: %v", name, p, err)
	return p, r.HardCeiling, err == nil
}

// reach asks a node until it comes above a position, or no further.
func (h *history) reach(n *simNode, name string, p, ceiling int64) {
	h.run(2 * h.confirm.Milliseconds())
	for range 200 {
		r, _, err := h.operator(h.Mem.Session()).Find(context.Background(), name)
		if h.wrong != "" || errors.Is(err, operator.ErrNotFound) || err == nil && r.Next > p+10*ceiling {
			return
		}
		h.ask(n, name, int(1+h.rng.Int64N(min(3000, max(ceiling, 1)))), false)
		h.run(1000)
	}
}

// loseWitnesses: all nodes are killed and lose their witness files, or have older ones, and ZooKeeper goes back to
// before a raised next value. Only the journal of one of them has a block above that.
func (h *history) loseWitnesses() {
	h.calm()
	name := h.names[h.rng.IntN(len(h.names))]
	x, gone, older := h.nodes[0], h.nodes[1], make([]*Witness, len(h.nodes))
	c := simCopy{h.now, h.Mem.Snapshot()}
	h.run(3*h.heartbeat.Milliseconds() + 1000)
	for k, n := range h.nodes {
		if n.disk.witness != nil && h.rng.IntN(2) == 0 { // the disk has no room for a later one
			older[k] = n.disk.witness
		}
	}
	if h.modeOf(name) != record.Segment { // the journal has no others
		return
	}
	p, ceiling, ok := h.raise(name)
	if !ok {
		return
	}
	h.wait()
	for range 3 {
		h.ask(gone, name, int(1+h.rng.Int64N(min(300, ceiling))), false)
		h.run(1000)
	}
	h.run(2000)
	if !gone.journals(name, p) { // limit 8 of docs/sequences.md
		return
	}
	for k, n := range h.nodes {
		n.disk.witness, n.disk.copies = older[k], nil // no older journal comes in place
		n.start(true)
	}
	h.putBack(c, x)
	h.reach(x, name, p, ceiling)
}

// journals reports whether the journal of a node has a block of a sequence above p.
func (n *simNode) journals(name string, p int64) bool {
	var h held
	return json.Unmarshal(journalIn(n.disk.journal()).held[name], &h) == nil && h.Last.End > p
}
