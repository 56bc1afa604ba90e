package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// A node that ends and starts again goes on with the values that it held: after kill -9 with a small gap, and after
// SIGTERM with none. So it does while ZooKeeper stands still.
func TestRestartedNodeGoesOnWithItsValues(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(n *harness.Node, order, ticket harness.Sequence) (most int64){
		"used slowly": func(n *harness.Node, order, ticket harness.Sequence) int64 {
			order.From(n, 100)
			for range 4 {
				order.First(n)
				ticket.First(n)
				harness.Pass(order.T.Context(), 800*time.Millisecond)
			}
			return few
		},
		"a burst": func(n *harness.Node, order, _ harness.Sequence) int64 {
			l := order.Under(n, 200)
			harness.Pass(order.T.Context(), time.Second)
			l.End()
			harness.Pass(order.T.Context(), 300*time.Millisecond) // a block that was just taken may not be on the disk
			return l.Answers() * 3 / 2
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zk := zktest.Single(t)
			s := harness.NewSite(t, zk.Addr())
			n := s.Started().Ready()
			order, ticket, strict := s.Sequence("order"), s.Sequence("ticket"), s.Sequence("s", "--mode", "strict")
			for _, q := range []harness.Sequence{order, ticket, strict} {
				q.First(n)
			}
			for life := range 4 {
				away, clean := life >= 2, life%2 == 1
				t.Logf("clean stop: %v, ZooKeeper away: %v", clean, away)
				most := [2]int64{use(n, order, ticket), few}
				if away {
					// A burst may use up all that is below the bound, and without ZooKeeper there is nothing else.
					// After a quiet second the bound is lower.
					harness.Pass(t.Context(), 2500*time.Millisecond)
					zk.Freeze(0)
				}
				if clean {
					n.Stop()
					most = [2]int64{}
				} else {
					n.Kill()
				}
				n.Start().Ready()
				began := time.Now()
				for i, q := range []harness.Sequence{order, ticket} {
					before := q.Highest()
					if v := q.First(n); v <= before || v > before+1+most[i] {
						t.Errorf("%s goes on at %d after %d, and at most %d are missing", q.Name, v, before, most[i])
					}
				}
				if took := time.Since(began); took > 2*firstValue { // other tests run beside this one
					t.Errorf("the first values come %s after READY", took)
				}
				if away {
					zk.Thaw(0)
				}
				strict.First(n)
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
	s := harness.NewSite(t, zktest.Single(t).Addr())
	n := s.Started().Ready()
	order := s.Sequence("order")
	first := order.First(n)
	for range 3 {
		old := n.Dir + ".old"
		if err := errors.Join(os.Rename(n.Dir, old), os.Mkdir(n.Dir, 0o700)); err != nil {
			t.Fatal(err)
		}
		order.From(n, 20)
		harness.Pass(t.Context(), 300*time.Millisecond) // a block that was just taken may not be on the disk
		n.Kill()
		if names, err := os.ReadDir(n.Dir); err != nil || len(names) > 0 {
			t.Errorf("the new directory has %v, %v", names, err)
		}
		if err := errors.Join(os.RemoveAll(n.Dir), os.Rename(old, n.Dir)); err != nil {
			t.Fatal(err)
		}
		n.Start().Ready()
		before := order.Highest()
		most := few + (before-first)*3/2 // a busy machine lets From have more than it asks for, all in one second
		v := order.First(n)
		if v <= before || v > before+most {
			t.Errorf("it goes on at %d after %d, and at most %d are missing", v, before, most)
		}
		first = v
	}
}

// Somebody deletes or renames the directory of a node that runs, so the next start would not find it. The node reports
// that within two heartbeats and serves on. Its next start gets another worker, and repeats nothing.
func TestNodeWhoseDirectoryIsGoneReportsIt(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(dir string) error{
		"deleted": os.RemoveAll,
		"replaced": func(dir string) error {
			return errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zk := zktest.Single(t)
			s := harness.NewSite(t, zk.Addr(), "--admin", "127.0.0.1:0")
			n := s.Node()
			n.Build = harness.Shipped
			n.Start().Ready()
			id, order := n.Identity(), s.Sequence("order")
			order.First(n)
			admin := regexp.MustCompile(`listening for HTTP: address=(\S+)`).FindStringSubmatch(n.Proc.Log())
			if admin == nil {
				t.Fatal(n.Proc.Log())
			}
			s.Command("status").Wants(t, 0, "")
			began := time.Now()
			if err := lose(n.Dir); err != nil {
				t.Fatal(err)
			}
			n.Until("it reports the loss", func() bool {
				text, ready := fetch(t, "http://"+admin[1]+"/readyz?verbose")
				return ready && strings.Contains(text, "[!] state directory: "+n.Dir+" was deleted, renamed or replaced") &&
					strings.Contains(text, "cannot write to its state directory (deleted, renamed or replaced)")
			})
			t.Logf("reported after %s", time.Since(began))
			if took := time.Since(began); took > 6*time.Second {
				t.Errorf("it took %s", took)
			}
			s.Command("status").Wants(t, 4, "The node cannot write to its state directory")
			metrics, _ := fetch(t, "http://"+admin[1]+"/metrics")
			for _, want := range []string{`flaked_worker_degraded\{trouble="state-directory",worker="\d+"\} 1`,
				`flaked_state_writes_total\{result="failed"\} [1-9]`} {
				if !regexp.MustCompile(want).MatchString(metrics) {
					t.Errorf("the metrics have no %s", want)
				}
			}
			harness.Pass(t.Context(), 4*time.Second) // beyond the reserved bound of then
			n.Get(100)
			order.From(n, 20)
			zk.Freeze(0) // so the stop gives nothing back
			n.Stop()
			if strings.Contains(n.Proc.Log(), "kept_for_restart=true") {
				t.Error("it says that the next start has its values")
			}
			zk.Thaw(0)
			n.Start().Ready().Get(100)
			order.From(n, 20)
			if now := n.Identity(); now.UUID == id.UUID || now.Worker == id.Worker {
				t.Errorf("%+v, was %+v", now, id)
			}
		})
	}
}
