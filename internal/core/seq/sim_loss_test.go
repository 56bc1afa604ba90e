package seq

import (
	"context"
	"slices"
	"strings"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

// loseInAGap: a node is cut off. Meanwhile ZooKeeper is copied, another node takes blocks, and the copy is put back. So
// nothing shows the loss to the first node, and the one that knows of it notices at the last moment.
func (h *history) loseInAGap() {
	h.calm()
	name := h.names[h.rng.IntN(len(h.names))]
	gone, x, y := h.nodes[0], h.nodes[1], h.nodes[len(h.nodes)-1]
	if x == y {
		return
	}
	y.cut = true
	y.store.Partition()
	c := simCopy{h.now, h.Mem.Snapshot()}
	h.run(3*h.heartbeat.Milliseconds() + 1000)
	for range 3 {
		h.ask(gone, name, 1+h.rng.IntN(300), false)
	}
	if !slices.Contains(h.able(c.at), x) {
		return
	}
	gone.start(false)
	h.putBack(c, x)
	x.pauseTill = h.noticeBy
	y.cut = false
	y.store.Heal()
	y.beat()
	for h.now < h.noticeBy+h.confirm.Milliseconds() {
		h.ask(y, name, 1+h.rng.IntN(300), false)
		h.run(h.confirm.Milliseconds() / 10)
	}
}

// loseAll puts ZooKeeper back to a copy, and kills all nodes. x starts again with its directory.
func (h *history) loseAll(c simCopy, x *simNode) {
	h.putBack(c, x)
	for _, n := range h.nodes {
		if n != x {
			n.start(false)
		}
	}
	if x.start(true); h.rng.IntN(2) == 0 {
		x.round() // before its first heartbeat
	}
}

// loseBusy: all nodes are killed after a minute in which one of them has used the ceiling up. The node that has its
// directory last wrote it before.
func (h *history) loseBusy() {
	h.calm()
	name := h.names[h.rng.IntN(len(h.names))]
	gone, x := h.nodes[0], h.nodes[1]
	c := simCopy{h.now, h.Mem.Snapshot()}
	r, _, err := h.operator(h.Mem.Session()).Find(context.Background(), name)
	if err != nil || r.DeletedAt != 0 || r.Mode == record.Strict || r.HardCeiling > 1000 {
		return
	}
	for range 50 {
		h.ask(gone, name, int(r.HardCeiling), false)
		h.run(1000)
	}
	if !slices.Contains(h.able(c.at), x) {
		return
	}
	h.loseAll(c, x)
	h.run(3 * h.confirm.Milliseconds())
	for range 8 {
		h.ask(h.nodes[0], name, int(1+h.rng.Int64N(r.HardCeiling)), false)
		h.run(1000)
	}
}

// loseChange: all nodes are killed after they have followed a change. One starts again with its directory.
func (h *history) loseChange() {
	h.calm()
	name := h.names[h.rng.IntN(len(h.names))]
	op := h.operator(h.Mem.Session())
	x := h.nodes[1]
	c := simCopy{h.now, h.Mem.Snapshot()}
	r, _, err := op.Find(context.Background(), name)
	if err != nil || r.DeletedAt != 0 {
		return
	}
	h.run(2*h.heartbeat.Milliseconds() + 1000)
	p := r.Next + 1_000_000
	if _, err := op.Set(context.Background(), name, operator.Change{NextPosition: &p}); err != nil {
		return
	}
	h.note("by hand: next position of %s is %d", name, p)
	h.wait()
	if !slices.Contains(h.able(c.at), x) {
		return
	}
	h.loseAll(c, x)
	h.run(2 * h.confirm.Milliseconds())
	if r, _, err := op.Find(context.Background(), name); err != nil || r.Next < p {
		h.violated("raised next", "the next position of %s is %d, but node %d has followed %d: %v", name, r.Next,
			x.id, p, err)
	}
}

// loseRaise: ZooKeeper loses a next value that an operator has raised. An operator edits the sequence before
// a node notices that.
func (h *history) loseRaise() {
	h.calm()
	name := h.names[h.rng.IntN(len(h.names))]
	op := h.operator(h.Mem.Session())
	ctx := context.Background()
	c := simCopy{h.now, h.Mem.Snapshot()}
	r, _, err := op.Find(ctx, name)
	if err != nil || r.DeletedAt != 0 {
		return
	}
	next := r.Value(r.Next + 1_000_000)
	if _, err := op.Set(ctx, name, operator.Change{Next: &next}); err != nil {
		return
	}
	h.note("by hand: next of %s is %d", name, next)
	h.run(3*h.heartbeat.Milliseconds() + 1000)
	x := h.nodes[1]
	h.ask(h.nodes[0], name, 10, false)
	s := x.is.issuer.series.byName[name]
	if !slices.Contains(h.able(c.at), x) || s == nil || s.Known == nil || s.Known.RaisedTo != r.Next+1_000_000 {
		return
	}
	h.putBack(c, x)
	for i := range 20 {
		_, err = op.Set(ctx, name, operator.Change{Settings: func(s *record.Settings) { s.SupplyMs += int64(i) }})
	}
	h.note("by hand: 20 notes for %s: %v", name, err)
	highest := s.highest
	h.run(2 * h.confirm.Milliseconds()) // it begins anew if another node reports the loss, too
	if r, _, err := op.Find(ctx, name); err != nil || r.Next < highest {
		h.violated("raised next", "the next position of %s is %d, but node %d knows %d: %v", name, r.Next, x.id,
			highest, err)
	}
}

// readEarly: a name gets another life, and ZooKeeper goes back to before. A node that has lost its witness file reads
// the earlier life before the one that knows better has put the later one back.
func (h *history) readEarly() {
	h.calm()
	name := h.names[h.rng.IntN(len(h.names))]
	x, y := h.nodes[0], h.nodes[1]
	c := simCopy{h.now, h.Mem.Snapshot()}
	op := h.operator(h.Mem.Session())
	h.run(2*h.heartbeat.Milliseconds() + 1000)
	if strings.HasPrefix(name, simFamily) {
		h.changeFamily(op, 1)
		h.run(h.lease + 40_000)
		h.changeFamily(op, 2)
	} else {
		h.remove(op, name)
		h.wait()
		h.create(op.Store, name)
		h.wait()
	}
	if h.ask(y, name, 10, false); !slices.Contains(h.able(c.at), y) {
		return
	}
	x.disk.witness = nil
	x.start(true)
	h.putBack(c, y)
	y.delay = func(c memzk.Call) int64 {
		if c.Op != "multi" || c.Touches(record.StatePath) && c.Write() {
			return 0
		}
		return h.rng.Int64N(h.heartbeat.Milliseconds() / 4)
	}
	for h.now < h.noticeBy+h.confirm.Milliseconds() {
		h.ask(x, name, 1+h.rng.IntN(20), false)
		h.run(h.confirm.Milliseconds() / 20)
	}
	y.delay = nil
	for range 20 {
		h.ask([]*simNode{x, y}[h.rng.IntN(2)], name, 1+h.rng.IntN(20), false)
		h.run(h.rng.Int64N(1 + h.lease))
		h.answerLate()
	}
}
