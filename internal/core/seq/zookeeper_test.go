package seq

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/zkstore"
	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/sequence"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// TestMemAndZooKeeperBehaveAlike plays the same courses of events on a ZooKeeper in memory and on a real one,
// so that the simulation holds for the real one.
func TestMemAndZooKeeperBehaveAlike(t *testing.T) {
	for course, run := range courses {
		t.Run(course, func(t *testing.T) {
			zkstore.Both(t, func(t *testing.T, open func() store.Store) { run(newHouse(t, open)) })
		})
	}
}

// house is a cluster whose nodes have a clock of the test.
type house struct {
	*testing.T
	open  func() store.Store
	admin store.Store
	now   int64 // ms
}

func newHouse(t *testing.T, open func() store.Store) *house {
	h := &house{T: t, open: open, admin: open()}
	createCluster(h.admin, 0)
	return h
}

func (h *house) operator() operator.Commands {
	return operator.Commands{Store: h.admin, Clock: simClock{&h.now, func() {}}}
}

// door is a node's store. The test ends its session by putting another client in.
type door struct{ store.Store }

// guest is a node with a confirmed worker.
type guest struct {
	h    *house
	door *door
	is   *Rounds
}

func (h *house) node() *guest {
	g := &guest{h: h, door: &door{h.open()}}
	_, g.is = New(Config{
		Store: g.door, Tenure: g,
		Elapsed: elapsedOf(&h.now),
		// the clock may stand still, and no pause would end
		Retry: func(time.Duration) time.Duration { return 0 },
	})
	g.settle()
	return g
}

func (*guest) Slot(int64) Slot {
	return Slot{Path: record.ClusterPath, Version: store.AnyVersion, Incarnation: anyIncarnation}
}

func (*guest) ReleasesAtStop() bool { return false }

func (g *guest) ReportLoss(known int64, _ string) {
	if err := raiseIncarnation(g.h.admin, known, 0); err != nil {
		g.h.Error(err)
	}
}

func (*guest) Cluster() (ClusterInfo, bool) {
	return ClusterInfo{UUID: "c", ConfirmTime: stageConfirm}, true
}

func (g *guest) round() {
	g.h.Helper()
	ctx, cancel := context.WithTimeout(g.h.Context(), 10*time.Second)
	defer cancel()
	if err := g.door.Sync(ctx, "/"); err != nil { // a new client has a session then
		g.h.Fatal(err)
	}
	if err := g.is.Round(ctx); err != nil {
		g.h.Fatal(err)
	}
}

// settle lets time pass until the confirming time is over, twice: a loss of data begins it anew.
func (g *guest) settle() {
	g.h.Helper()
	for range 2 * (stageConfirm/time.Second + 3) {
		g.round()
		g.h.now += 1000
	}
}

// take returns the first of n values that follow each other.
func (g *guest) take(name string, n int) int64 {
	g.h.Helper()
	v, err := g.try(name, n)
	if err != nil {
		g.h.Fatal(err)
	}
	return v
}

func (g *guest) try(name string, n int) (int64, error) {
	g.h.Helper()
	var w sequence.Wait
	for range 10 {
		runs, err := g.is.issuer.Take(&w, []byte(name), n, n > 1, func() {}, nil)
		if err == nil {
			return int64(runs[0].First), nil
		}
		if !errors.Is(err, sequence.ErrPending) {
			return 0, err
		}
		g.round()
	}
	return 0, sequence.ErrPending
}

func (h *house) create(name string) {
	h.Helper()
	if _, err := h.operator().Create(h.Context(), operator.Definition{Name: name, Map: plain(), Settings: settings(1000),
		StartGiven: true}); err != nil {
		h.Fatal(err)
	}
}

func (h *house) record(name string) (record.Record, record.State) {
	h.Helper()
	r, st, err := h.operator().Find(h.Context(), name)
	if err != nil {
		h.Fatal(err)
	}
	return r.Record, st
}

// wipe removes the records of a sequence and of all sequences. The sessions of the nodes end.
func (h *house) wipe(name string, nodes ...*guest) {
	h.Helper()
	for _, path := range []string{record.Path(name), record.BucketPath(name), record.RecordsDir, record.StatePath} {
		if err := h.admin.Delete(h.Context(), path, store.AnyVersion); err != nil {
			h.Fatal(err)
		}
	}
	for _, g := range nodes {
		g.door.Store = h.open()
	}
}

// courses use the names of sequences that are the hardest for a path.
var courses = map[string]func(h *house){
	"keys of a strict sequence": strictKeys,
	"take at once": func(h *house) {
		nodes := []*guest{h.node(), h.node(), h.node()}
		h.create("a/b{c}")
		for _, g := range nodes {
			g.settle()
		}
		firsts := make([][]int64, len(nodes))
		var asking sync.WaitGroup
		for k, g := range nodes {
			asking.Go(func() {
				for range 20 {
					if v, err := g.try("a/b{c}", 32); err == nil {
						firsts[k] = append(firsts[k], v)
					}
				}
			})
		}
		asking.Wait()
		seen := map[int64]bool{}
		for _, all := range firsts {
			for _, v := range all {
				for k := range int64(32) {
					if seen[v+k] {
						h.Fatalf("%d is issued twice", v+k)
					}
					seen[v+k] = true
				}
			}
		}
		if len(seen) != 3*20*32 {
			h.Errorf("%d values", len(seen))
		}
		if all, _, err := h.operator().List(h.Context(), "a/"); err != nil || len(all) != 1 || all[0].Name != "a/b{c}" {
			h.Error(all, err)
		}
	},
	"give back": func(h *house) {
		a, b := h.node(), h.node()
		h.create("order")
		a.take("order", 10)
		if err := a.is.giveBack(h.Context()); err != nil {
			h.Fatal(err)
		}
		if v := b.take("order", 1); v != 11 {
			h.Errorf("%d after 10", v)
		}
	},
	"delete and create again": func(h *house) {
		a := h.node()
		h.create("order")
		a.take("order", 10)
		next, _ := h.record("order")
		if _, err := h.operator().Delete(h.Context(), "order"); err != nil {
			h.Fatal(err)
		}
		a.settle()
		if v, err := a.try("order", 1); err == nil {
			h.Errorf("%d of a deleted sequence", v)
		}
		h.create("order")
		a.settle()
		if v := a.take("order", 1); v != next.Value(next.Next) {
			h.Errorf("%d, not %d", v, next.Value(next.Next))
		}
	},
	"wiped": func(h *house) {
		a := h.node()
		h.create("order")
		a.take("order", 100)
		before, _ := h.record("order")
		h.wipe("order", a)
		a.settle()
		after, st := h.record("order")
		if st.Incarnation != 1 || after.Next < before.Next || after.ID != before.ID {
			h.Errorf("put back: %+v, %+v", after, st)
		}
		if v := h.node().take("order", 10); v < before.Value(before.Next) {
			h.Errorf("%d is issued again", v)
		}
	},
}
