package e2e

import (
	"context"
	"encoding/json"
	"errors"
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
	tickets map[string]string // node by path of the ticket
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
		if s.slots, err = coordinator.ReadSlots(ctx, zk, s.cluster); err != nil {
			return err
		}
		names, err := zk.Children(ctx, "/tickets")
		if err != nil {
			return err
		}
		s.tickets = map[string]string{}
		for _, name := range names {
			data, _, err := zk.Get(ctx, "/tickets/"+name)
			if errors.Is(err, store.ErrNoNode) {
				continue
			}
			var t struct {
				Node string `json:"node"`
			}
			if err == nil {
				err = json.Unmarshal(data, &t)
			}
			if err != nil {
				return err
			}
			s.tickets["/tickets/"+name] = t.Node
		}
		return nil
	})
	return s, err
}

// shows waits up to 15 s until exactly these workers have live locks, and returns the records.
// The wait is needed because the lock of a killed process stays until its session expires.
func (c *campaign) shows(workers []int) (s endState) {
	var err error
	slices.Sort(workers)
	ok := waits(c.t.Context(), 15*time.Second, func() bool {
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
func (s endState) wrongWith(held map[int]bool, highest map[int64]worker.ID, h *history, lossy bool) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, "ZooKeeper: "+fmt.Sprintf(format, args...)) }
	beyond := func(w int, bound int64) bool {
		id, issued := highest[int64(w)]
		return issued && h.ms(id) >= bound
	}
	holders := map[string]int{} // by node: number of slots not released
	nodes := map[string]bool{}  // nodes that held a worker at the end
	for _, e := range s.slots {
		released, own := held[e.Worker]
		switch {
		case released && (e.Absent || !e.Slot.Released || e.Slot.State != "released" || e.Slot.Ticket != ""):
			say("worker %d was given back, and its record is %+v", e.Worker, e.Slot)
		case released && beyond(e.Worker, e.Slot.LeaseUntil):
			say("worker %d has issued %d, which is beyond the bound that it was given back with: %+v", e.Worker, highest[int64(e.Worker)], e.Slot)
		case released:
			continue
		case own && (e.Absent || !e.Slot.Stopped || e.Slot.Released || e.Slot.State != "stopped" || e.Slot.StoppedAt > e.Slot.LeaseUntil || e.Slot.StoppedAt == 0):
			say("worker %d was stopped, and its record is %+v", e.Worker, e.Slot)
		case own && beyond(e.Worker, e.Slot.StoppedAt), !own && !lossy && e.Slot.Term > 0 && beyond(e.Worker, e.Slot.LeaseUntil):
			say("worker %d has issued %d, which is beyond the bounds in its record: %+v", e.Worker, highest[int64(e.Worker)], e.Slot)
		}
		if own {
			nodes[e.Slot.Node] = true
		}
		if e.Slot.Term > 0 && !e.Slot.Released {
			holders[e.Slot.Node]++
		}
	}
	stopped := 0
	for _, released := range held {
		if !released {
			stopped++
		}
	}
	if len(nodes) != stopped {
		say("workers %v belong to %d nodes", held, len(nodes))
	}
	for w := range highest {
		if int(w) > s.cluster.HighestSlot {
			say("worker %d has issued IDs, and the cluster has used no more than %d", w, s.cluster.HighestSlot)
		}
	}
	if lossy {
		return wrong
	}
	for node, n := range holders {
		if n > 1 {
			say("node %s has %d workers", node, n)
		}
	}
	registered := map[string]int{}
	for name, node := range s.tickets {
		if registered[node]++; holders[node] == 0 {
			say("%s is left of node %s, which has no worker", name, node)
		}
	}
	for node := range nodes {
		if registered[node] != 1 {
			say("node %s has %d tickets", node, registered[node])
		}
	}
	return wrong
}

// lossy reports whether ZooKeeper lost data during the run.
func (c *campaign) lossy() bool {
	return c.anyFault(func(f *fault) bool { return f.kind.loses() })
}

