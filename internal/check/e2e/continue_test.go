package e2e

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// A node that ends and starts again goes on with the values that it held: after kill -9 with a small gap, and after
// SIGTERM with none. So it does while ZooKeeper stands still.
func TestRestartedNodeGoesOnWithItsValues(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(n *node, order, ticket sequence) (most int64){
		"used slowly": func(n *node, order, ticket sequence) int64 {
			order.from(n, 100)
			for range 4 {
				order.first(n)
				ticket.first(n)
				pass(order.t.Context(), 800*time.Millisecond)
			}
			return few
		},
		"a burst": func(n *node, order, _ sequence) int64 {
			l := order.under(n, 200)
			pass(order.t.Context(), time.Second)
			l.end()
			pass(order.t.Context(), 300*time.Millisecond) // a block that was just taken may not be on the disk
			return l.answers() * 3 / 2
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zk := zktest.Single(t)
			s := newSite(t, zk.Addr())
			n := s.started().ready()
			order, ticket, strict := s.sequence("order"), s.sequence("ticket"), s.sequence("s", "--mode", "strict")
			for _, q := range []sequence{order, ticket, strict} {
				q.first(n)
			}
			for life := range 4 {
				away, clean := life >= 2, life%2 == 1
				t.Logf("clean stop: %v, ZooKeeper away: %v", clean, away)
				most := [2]int64{use(n, order, ticket), few}
				if away {
					// A burst may use up all that is below the bound, and without ZooKeeper there is nothing else. After
					// a quiet second the bound is lower.
					pass(t.Context(), 2500*time.Millisecond)
					zk.Freeze(0)
				}
				if clean {
					n.stop()
					most = [2]int64{}
				} else {
					n.kill()
				}
				n.start().ready()
				began := time.Now()
				for i, q := range []sequence{order, ticket} {
					before := q.highest()
					if v := q.first(n); v <= before || v > before+1+most[i] {
						t.Errorf("%s goes on at %d after %d, and at most %d are missing", q.name, v, before, most[i])
					}
				}
				if took := time.Since(began); took > 2*firstValue { // other tests run beside this one
					t.Errorf("the first values come %s after READY", took)
				}
				if away {
					zk.Thaw(0)
				}
				strict.first(n)
			}
		})
	}
}

// firstValue is the time after READY in which a node that was restarted issues its first value.
const firstValue = 1500 * time.Millisecond

// few is the most values that are missing after kill -9 if a node issues about one a second.
const few = 3

// Somebody renames the directory of a node that runs, and the old path is made again: nothing of the node lands there,
// and a start with the renamed directory issues no value again.
func TestNodeWhoseDirectoryIsRenamed(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Single(t).Addr())
	n := s.started().ready()
	order := s.sequence("order")
	order.first(n)
	for range 3 {
		old := n.dir + ".old"
		if err := errors.Join(os.Rename(n.dir, old), os.Mkdir(n.dir, 0o700)); err != nil {
			t.Fatal(err)
		}
		order.from(n, 20)
		n.kill()
		if names, err := os.ReadDir(n.dir); err != nil || len(names) > 0 {
			t.Errorf("the new directory has %v, %v", names, err)
		}
		if err := errors.Join(os.RemoveAll(n.dir), os.Rename(old, n.dir)); err != nil {
			t.Fatal(err)
		}
		n.start().ready()
		before := order.highest()
		if v := order.first(n); v <= before || v > before+40 {
			t.Errorf("it goes on at %d after %d", v, before)
		}
	}
}
