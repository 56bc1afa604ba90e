package campaign

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/worker"
)

// endState holds the records in ZooKeeper.
type endState struct {
	cluster coordinator.Cluster
	slots   []coordinator.Entry
}

// live returns the workers with a live lock.
func (s endState) live() (workers []int) {
	for _, e := range s.slots {
		if e.Live {
			workers = append(workers, e.Worker)
		}
	}
	return workers
}

func (c *campaign) readState() (s endState, err error) {
	err = c.withZooKeeper(func(ctx context.Context, zk *store.ZK) error {
		if s.cluster, err = coordinator.ReadCluster(ctx, zk); err != nil {
			return err
		}
		s.slots, err = coordinator.ReadSlots(ctx, zk, s.cluster)
		return err
	})
	return s, err
}

// shows waits up to 15 s until exactly these workers have live locks, and returns the records.
// The wait is needed because the lock of a killed process stays until its session expires.
func (c *campaign) shows(workers []int) (s endState) {
	var err error
	slices.Sort(workers)
	ok := harness.Waits(c.t.Context(), 15*time.Second, func() bool {
		s, err = c.readState()
		return err == nil && slices.Equal(s.live(), workers)
	})
	if !ok {
		c.violated("ZooKeeper", "shows workers %v live at the end, and %v are: %v", s.live(), workers, err)
	}
	return s
}

// wrongWith returns findings about the records after all nodes have stopped. held has the
// workers that the nodes held, with true for those that were released at the stop. highest has
// the highest ID of each worker. lossy says that ZooKeeper lost data during the run. The records
// of nodes that stopped earlier are then not checked, because they may be old.
func (s endState) wrongWith(held map[int]bool, highest map[int64]worker.ID, h *harness.History, lossy bool) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, "ZooKeeper: "+fmt.Sprintf(format, args...)) }
	owners := map[string]bool{} // nodes that held a worker at the end
	stopped := 0
	for _, e := range s.slots {
		released, own := held[e.Worker]
		if own && !released {
			stopped++
			owners[e.Slot.Node] = true
		}
		beyond := func(bound int64) bool {
			id, issued := highest[int64(e.Worker)]
			return issued && h.Ms(id) >= bound
		}
		if what := wrongSlot(e, own, released, lossy, beyond); what != "" {
			say("worker %d %s: %+v, its highest ID is %d", e.Worker, what, e.Slot, highest[int64(e.Worker)])
		}
	}
	if len(owners) != stopped {
		say("workers %v belong to %d nodes", held, len(owners))
	}
	for w := range highest {
		if int(w) > s.cluster.HighestSlot {
			say("worker %d has issued IDs, and the cluster has used no more than %d", w, s.cluster.HighestSlot)
		}
	}
	return wrong
}

// wrongSlot returns what is wrong with the record of a worker, or "". beyond reports whether the worker has issued an
// ID at or above a bound.
func wrongSlot(e coordinator.Entry, own, released, lossy bool, beyond func(int64) bool) string {
	r := e.Slot
	switch {
	case released && (e.Missing || !r.Released || r.Phase != "released" || r.Ticket != ""):
		return "was given back"
	case released && beyond(r.LeaseUntil):
		return "has issued beyond the bound that it was given back with"
	case released:
		return ""
	case own && (e.Missing || !r.Stopped || r.Released || r.Phase != "stopped"),
		own && (r.StoppedAt > r.LeaseUntil || r.StoppedAt == 0):
		return "was stopped"
	case own && beyond(r.StoppedAt), !own && !lossy && r.Term > 0 && beyond(r.LeaseUntil):
		return "has issued beyond the bounds in its record"
	}
	return ""
}

// lossy reports whether ZooKeeper lost data during the run.
func (c *campaign) lossy() bool {
	return c.anyFault(func(f *fault) bool { return f.kind.loses() })
}

