package seq

import (
	"context"
	"errors"
	"slices"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
)

// loseTwice: ZooKeeper is put back to the same copy twice. Each time the node that has taken blocks
// since is started anew, and another one notices.
func (h *history) loseTwice() {
	h.calm()
	name := h.names[h.rng.IntN(len(h.names))]
	c := simCopy{h.now, h.Mem.Snapshot()}
	h.run(2*h.heartbeat.Milliseconds() + 1000)
	for _, n := range h.nodes[:2] {
		for range 6 + h.rng.IntN(10) {
			h.ask(n, name, 1+h.rng.IntN(3000), false)
			h.run(h.rng.Int64N(300))
		}
		able := slices.DeleteFunc(h.able(c.at), func(m *simNode) bool { return m == n })
		if len(able) == 0 {
			return
		}
		n.store.Expire()
		n.start(false)
		h.putBack(c, able[h.rng.IntN(len(able))])
		h.run(h.confirm.Milliseconds() + h.rng.Int64N(2000))
	}
}

// noticeLate: one node notices a loss of data at the last moment, while the server of another one lags
// behind.
func (h *history) noticeLate() {
	h.calm()
	c := simCopy{h.now, h.Mem.Snapshot()}
	name := h.names[h.rng.IntN(len(h.names))]
	gone, x, heard := h.nodes[0], h.nodes[1], h.nodes[len(h.nodes)-1]
	h.run(3*h.heartbeat.Milliseconds() + 1000)
	h.ask(gone, name, 2000, false)
	if x == heard || !slices.Contains(h.able(c.at), heard) {
		return
	}
	gone.start(false)
	h.putBack(c, heard)
	gone.pauseTill, heard.pauseTill = h.noticeBy+2000, h.noticeBy+2000
	x.beat()
	x.round()
	h.run(h.noticeBy - h.now - 60)
	x.beat()
	x.store.Lag()
	h.inside = true
	heard.beat()
	heard.round()
	h.now, h.inside = h.noticeBy+5, false
	h.ask(x, name, 1000, false)
	h.ask(x, name, 1000, false)
}

// loseAlone: the only node that is connected has not sent a heartbeat since ZooKeeper lost data.
func (h *history) loseAlone() {
	h.calm()
	c := simCopy{h.now, h.Mem.Snapshot()}
	name := h.names[h.rng.IntN(len(h.names))]
	gone, x := h.nodes[0], h.nodes[1]
	h.run(3*h.heartbeat.Milliseconds() + 1000)
	h.ask(gone, name, 2000, false)
	if !slices.Contains(h.able(c.at), x) {
		return
	}
	h.loseMuted(c, x, name)
}

// loseMuted puts ZooKeeper back to a copy. Only x is connected, and sends no heartbeat for a while.
func (h *history) loseMuted(c simCopy, x *simNode, name string) {
	for _, n := range h.nodes {
		if n != x {
			n.cut = true
			n.store.Partition()
		}
	}
	h.putBack(c, nil)
	h.mute = x
	h.run(h.confirm.Milliseconds() + h.rng.Int64N(3000))
	h.ask(x, name, 1000, false)
	h.mute = nil
	h.heard, h.noticeBy = x, h.now+h.confirm.Milliseconds()
	x.beat()
	x.round()
	h.ask(x, name, 1000, false)
}

// loseUnknown is loseAlone with a node that has never heard of the sequence.
func (h *history) loseUnknown() {
	h.inside = true // nobody else asks x
	defer func() { h.inside = false }()
	h.calm()
	name, other := h.names[0], "other"
	op := h.operator(h.Mem.Session())
	ctx := context.Background()
	if _, _, err := h.Mem.Peek(record.Path(other)); err != nil {
		if _, err := op.Create(ctx, operator.Definition{Name: other, Map: sequence.Map{Increment: 1, Max: 10},
			Settings: settings(50), StartGiven: true}); err != nil {
			return
		}
	}
	for i := range record.MaxChanged {
		if _, err := op.Set(ctx, other, operator.Change{Settings: func(s *record.Settings) { s.SupplyMs += int64(i) }}); err != nil {
			return
		}
	}
	gone, x := h.nodes[0], h.nodes[1]
	x.store.Expire()
	x.start(false)
	h.calm()
	c := simCopy{h.now, h.Mem.Snapshot()}
	h.run(3*h.heartbeat.Milliseconds() + 1000)
	h.ask(gone, name, 2000, false)
	if !slices.Contains(h.able(c.at), x) || x.is.issuer.series.byName[name] != nil {
		return
	}
	h.loseMuted(c, x, name)
}

