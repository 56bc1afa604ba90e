package coordinator

import (
	"fmt"
	"testing"
	"time"

	"github.com/flaked/flaked/zkstore"
)

// trips are what a node asks of ZooKeeper.
type trips struct{ all, writes, lists int }

// count counts the round trips of a node from now on. The reads of one GetAll are one.
func (m *member) count() *trips {
	n := new(trips)
	m.hook = func(c zkstore.Call) zkstore.Fault {
		if !c.More {
			n.all++
		}
		if c.Write() {
			n.writes++
		}
		if c.Op == "children" {
			n.lists++
		}
		return zkstore.NoFault
	}
	return n
}

// What a node asks of ZooKeeper does not grow with the number of nodes, and a
// heartbeat lists nobody while none comes or goes.
func TestRoundTrips(t *testing.T) {
	for _, nodes := range []int{1, 3, 9, 40} {
		t.Run(fmt.Sprint(nodes, " nodes"), func(t *testing.T) {
			l := newLab(t, 64)
			for i := range nodes - 1 {
				l.serving(fmt.Sprint("N", i))
			}
			a := l.node("A")
			n, used := a.count(), l.cluster().Used
			a.must(a.register())
			most := 8 + 1 // the lab reads the cluster's record as all servers have it
			if l.cluster().Used > used {
				most += 2 // slots had to be made
			}
			if n.all > most {
				t.Errorf("%d round trips to register, want %d at most", n.all, most)
			}
			a.settle()
			l.pass(time.Second)
			a.beatAndCompare()
			for range 3 {
				l.pass(time.Second)
				n = a.count()
				a.beatAndCompare()
				if n.all > 3 || n.writes != 1 || n.lists > 0 {
					t.Errorf("a heartbeat takes %+v", *n)
				}
			}
		})
	}
}

// beatAndCompare is a heartbeat as a node makes it.
func (m *member) beatAndCompare() {
	m.Helper()
	m.mustBeat()
	if _, err := m.co.Peers(m.ctx(), m.claim.Worker); err != nil {
		m.Fatal(err)
	}
}
