package seq

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

func (h *history) create(st store.Store, name string) {
	start := []int64{1, 1 + h.highest[name]/2, h.highest[name] + 1, h.highest[name] + 10_000}[h.rng.IntN(4)]
	h.createFrom(h.operator(st), name, start)
}

func (h *history) createFrom(op operator.Commands, name string, start int64) {
	ceiling := []int64{50, 1000, 20000}[h.rng.IntN(3)]
	missing, lost, err := forgotten(op, name)
	if err != nil {
		return
	}
	if lost { // nodes that are cut off may hold some that nobody has got yet
		start = h.highest[name] + 1_000_000
	}
	m, hold := h.mapOf(name, start, lost), h.hold
	if isOrdered(name) {
		hold = h.lease
	}
	end := h.expect(op.Store, name)
	r, err := op.Create(context.Background(), operator.Definition{
		Name: name, Mode: h.modeOf(name), Map: m,
		Settings:   record.Settings{Block: 32, SupplyMs: 60_000, HoldMs: hold, Ceiling: ceiling, HardCeiling: ceiling},
		StartGiven: true,
	})
	end()
	h.note("by hand: create %s, ceiling %d, %+v: %v", name, ceiling, m, err)
	if made(err) && missing {
		h.takings[name] = append(h.takings[name], simTaking{at: h.now, extra: r.Credit})
	}
}

// forgotten reports whether there is no record of a name, and whether data were lost of which its record does not know.
func forgotten(op operator.Commands, name string) (missing, lost bool, err error) {
	r, state, err := op.Find(context.Background(), name)
	if errors.Is(err, operator.ErrNotFound) {
		return true, state.Incarnation > 0, nil
	}
	return false, r.Incarnation < state.Incarnation, err
}

// offset returns how far a wall clock is off.
func (h *history) offset() time.Duration {
	if h.right != bootRight {
		return 0
	}
	return []time.Duration{0, 0, 4, -4, 60, -60, -660, 200}[h.rng.IntN(8)] * time.Second
}

// setClocks makes the wall clock of a node step, unless its machine stands still, or that of ZooKeeper's leader.
func (h *history) setClocks(n *simNode) {
	if h.now < n.pauseTill {
		return
	}
	h.setRate(n.machine)
	if n.machine.SetSkew(h.offset()); h.right == wallRight {
		h.Leap([]time.Duration{0, 60, 140, -60}[h.rng.IntN(4)]*time.Second - h.Leads())
	}
	h.note("the clock of node %d is off by %s, that of the leader by %s", n.id, n.machine.Skew(), h.Leads())
}

func (h *history) operator(st store.Store) operator.Commands {
	return operator.Commands{Store: st, Clock: simOperator{h}}
}

// simOperator is the clock of an operator: the nodes go on while a command waits.
type simOperator struct{ *history }

func (c simOperator) Now() time.Time { return time.UnixMilli(simEpoch + c.now).Add(c.Leads()) }

func (c simOperator) Sleep(ctx context.Context, d time.Duration) error {
	c.run(d.Milliseconds())
	return ctx.Err()
}

// made reports whether a command has made its change, also if nodes have not followed.
func made(err error) bool {
	late, is := errors.AsType[*operator.NotFollowedError](err)
	return err == nil || is && late.Made
}

// simHasty is an operator who ends a command that would wait.
type simHasty struct{ simOperator }

var errHasty = errors.New("ended by hand")

func (simHasty) Sleep(context.Context, time.Duration) error { return errHasty }

// jump lets an operator raise the next value, delete the sequence, or create it again. Nobody may do
// so until all nodes that are connected have followed the last time, as --wait says.
func (h *history) jump() {
	was := h.staged
	h.staged = true // no other losses while a command waits for the nodes
	defer func() { h.staged = was }()
	name := h.names[h.rng.IntN(len(h.names))]
	st := h.Mem.Session()
	op := h.operator(st)
	ctx := context.Background()
	k := h.rng.IntN(5)
	if h.now < h.noticeBy {
		if k = 3; h.purged[name] { // a limit: the record of an older life would seem to be the later one
			return
		}
	}
	if k != 3 && strings.HasPrefix(name, simFamily) {
		h.changeFamily(op, k)
		return
	}
	h.confirmTemplate(op)
	h.vouch(op, "x0")
	h.checkGaps(name)
	defer h.countGaps(name)
	switch k {
	case 3:
		for i := range 1 + h.rng.IntN(4) {
			_, err := op.Set(ctx, name, operator.Change{Settings: func(s *record.Settings) { s.SupplyMs += int64(i) }})
			h.note("by hand: other settings for %s: %v", name, err)
		}
		return
	case 0:
		r, _, err := op.Find(ctx, name)
		if err != nil {
			return
		}
		p := r.Next + h.rng.Int64N(3000)
		change := operator.Change{NextPosition: &p}
		if next := r.Value(p); r.Scatter == 0 {
			change = operator.Change{Next: &next}
		}
		_, err = op.Set(ctx, name, change)
		h.note("by hand: next position of %s is %d: %v", name, p, err)
	case 1:
		h.remove(op, name)
	case 2:
		h.create(st, name)
	case 4:
		h.live(op, name)
	}
	h.wait()
}

func (h *history) remove(op operator.Commands, name string) {
	r, err := op.Delete(context.Background(), name)
	h.note("by hand: delete %s, wait %d from %d: %v", name, r.WaitMs, r.WaitFrom, err)
}

// live gives a name some lives in a row, mostly unused ones. Meanwhile nodes that are cut off issue values of an
// earlier one.
func (h *history) live(op operator.Commands, name string) {
	for range 1 + h.rng.IntN(3) {
		if n := h.nodes[h.rng.IntN(len(h.nodes))]; h.rng.IntN(2) == 0 && !h.mustNotice(n) {
			h.ask(n, name, 1, false)
			n.cut = true
			n.store.Partition()
		}
		h.remove(op, name)
		h.wait()
		if h.rng.IntN(2) == 0 {
			h.run(h.rng.Int64N(80_000))
			h.purge(op, name)
			h.wait()
		}
		h.create(op.Store, name)
		h.wait()
		for _, n := range h.nodes {
			if h.rng.IntN(2) == 0 {
				h.ask(n, name, 1+h.rng.IntN(100), false)
			}
		}
	}
}

// purge removes a tombstone, unless it is refused. From then on, the values of the name may come again.
func (h *history) purge(op operator.Commands, name string) (done bool) {
	if h.inOrder(name) || name == simKeyed {
		return false
	}
	err := op.Purge(context.Background(), name)
	if h.note("by hand: purge %s: %v", name, err); err != nil {
		return false
	}
	h.purged[name] = true
	maps.DeleteFunc(h.given, func(given string, _ bool) bool { return strings.HasPrefix(given, name+" ") })
	delete(h.takings, name)
	for _, n := range h.nodes {
		delete(n.max, name)
	}
	return true
}

// wait lets time pass until all nodes that are connected have followed an operator, as --wait does. ZooKeeper
// loses no data meanwhile.
func (h *history) wait() {
	staged := h.staged
	h.staged = true
	defer func() { h.staged = staged }()
	state, err := h.operator(h.Mem.Session()).State(context.Background())
	lags := func(n *simNode) bool {
		return !n.cut && h.now >= n.pauseTill && n.is.issuer.Followed().Last.Number < state.Changes
	}
	h.run(h.heartbeat.Milliseconds() + 500)
	for err == nil && slices.ContainsFunc(h.nodes, lags) {
		h.run(h.heartbeat.Milliseconds())
	}
}