// loseYoung: the copy that is put back is younger than all heartbeats. Only the node that has taken a block
// since can notice the loss, by the record. Until it has looked, no other node may take any.
func (h *history) loseYoung() {
	h.inside = true // no heartbeat of another node shows the loss
	defer func() { h.inside = false }()
	h.calm()
	name := h.names[h.rng.IntN(len(h.names))]
	x, y := h.nodes[0], h.nodes[1]
	h.ask(x, name, 10, false)
	for _, n := range h.nodes {
		n.beat()
	}
	s := x.is.issuer.series.byName[name]
	if s == nil || s.Known == nil || s.Known.DeletedAt != 0 {
		return
	}
	c, gen := simCopy{h.now, h.Mem.Snapshot()}, s.Known.WriteCount
	for range 30 {
		h.ask(x, name, 1+h.rng.IntN(300), false)
	}
	if s.Known.WriteCount == gen || !slices.Contains(h.able(c.at-2*h.heartbeat.Milliseconds()-1), x) {
		return
	}
	h.putBack(c, x)
	x.round()
	x.beat()
	for range 10 {
		h.ask(y, name, 1+h.rng.IntN(300), false)
		h.run(h.confirm.Milliseconds() / 5)
	}
}

// putBackLate: an operator has raised a next value by about as much as the next skip. ZooKeeper loses that and the
// blocks that were taken since, and no heartbeat. The node that knows of it reports the loss, and puts the record back
// as late as it may. Meanwhile another one, which has not followed, is asked for values.
func (h *history) putBackLate() {
	h.calm()
	name := h.names[h.rng.IntN(len(h.names))]
	op := h.operator(h.Mem.Session())
	ctx := context.Background()
	gone, x, y := h.nodes[0], h.nodes[1], h.nodes[len(h.nodes)-1]
	r, st, err := op.Find(ctx, name)
	if err != nil || x == y || r.DeletedAt != 0 || r.Mode == record.Strict {
		return
	}
	h.inside = true
	defer func() { h.inside, h.lazy = false, nil }()
	for _, n := range h.nodes {
		n.beat()
		n.round()
	}
	c := simCopy{h.now, h.Mem.Snapshot()}
	p := r.Next + r.Credit + r.HardCeiling*(max(0, st.Time-r.CreditAt)/1000+20+h.rng.Int64N(30))
	op.Clock = simHasty{simOperator{h}}
	if _, err := op.Set(ctx, name, operator.Change{NextPosition: &p}); !errors.Is(err, errHasty) {
		return
	} else if r, _, err := op.Find(ctx, name); err != nil || r.Next < p { // nodes have not followed the last change
		return
	}
	h.note("by hand: next position of %s is %d", name, p)
	for _, n := range []*simNode{gone, x} {
		n.is.follower.current = false
		n.round()
	}
	for range 12 {
		h.ask(gone, name, int(1+h.rng.Int64N(min(3000, 2*r.HardCeiling))), false)
	}
	if !slices.Contains(h.able(c.at-2*h.heartbeat.Milliseconds()-1), x) {
		return
	}
	gone.start(false)
	h.putBack(c, x)
	x.round()
	x.beat()
	h.lazy = x
	for h.now < h.noticeBy+h.confirm.Milliseconds() {
		h.ask(y, name, int(1+h.rng.Int64N(min(3000, r.HardCeiling))), false)
		h.run(h.confirm.Milliseconds() / 20)
	}
}

// loseKeys: ZooKeeper loses keys of requests. One node knows them. When an operator has said where the strict sequence
// goes on, another one is asked with the same keys.
func (h *history) loseKeys() {
	if h.strict["x0"] == nil {
		return
	}
	h.calm()
	c := simCopy{h.now, h.Mem.Snapshot()}
	h.run(3*h.heartbeat.Milliseconds() + 1000)
	x, y := h.nodes[0], h.nodes[1]
	for range 5 {
		h.askKeyed(x, "x0")
	}
	if !slices.Contains(h.able(c.at), x) {
		return
	}
	h.putBack(c, x)
	h.run(2 * h.confirm.Milliseconds())
	h.vouch(h.operator(h.Mem.Session()), "x0")
	h.run(2 * h.heartbeat.Milliseconds())
	for range 8 {
		h.askKeyed(y, "x0")
	}
}
