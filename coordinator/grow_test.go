package coordinator

import (
	"testing"

	"github.com/flaked/flaked/internal/testkit/memzk"
)

// A cluster of many slots grows in requests that are small enough for a server.
func TestGrowsInSteps(t *testing.T) {
	l := newLab(t, 1<<16)
	if err := l.mem.SetCreateCount(ticketsPath, 1<<15); err != nil {
		t.Fatal(err)
	}
	a := l.node("A")
	a.sess.SetFault(func(c memzk.Call) memzk.Fault {
		if len(c.Ops) > 2000 {
			t.Errorf("%d operations at once", len(c.Ops))
		}
		return memzk.NoFault
	})
	h := a.co.Enlist("a")
	_, err := h.Register(t.Context(), l.cluster(), labLease, a.trust)
	if err != nil || h.Worker != 1<<15 {
		t.Errorf("%+v, %v", h.Held(), err)
	}
}

// /cluster was recreated while slots exist. When the cluster grows, it keeps their records.
func TestGrowsOverRecordsThatAreThere(t *testing.T) {
	l := newLab(t, 12)
	a := l.serving("A")
	b := l.serving("B")
	b.must(b.leave())
	l.remove(SlotPath(2))
	was := l.slot(0)
	l.remove(clusterPath)
	l.cl.UUID = "anew"
	l.init(l.cl)
	taken := map[int]bool{0: true}
	for range 4 {
		m := l.serving("N")
		if taken[m.claim.Worker] {
			t.Errorf("worker %d twice", m.claim.Worker)
		}
		taken[m.claim.Worker] = true
	}
	if s := l.slot(0); !same(s, was) || !taken[2] {
		t.Errorf("slot 0 %+v, taken %v", s, taken)
	}
	_, err := a.beat() // the others have confirmed
	wantFenced(t, err)
	l.disjoint()
}
