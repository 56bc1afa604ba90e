package coordinator

import (
	"fmt"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/memzk"
)

// trips has the number of a node's round trips to ZooKeeper, and how many of them are writes and lists of children.
type trips struct{ all, writes, lists int }

// count counts the node's round trips from now on. All reads of one GetAll are one round trip. count replaces the
// node's hook.
func (m *member) count() *trips {
	n := new(trips)
	m.hook = func(c memzk.Call) memzk.Fault {
		if !c.More {
			n.all++
		}
		if c.Write() {
			n.writes++
		}
		if c.Op == "children" {
			n.lists++
		}
		return memzk.NoFault
	}
	return n
}

// The number of round trips of a node does not grow with the number of nodes. A heartbeat does not list the live
// workers while no node comes or goes.
func TestRoundTrips(t *testing.T) {
	for _, nodes := range []int{1, 3, 9, 40} {
		t.Run(fmt.Sprint(nodes, " nodes"), func(t *testing.T) {
			l := newLab(t, 64)
			for i := range nodes - 1 {
				l.serving(fmt.Sprint("N", i))
			}
			a := l.node("A")
			n, used := a.count(), l.cluster().HighestSlot
			a.must(a.register())
			most := 8 + 1 // the lab's ReadCluster makes a sync first
			if l.cluster().HighestSlot > used {
				most += 2 // slots were created
			}
			if n.all > most {
				t.Errorf("%d round trips to register, want %d at most", n.all, most)
			}
			a.confirm()
			l.pass(labConfirm) // it waits for its peers no more
			a.beatAndCompare()
			a.beatAndCompare() // reads its live lock once more, because the list of them has changed
			for range 3 {
				l.pass(time.Second)
				n = a.count()
				a.beatAndCompare()
				if n.all > 2 || n.writes != 1 || n.lists > 0 {
					t.Errorf("a heartbeat takes %+v", *n)
				}
			}
		})
	}
}

// beatAndCompare sends a heartbeat and then reads the peers' clocks, as a node does.
func (m *member) beatAndCompare() {
	m.Helper()
	b := m.mustBeat()
	m.must(m.co.AskPeers(m.ctx()))
	if _, err := m.co.ReadPeerClocks(m.ctx(), m.claim.Worker, b); err != nil {
		m.Fatal(err)
	}
}
