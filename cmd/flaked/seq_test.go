package main

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/core/store"
)

// seqWorld is a cluster in memory, in which a node has served sequences. Commands work on it until the test ends.
type seqWorld struct {
	t     *testing.T
	mem   *store.Mem
	store store.Store
}

const seqLease = 2 * time.Hour

func newSeqWorld(t *testing.T) *seqWorld {
	t.Helper()
	mem := store.NewMem(nil)
	w := &seqWorld{t: t, mem: mem, store: mem.Session()}
	withStore = func(_ *cli.Context, f func(store.Store) error) error { return f(w.store) }
	t.Cleanup(func() { withStore = withZooKeeper })
	lease := seqLease
	want, err := node.Settings{Lease: &lease}.Record("u", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := coordinator.CreateCluster(t.Context(), w.store, want, time.Now().UnixMilli()); err != nil {
		t.Fatal(err)
	}
	put(t, w.store, "/seq", seq.State{Cluster: "u"}, true)
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

func (w *seqWorld) operator() seq.Operator {
	return seq.Operator{Store: w.store, By: "test"}
}

func (w *seqWorld) show(name string) (seq.Record, seq.State) {
	w.t.Helper()
	r, st, err := w.operator().Show(w.t.Context(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	return r, st
}

// taken makes nodes take all values below next.
func (w *seqWorld) taken(name string, next int64) {
	w.t.Helper()
	if _, err := w.operator().Set(w.t.Context(), name, seq.Change{Next: &next}); err != nil {
		w.t.Fatal(err)
	}
}

// call runs `flaked seq` with these arguments in this cluster.
func (w *seqWorld) call(args ...string) result {
	w.t.Helper()
	return call(w.t, "", append([]string{"seq"}, args...)...)
}

// json runs a command with -o json and reads its output into v.
func (w *seqWorld) json(v any, args ...string) {
	w.t.Helper()
	r := w.call(append(args, "-o", "json")...)
	if r.code != exitOK {
		w.t.Fatalf("%v: %+v", args, r)
	}
	if err := json.Unmarshal([]byte(r.stdout), v); err != nil {
		w.t.Fatalf("%v: %v: %s", args, err, r.stdout)
	}
}

// An operator who made sure of the next value before another loss has made sure of nothing.
func TestSeqVouchedBeforeAnotherLoss(t *testing.T) {
	w := newSeqWorld(t)
	w.call("create", "order").wants(t, exitOK, "created", "")
	w.losesData()
	w.losesData()
	if _, err := w.operator().Set(t.Context(), "order",
		seq.Change{Next: new(int64(3001)), VouchedIn: 1}); !errors.Is(err, seq.ErrLostAgain) {
		t.Error(err)
	}
}
