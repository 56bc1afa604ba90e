package seqstore

import (
	"context"
	"slices"

	"github.com/flaked/flaked/internal/zkstore"
	"github.com/flaked/flaked/sequence"
)

func (h *history) create(store zkstore.Store, name string) {
	ceiling := []int64{50, 1000, 20000}[h.rng.IntN(3)]
	start := int64(1)
	_, _, missing := h.mem.Peek(recordPath(name))
	if missing != nil && h.highest[name] > 0 { // nodes that are cut off may hold some that nobody has got yet
		start = h.highest[name] + 1_000_000
	}
	op := h.operator(store)
	r, err := op.Create(context.Background(), Definition{
		Name: name, Mode: h.modeOf(name), Map: h.mapOf(name, start),
		Settings: Settings{Block: 32, SupplyMs: 60_000, HoldMs: 600_000, Ceiling: ceiling, HardCeiling: ceiling}, StartGiven: true,
	})
	h.note("by hand: create %s, ceiling %d: %v", name, ceiling, err)
	if err == nil {
		h.born(op, name, r)
	}
	if err == nil && missing != nil {
		h.takings[name] = append(h.takings[name], simTaking{at: h.now, extra: r.Credit})
	}
}

// offset returns how far a clock is off, in ms. Two clocks may be ClocksApart apart, or less if the
// confirming time is short.
func (h *history) offset() int64 {
	most := min(sequence.ClocksApart, h.confirm-h.confirm/6-sequence.Burst/firstBlockPart/1).Milliseconds() / 2
	return h.rng.Int64N(2*most+1) - most
}

func (h *history) operator(store zkstore.Store) Operator {
	return Operator{Store: store, Now: func() int64 { return simEpoch + h.now + h.offset() }, Guard: Unguarded}
}

// jump lets an operator raise the next value, delete the sequence, or create it again. Nobody may do
// so until all nodes that are connected have followed the last time, as --wait says.
func (h *history) jump() {
	name := h.names[h.rng.IntN(len(h.names))]
	store := h.mem.Session()
	op := h.operator(store)
	ctx := context.Background()
	k := h.rng.IntN(4)
	if h.now < h.noticeBy {
		k = 3
	}
	h.confirmTemplate(op)
	h.vouch(op, "x0")
	h.checkGaps(name)
	defer h.countGaps(name)
	switch k {
	case 3:
		for i := range 1 + h.rng.IntN(4) {
			_, err := op.Set(ctx, name, Change{Settings: func(s *Settings) { s.SupplyMs += int64(i) }})
			h.note("by hand: other settings for %s: %v", name, err)
		}
		return
	case 0:
		v, _, err := op.look(ctx, name)
		if err != nil || v.record == nil {
			return
		}
		p := v.record.Next + h.rng.Int64N(3000)
		change := Change{NextPosition: &p}
		if next := v.record.Value(p); v.record.Scatter == 0 {
			change = Change{Next: &next}
		}
		_, err = op.Set(ctx, name, change)
		h.note("by hand: next position of %s is %d: %v", name, p, err)
	case 1:
		_, err := op.Delete(ctx, name)
		h.note("by hand: delete %s: %v", name, err)
	case 2:
		h.create(store, name)
	}
	h.wait()
}

// wait lets time pass until all nodes that are connected have followed an operator, as --wait does. ZooKeeper
// loses no data meanwhile.
func (h *history) wait() {
	staged := h.staged
	h.staged = true
	defer func() { h.staged = staged }()
	v, _, err := h.operator(h.mem.Session()).look(context.Background(), "x")
	lags := func(n *simNode) bool {
		if n.cut || h.now < n.pauseTill {
			return false
		}
		return n.is.state == nil || n.is.state.Changes < v.state.Changes || slices.ContainsFunc(n.is.list(), (*series).isStale)
	}
	h.run(h.heartbeat.Milliseconds() + 500)
	for err == nil && slices.ContainsFunc(h.nodes, lags) {
		h.run(h.heartbeat.Milliseconds())
	}
}
