package e2e

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/ownclock"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// opinion is the state of ZooKeeper's clock after a node's clock went back.
type opinion string

const (
	differs opinion = "it differs"        // the node's clock is wrong
	silent  opinion = "ZooKeeper is down" // there is no clock to compare with
)

// A node is killed and restarted with its clock set back. If the clock is up to 10 s behind, the
// node waits. Otherwise every start is refused, whatever ZooKeeper's clock shows and even if
// ZooKeeper is down. Once the clock is right again, the node resumes its worker above its reserved
// bound.
func TestRestartWithClockBackWaitsOrRefuses(t *testing.T) {
	t.Parallel()
	for _, say := range []opinion{differs, silent} {
		t.Run(string(say), func(t *testing.T) {
			t.Parallel()
			var machine ownclock.Clock
			zk := zktest.Single(t)
			s := newSite(t, zk.Addr())
			n := s.node().on(&machine).start().ready()
			before := n.identity()
			for _, back := range []time.Duration{time.Second, time.Minute, time.Hour} {
				n.get(1000)
				if say == silent {
					zk.Kill(0)
				}
				n.kill()
				m := n.stored().Record.MMs
				machine.Step(-back)
				waits, why := back <= 10*time.Second, farFromM
				if say == differs {
					why = wrongAtStart
				}
				for range 2 { // like a supervisor that restarts it
					switch {
					case waits:
						n.start().firstAfter(m)
						n.goesBy(-back)
						n.kill()
						m = n.stored().Record.MMs
					case say == silent:
						n.start().fails(1, why)
						if r := n.stored().Record; r == nil || r.MMs != m || !r.Confirmed {
							t.Fatalf("the refusal has changed the state: %+v, M was %d", r, m)
						}
					default:
						n.startIsRefused(why)
					}
				}
				machine.Step(back)
				if say == silent {
					zk.Start(0)
					zk.WaitServing(t)
				}
				n.start().firstAfter(m)
				n.goesBy(0)
			}
			if after := n.identity(); after.worker != before.worker || after.uuid != before.uuid {
				t.Errorf("%+v after %+v", after, before)
			}
		})
	}
}

// The clock goes back and the node is killed at a random moment, with ZooKeeper up. The node is
// then acquiring a new worker or has acquired it.
func TestKillAfterStepBackIssuesNoDuplicates(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	var clock ownclock.Clock
	n := s.node().on(&clock).start().ready()
	for round := range 4 {
		watch := n.watch()
		watch.serves()
		clock.Step(-4 * time.Second)
		moment := time.NewTimer(time.Duration(rand.IntN(800)) * time.Millisecond)
		<-moment.C
		n.kill()
		watch.stop()
		m, worker := n.stored().Record.MMs, n.stored().Record.Worker
		n.start()
		n.ready().get(100)
		if now := n.worker(); now == worker {
			n.firstAfter(m)
		}
		t.Logf("round %d: worker %d was stored, and %d serves", round, worker, n.worker())
		clock.Step(4 * time.Second) // a leap ahead, which ZooKeeper confirms
		n.goesBy(0)
		n.ready().get(100)
	}
}