func TestEndState(t *testing.T) {
	id := func(w, tick int64) worker.ID { return idAt(worker.Tick(tick), w, 0) }
	epoch := epochMs
	// Workers 0 and 1 belong to nodes that stopped at the end. Worker 2 belongs to a node
	// that stopped earlier. Worker 3 was released earlier by the node of worker 0, and
	// worker 4 at the end.
	healthy := func() (endState, map[int64]worker.ID) {
		stopped := func(node string) coordinator.Slot {
			return coordinator.Slot{Node: node, Term: 1, LeaseUntil: epoch + 100, Stopped: true, StoppedAt: epoch + 50, State: "stopped"}
		}
		return endState{
			cluster: coordinator.Cluster{HighestSlot: 4},
			slots: []coordinator.Entry{{Worker: 0, Slot: stopped("a")}, {Worker: 1, Slot: stopped("b")},
				{Worker: 2, Slot: coordinator.Slot{Node: "c", Term: 1, LeaseUntil: epoch + 40}}, {Worker: 3, Slot: coordinator.Slot{Node: "a", Term: 1, LeaseUntil: epoch + 9, Released: true}},
				{Worker: 4, Slot: coordinator.Slot{Node: "e", Term: 1, LeaseUntil: epoch + 60, Released: true, State: "released"}}},
			tickets: map[string]string{"/tickets/n-1": "a", "/tickets/n-2": "b", "/tickets/n-3": "c"},
		}, map[int64]worker.ID{0: id(0, 49), 1: id(1, 49), 2: id(2, 39), 3: id(3, 8), 4: id(4, 59)}
	}
	for _, row := range []struct {
		name  string
		spoil func(*endState, map[int64]worker.ID)
		lossy bool
		want  string
	}{
		{name: "healthy", spoil: func(*endState, map[int64]worker.ID) {}},
		{name: "one that never issued", spoil: func(_ *endState, h map[int64]worker.ID) { delete(h, 2) }},
		{name: "not stopped", spoil: func(s *endState, _ map[int64]worker.ID) { s.slots[0].Slot.Stopped = false }, want: "worker 0 was stopped"},
		{name: "lost", spoil: func(s *endState, _ map[int64]worker.ID) { s.slots[0].Absent = true }, want: "worker 0 was stopped"},
		{name: "M above H", spoil: func(s *endState, _ map[int64]worker.ID) { s.slots[1].Slot.StoppedAt = epoch + 101 }, want: "worker 1 was stopped"},
		{name: "an ID at the stored end", spoil: func(_ *endState, h map[int64]worker.ID) { h[0] = id(0, 50) }, want: "worker 0 has issued"},
		{name: "an ID at the lease's end", spoil: func(_ *endState, h map[int64]worker.ID) { h[2] = id(2, 40) }, want: "worker 2 has issued"},
		{name: "an ID at the end given back", spoil: func(_ *endState, h map[int64]worker.ID) { h[3] = id(3, 9) }, want: "worker 3 has issued"},
		{name: "of a worker never used", spoil: func(_ *endState, h map[int64]worker.ID) { h[5] = id(5, 1) }, want: "no more than 4"},
		{name: "not given back", spoil: func(s *endState, _ map[int64]worker.ID) { s.slots[4].Slot.Released = false }, want: "worker 4 was given back"},
		{name: "given back, with a ticket", spoil: func(s *endState, _ map[int64]worker.ID) { s.slots[4].Slot.Ticket = "t" }, want: "worker 4 was given back"},
		{name: "an ID at the end of what was given back", spoil: func(_ *endState, h map[int64]worker.ID) { h[4] = id(4, 60) }, want: "worker 4 has issued"},
		{name: "two workers", spoil: func(s *endState, _ map[int64]worker.ID) { s.slots[3].Slot.Released = false }, want: "has 2 workers"},
		{name: "two workers after a loss", lossy: true, spoil: func(s *endState, _ map[int64]worker.ID) { s.slots[3].Slot.Released = false }},
		{name: "two tickets", spoil: func(s *endState, _ map[int64]worker.ID) { s.tickets["/tickets/n-4"] = "b" }, want: "has 2 tickets"},
		{name: "no ticket", spoil: func(s *endState, _ map[int64]worker.ID) { delete(s.tickets, "/tickets/n-1") }, want: "has 0 tickets"},
		{name: "a ticket left behind", spoil: func(s *endState, _ map[int64]worker.ID) { s.tickets["/tickets/n-4"] = "d" }, want: "which has no worker"},
		{name: "one node, two machines", spoil: func(s *endState, _ map[int64]worker.ID) { s.slots[1].Slot.Node = "a" }, want: "belong to 1 nodes"},
	} {
		s, highest := healthy()
		row.spoil(&s, highest)
		got := strings.Join(s.wrongWith(map[int]bool{0: false, 1: false, 4: true}, highest, newHistory(), row.lossy), "\n")
		if (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}
