package node

import (
	"slices"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/race"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// otherWorlds are worlds of clusters with other settings. They play the same kinds of events.
// The promise depends neither on the order of the fields in an ID, nor on the rollback policy.
var otherWorlds = []otherWorld{
	{"the worker lowest", func(w *world) {
		w.layout.Order = worker.Order{worker.FieldRollback, worker.FieldSegment, worker.FieldSequence,
			worker.FieldDatacenter, worker.FieldWorker}
	}},
	{"a segment above the worker", func(w *world) { w.layout.SegmentBits = 2 }},
	{"a segment, the worker lowest", func(w *world) {
		w.layout.SegmentBits = 1
		w.layout.Order = worker.Order{worker.FieldRollback, worker.FieldSegment, worker.FieldSequence,
			worker.FieldWorker, worker.FieldDatacenter}
	}},
	{"the worker above a datacenter", func(w *world) {
		w.layout.DatacenterBits = 2
		w.layout.Order = worker.Order{worker.FieldRollback, worker.FieldSegment, worker.FieldWorker,
			worker.FieldDatacenter, worker.FieldSequence}
	}},
	{"a segment at random", func(w *world) { w.layout.SegmentBits, w.segmentStart = 3, worker.SegmentRandom }},
	{"refuse", policy("refuse")},
	{"wait", policy("wait=10s")},
	{"coast", policy("coast=2s")},
	{"coast far", policy("coast=4s")},
	{"one-rollback-bit", rollbackBits(1)},
	{"two-rollback-bits", rollbackBits(2)},
	{"three-rollback-bits", rollbackBits(3)},
	{"borrow", borrow(3 * time.Second)},
	{"borrow and coast", both(borrow(3*time.Second), policy("coast=3s"))},
	{"slow-heartbeats", func(w *world) { w.slowHeartbeat = 4 }},
	{"borrow and a rollback bit", both(borrow(3*time.Second), rollbackBits(1))},
}

type otherWorld struct {
	name   string
	change func(*world)
}

func policy(name string) func(*world) {
	p, err := timeguard.ParseRollbackPolicy(name)
	if err != nil {
		panic(err)
	}
	return func(w *world) { w.onRollback, w.reserve = p, 3*time.Second }
}

func rollbackBits(n uint8) func(*world) {
	return func(w *world) { w.onRollback, w.layout.RollbackBits = timeguard.CountRollbacks, n }
}

func borrow(d time.Duration) func(*world) {
	return func(w *world) { w.borrow, w.reserve = d, 3*time.Second }
}

func both(a, b func(*world)) func(*world) { return func(w *world) { a(w); b(w) } }

// scenarios returns the scenarios of this world: those of every world, and one more if rollbacks are
// counted or IDs are borrowed. That one is in the list three times, to be drawn more often.
func (s *sim) scenarios() []scenario {
	if s.onRollback.Counts() {
		often := scenario{"clock that goes back often", (*sim).playRollbacks, anyWorld}
		return append(slices.Clone(scenarios), often, often, often)
	}
	if s.borrow > 0 {
		gone := scenario{"borrower forgotten once it is gone", (*sim).playForgottenBorrower, anyWorld}
		return append(slices.Clone(scenarios), gone, gone, gone)
	}
	return scenarios
}

// playForgottenBorrower: a holder is cut off and loses its worker to another node. That node
// borrows all it may, and is gone when ZooKeeper is restored to an older copy of the data. No
// record shows then that the node ever held the worker.
func (s *sim) playForgottenBorrower() bool {
	a, w := s.heardOf()
	if a == nil {
		return false
	}
	copied := s.Mem.Snapshot()
	s.cutOff(a)
	a.session.Expire()
	if !s.wait(w, time.Second) {
		return false
	}
	b := s.queue(s.other(a.machine), w, 10*time.Second)
	if b == nil || !s.serves(b, s.confirm+s.borrow+5*time.Second) || a.dead || a.held() != w {
		return false
	}
	s.watch(s.upTo(2 * time.Second))
	if b.dead || b.held() != w {
		return false
	}
	s.quietly(func() {
		s.burst(b)
		if s.chance(2) {
			s.stop(b)
		} else {
			s.kill(b, false)
		}
	})
	s.newDisk(b.machine) // its return would be a documented limit
	s.snapshot = copied
	s.restoreSnapshot()
	s.forget()
	s.quietly(func() {
		if !a.dead {
			s.heal(a)
			s.keep(a)
		}
	})
	for end := s.now + int64(s.confirm+2*s.borrow+3*time.Second); s.now < end && !s.done() && !a.dead; {
		s.fine()
		s.burst(a)
	}
	return true
}

// playRollbacks: a clock goes back and forward so often that the rollback field has no value
// left and begins again. It passes through times in which its values have been used before.
func (s *sim) playRollbacks() bool {
	a := s.holder()
	if a == nil {
		return false
	}
	rolled := s.rolled
	for range s.between(3, 20) {
		s.burst(a)
		by := s.upTo(1900 * time.Millisecond)
		switch s.rng.IntN(5) {
		case 0:
			s.drift(a.machine, by)
		case 1:
			s.watch(by)
		default:
			s.step(a.machine, -by)
		}
		if s.done() || a.dead || s.now < a.paused {
			return s.rolled > rolled
		}
	}
	s.burst(a)
	switch s.rng.IntN(4) {
	case 0:
		s.kill(a, s.chance(2))
	case 1:
		s.stop(a)
	}
	s.watch(5 * time.Second)
	return s.rolled > rolled
}

// named returns the change of the world of that name, or one that changes nothing for "".
func named(t *testing.T, name string) func(*world) {
	if name == "" {
		return func(*world) {}
	}
	i := slices.IndexFunc(otherWorlds, func(o otherWorld) bool { return o.name == name })
	if i < 0 {
		t.Fatalf("there is no world called %q", name)
	}
	return otherWorlds[i].change
}

func TestSimulationOfOtherWorlds(t *testing.T) {
	for _, other := range otherWorlds {
		t.Run(other.name, func(t *testing.T) {
			g := game(t, other.name)
			g.Count = 5
			if race.Enabled {
				g.Count = 2
			}
			total := g.All(t)
			ids, ahead, rolled := total.Counts[countIDs], total.Counts[countAhead], total.Counts[countRolled]
			t.Logf("%d histories, %d IDs, %d times ahead of the clock, %d after a rollback that was counted",
				total.Histories, ids, ahead, rolled)
			var w world
			other.change(&w)
			if ids == 0 || total.Histories > 10 && (w.mayLead() > 0) != (ahead > 0) || total.Histories > 10 &&
				(w.layout.RollbackBits > 0) != (rolled > 0) {
				t.Error("the histories do not come to what this world is about")
			}
		})
	}
}