// healthyEnd returns the records after a run without a fault. Workers 0 and 1 belong to nodes that stopped at the end.
// Worker 2 belongs to a node that stopped earlier. Worker 3 was released earlier by the node of worker 0, and worker 4
// at the end.
func healthyEnd() (endState, map[int64]worker.ID) {
	slot := func(w int, s coordinator.Slot) coordinator.Entry {
		s.Term = 1
		return coordinator.Entry{Worker: w, Slot: s}
	}
	at := func(ms int64) int64 { return harness.EpochMs + ms }
	return endState{
		cluster: coordinator.Cluster{HighestSlot: 4},
		slots: []coordinator.Entry{
			slot(0, coordinator.Slot{Node: "a", LeaseUntil: at(100), Stopped: true, StoppedAt: at(50),
				Phase: "stopped"}),
			slot(1, coordinator.Slot{Node: "b", LeaseUntil: at(100), Stopped: true, StoppedAt: at(50),
				Phase: "stopped"}),
			slot(2, coordinator.Slot{Node: "c", LeaseUntil: at(40)}),
			slot(3, coordinator.Slot{Node: "a", LeaseUntil: at(9), Released: true}),
			slot(4, coordinator.Slot{Node: "e", LeaseUntil: at(60), Released: true, Phase: "released"}),
		},
	}, map[int64]worker.ID{0: harness.IDAt(49, 0, 0), 1: harness.IDAt(49, 1, 0), 2: harness.IDAt(39, 2, 0), 3: harness.IDAt(8, 3, 0), 4: harness.IDAt(59, 4, 0)}
}

func TestEndState(t *testing.T) {
	type ids = map[int64]worker.ID
	type spoiler = func(*endState, ids)
	slot := func(i int, change func(*coordinator.Slot)) spoiler {
		return func(s *endState, _ ids) { change(&s.slots[i].Slot) }
	}
	issued := func(w int64, tick worker.Tick) spoiler {
		return func(_ *endState, h ids) { h[w] = harness.IDAt(tick, w, 0) }
	}
	notReleased := func(s *coordinator.Slot) { s.Released = false }
	for _, row := range []struct {
		name  string
		want  string
		spoil spoiler
	}{
		{"healthy", "", func(*endState, ids) {}},
		{"one that never issued", "", func(_ *endState, h ids) { delete(h, 2) }},
		{"not stopped", "worker 0 was stopped", slot(0, func(s *coordinator.Slot) { s.Stopped = false })},
		{"lost", "worker 0 was stopped", func(s *endState, _ ids) { s.slots[0].Missing = true }},
		{"M above H", "worker 1 was stopped", slot(1, func(s *coordinator.Slot) { s.StoppedAt = harness.EpochMs + 101 })},
		{"an ID at the stored end", "worker 0 has issued", issued(0, 50)},
		{"an ID at the lease's end", "worker 2 has issued", issued(2, 40)},
		{"an ID at the end given back", "worker 3 has issued", issued(3, 9)},
		{"of a worker never used", "no more than 4", issued(5, 1)},
		{"not given back", "worker 4 was given back", slot(4, notReleased)},
		{"given back, with a ticket", "worker 4 was given back", slot(4, func(s *coordinator.Slot) { s.Ticket = "t" })},
		{"an ID at the end of what was given back", "worker 4 has issued", issued(4, 60)},
		{"one node, two machines", "belong to 1 nodes", slot(1, func(s *coordinator.Slot) { s.Node = "a" })},
	} {
		s, highest := healthyEnd()
		row.spoil(&s, highest)
		held := map[int]bool{0: false, 1: false, 4: true}
		got := strings.Join(s.wrongWith(held, highest, harness.NewHistory(), false), "\n")
		if (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
		if lossy := s.wrongWith(held, highest, harness.NewHistory(), true); row.name == "an ID at the lease's end" && len(lossy) > 0 {
			t.Errorf("%s after a loss: %q", row.name, lossy)
		}
	}
}
