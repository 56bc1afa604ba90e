package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

// seqWorld is a cluster in memory, in which a node has served sequences. Commands work on it until the test ends.
type seqWorld struct {
	t     *testing.T
	mem   *memzk.Server
	store store.Store
	ago   time.Duration // how far the leader's clock is behind
}

func newSeqWorld(t *testing.T) *seqWorld {
	t.Helper()
	w := &seqWorld{t: t}
	w.mem = memzk.New(func() int64 { return time.Now().Add(-w.ago).UnixMilli() })
	w.store = w.mem.Session()
	withStore = func(_ *cli.Context, f func(store.Store) error) error { return f(w.store) }
	t.Cleanup(func() { withStore = withZooKeeper })
	lease := 2 * time.Hour
	want, err := node.Settings{Lease: &lease}.Record("u", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := coordinator.CreateCluster(t.Context(), w.store, want, time.Now().UnixMilli()); err != nil {
		t.Fatal(err)
	}
	put(t, w.store, "/seq", record.State{Cluster: "u"}, true)
	return w
}

// losesData raises the incarnation, as the node does that notices a loss of data.
func (w *seqWorld) losesData() {
	w.t.Helper()
	cl, err := coordinator.PeekCluster(w.t.Context(), w.store)
	if err != nil {
		w.t.Fatal(err)
	}
	cl.Incarnation++
	put(w.t, w.store, "/cluster", cl, false)
}

func (w *seqWorld) operator() operator.Commands {
	return operator.Commands{Store: w.store, By: "test"}
}

func (w *seqWorld) show(name string) (record.Record, record.State) {
	w.t.Helper()
	r, state, err := w.operator().Find(w.t.Context(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	return r.Record, state
}

// taken makes nodes take all values below next.
func (w *seqWorld) taken(name string, next int64) {
	w.t.Helper()
	if _, err := w.operator().Set(w.t.Context(), name, operator.Change{Next: &next}); err != nil {
		w.t.Fatal(err)
	}
}

// absent makes a node hold worker 1 that is not connected.
func (w *seqWorld) absent() {
	w.t.Helper()
	w.ago = time.Minute // since the last heartbeat
	put(w.t, w.store, coordinator.SlotPath(0), coordinator.Slot{Released: true}, true)
	w.holds(coordinator.Slot{Node: "n", Nonce: "x", Term: 1, LeaseUntil: 4_102_444_800_000,
		Labels: coordinator.Labels{Name: "b"}})
	w.ago = 0
}

// behind connects a node that knows of one change.
func (w *seqWorld) behind() {
	w.t.Helper()
	put(w.t, w.store, coordinator.SlotPath(0), coordinator.Slot{Released: true}, true)
	w.holds(coordinator.Slot{Node: "n", Nonce: "x", Term: 1, LeaseUntil: 1,
		Followed: coordinator.Followed{Last: &coordinator.Change{}}})
	if _, err := w.mem.Session().Create(w.t.Context(), "/live/0001", nil, store.Ephemeral); err != nil {
		w.t.Fatal(err)
	}
	seqClock = &leaping{time.Now()}
	w.t.Cleanup(func() { seqClock = nil })
}

// holds writes the record of worker 1.
func (w *seqWorld) holds(s coordinator.Slot) {
	w.t.Helper()
	cl, err := coordinator.PeekCluster(w.t.Context(), w.store)
	if err != nil {
		w.t.Fatal(err)
	}
	cl.HighestSlot = 1
	put(w.t, w.store, "/cluster", cl, false)
	put(w.t, w.store, coordinator.SlotPath(1), s, true)
}

// leaping is a clock on which each sleep takes 10 s.
type leaping struct{ at time.Time }

func (l *leaping) Now() time.Time { return l.at }

func (l *leaping) Sleep(context.Context, time.Duration) error {
	l.at = l.at.Add(10 * time.Second)
	return nil
}

// call runs `flaked seq` with these arguments in this cluster.
func (w *seqWorld) call(args ...string) result {
	w.t.Helper()
	return call(w.t, "", append([]string{"seq"}, args...)...)
}

// An operator who made sure of the next value before another loss has made sure of nothing.
func TestSeqVouchedBeforeAnotherLoss(t *testing.T) {
	w := newSeqWorld(t)
	w.call("create", "order").wants(t, exitOK, "created", "")
	w.losesData()
	w.losesData()
	if _, err := w.operator().Set(t.Context(), "order",
		operator.Change{Next: new(int64(3001)), VouchedIn: 1}); !errors.Is(err, operator.ErrLostAgain) {
		t.Error(err)
	}
}

// An operator ends a far jump while it waits for the nodes. The command says that it has made the change, and goes on
// waiting when it is given again.
func TestSeqSetIsInterrupted(t *testing.T) {
	w := newSeqWorld(t)
	w.call("create", "order").wants(t, exitOK, "created", "")
	w.behind()
	s := coordinator.Slot{Node: "n", Nonce: "x", Term: 1, LeaseUntil: 1, Followed: coordinator.Followed{Last: &coordinator.Change{Number: 1}}}
	put(t, w.store, coordinator.SlotPath(1), s, false)
	ctx, cancel := context.WithCancel(t.Context())
	seqClock = interrupted{cancel}
	args := []string{"seq", "set", "order", "--next", "5000", "--confirm", "skip values of order below 5000"}
	callCtx(t, ctx, "", args...).wants(t, exitFailure, "", "order: the change was made, but it is not known whether "+
		"all nodes have followed it: interrupted. `flaked doctor` names those that run and have not.")
	seqClock = &leaping{time.Now()}
	call(t, "", args...).wants(t, exitFailure, "", "the change was made, but not all nodes have followed it within 30s: "+
		"worker 1. Connect them")
	s.Followed.Last.Number = 2
	put(t, w.store, coordinator.SlotPath(1), s, false)
	call(t, "", args...).wants(t, exitOK, "has these settings already", "")
}

// interrupted is a clock by which the operator ends a command that waits.
type interrupted struct{ end func() }

func (interrupted) Now() time.Time { return time.Now() }

func (c interrupted) Sleep(ctx context.Context, _ time.Duration) error {
	c.end()
	return ctx.Err()
}
