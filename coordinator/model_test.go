package coordinator

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/race"
)

var (
	modelSeed  = flag.Uint64("model.seed", 0, "run one history of the models")
	modelFirst = flag.Uint64("model.first", 1, "the first history of each model")
	modelRuns  = flag.Int("model.runs", 0, "how many histories of each model to run; 0 means a few thousand")
)

// model drives the nodes of a cluster through random events. Before each call of a node to ZooKeeper, other nodes may
// act, and the call may fail.
type model struct {
	*lab
	rng   *rand.Rand
	calm  bool // nothing goes wrong any more
	busy  map[*member]bool
	depth int
	// The events that may happen, and how likely they are.
	faults float64 // of a call
	races  float64 // another node acts first
	skews  []int64
	leases []time.Duration
	hands  func() // an operator's step, or nil
}

func newModel(t testing.TB, seed uint64) *model {
	rng := rand.New(rand.NewPCG(seed, 0))
	d := &model{lab: newLab(t, 1+rng.IntN(3)), rng: rng, busy: make(map[*member]bool), faults: 0.03, races: 0.05}
	d.cl.UUID, d.cl.LeaseMs = "cluster-2", millis(10*time.Minute) // histories see the end of a lease
	d.mem.Wipe()
	if rng.IntN(2) == 0 {
		d.mem.SetEpoch(1 + rng.Uint32N(3)) // else standalone: confirming is never skipped
	}
	d.init(d.cl)
	d.pass(pick(rng, 0, time.Hour))
	d.trace = *modelSeed != 0
	d.leases = []time.Duration{labLease, labLease, 10 * time.Minute}
	for i := range 2 + rng.IntN(3) {
		m := d.node(string(rune('A' + i)))
		m.hook = func(c store.Call) store.Fault { return d.before(m) }
	}
	return d
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// before runs before every call of m to ZooKeeper, and returns the fault of the call.
func (d *model) before(m *member) store.Fault {
	if d.calm {
		return store.NoFault
	}
	if d.rng.Float64() < d.races/4 {
		d.pass(pick(d.rng, time.Minute, 11*time.Minute)) // SIGSTOP
		m.sess.Expire()
	}
	for d.depth < 3 && d.rng.Float64() < d.races {
		d.step()
	}
	if d.rng.Float64() < d.faults {
		return pick(d.rng, store.FailBefore, store.FailAfter)
	}
	return store.NoFault
}

// step makes one event happen: to a random node that is not in the middle of another step, or by an operator.
func (d *model) step() {
	if d.hands != nil && d.rng.IntN(6) == 0 {
		d.hands()
		d.disjoint()
		return
	}
	m := pick(d.rng, d.nodes...)
	if d.busy[m] {
		d.pass(time.Millisecond)
		return
	}
	d.busy[m] = true
	d.depth++
	defer func() { d.busy[m] = false; d.depth-- }()
	if !m.up {
		d.stepDown(m)
	} else {
		d.stepUp(m)
	}
	d.disjoint()
}

func (d *model) stepDown(m *member) {
	switch n := d.rng.IntN(20); {
	case n < 14:
		_ = m.start()
	case n < 15:
		m.disk = &disk{cl: d.cl} // its volume is gone
		m.crash()
	default:
		d.trouble(m)
	}
}

func (d *model) stepUp(m *member) {
	m.wait = pick(d.rng, d.leases...)
	switch n := d.rng.IntN(40); {
	case n < 20:
		_, _ = m.beat()
		if m.up {
			_, _ = m.co.Peers(m.ctx(), m.claim.Worker) // one may vouch
			m.issue()
		}
	case n < 26:
		m.extend()
		m.issue()
	case n < 29:
		m.crash()
	case n < 31:
		_ = m.halt()
	case n < 33:
		_ = m.leave()
	case n < 34:
		d.rotate(m)
	default:
		d.trouble(m)
	}
}

// trouble changes a node's connection, session or clock from outside.
func (d *model) trouble(m *member) {
	switch d.rng.IntN(7) {
	case 0:
		m.sess.Partition()
	case 1, 2:
		m.sess.Heal()
	case 3:
		m.sess.Expire()
	case 4:
		m.sess.Lag()
	case 5:
		d.expire()
	case 6:
		if len(d.skews) > 0 {
			m.skew = pick(d.rng, d.skews...)
		}
	}
}

// rotate acquires a new slot and releases the old one. If it gets none, it keeps the old one.
func (d *model) rotate(m *member) {
	if !m.claim.EverConfirmed {
		return
	}
	old, t := m.claim, m.t
	cl, err := ReadCluster(m.ctx(), m.co.Store)
	if err != nil {
		return
	}
	next := m.h.Another()
	g, err := next.Register(m.ctx(), cl, m.wait, m.trust)
	if err != nil {
		old.ReservedUntil = max(old.ReservedUntil, t.hi)
		_, _ = m.disk.Save(old)
		return
	}
	t.hi = m.end()
	former := m.h
	m.h = next
	m.granted(g)
	_ = former.Release(m.ctx(), t.hi)
}

func (d *model) run(events int) {
	for range events {
		d.pass(pick(d.rng, 0, 0, 100*time.Millisecond, time.Second, DefaultHeartbeat, DefaultHeartbeat, 10*time.Second))
		if d.rng.IntN(12) == 0 {
			d.pass(pick(d.rng, time.Minute, time.Minute, 11*time.Minute))
		}
		d.step()
		if d.Failed() {
			return
		}
	}
}

// ends checks that no slot is held for ever: when all nodes are gone and all bounds have passed, a new node acquires a
// slot.
func (d *model) ends() {
	d.calm = true
	for _, m := range d.nodes {
		m.sess.Heal()
		m.sess.Expire()
		m.up = false
	}
	d.expire()
	latest := d.now
	for _, s := range d.seen {
		latest = max(latest, s.LeaseUntil)
	}
	if most := d.cl.nextHorizon(d.now + 2*millis(time.Hour)); latest > most {
		d.Errorf("a lease bound is %s ahead", time.Duration(latest-d.now)*time.Millisecond)
	}
	d.now = max(latest+d.cluster().graceMs(), d.cluster().FrozenUntil) + 1
	n := d.node("Z")
	n.must(n.register())
	n.confirm()
	d.disjoint()
}

func runModel(t *testing.T, runs int, history func(t testing.TB, seed uint64)) {
	seeds := []uint64{*modelSeed}
	if *modelSeed == 0 {
		if *modelRuns > 0 {
			runs = *modelRuns
		} else if race.Enabled {
			runs /= 10
		}
		seeds = seeds[:0]
		for i := range runs {
			seeds = append(seeds, *modelFirst+uint64(i))
		}
	}
	for _, seed := range seeds {
		history(t, seed)
		if t.Failed() {
			t.Fatalf("in history -model.seed=%d", seed)
		}
	}
}

// TestModel plays random histories in which ZooKeeper keeps its data. Whatever happens to nodes, their connections and
// their clocks, the ranges of two holdings of a slot do not overlap. A lease bound goes down only at a release.
func TestModel(t *testing.T) {
	issued, tenures := 0, 0
	runModel(t, 3000, func(t testing.TB, seed uint64) {
		d := newModel(t, seed)
		d.skews = []int64{0, 0, 2000, -2000, -millis(time.Minute), -millis(time.Hour), millis(time.Hour)}
		d.run(60)
		if !t.Failed() {
			d.ends()
		}
		for _, m := range d.nodes {
			for _, at := range m.past {
				tenures++
				if at.first > 0 {
					issued++
				}
			}
		}
	})
	t.Logf("%d tenures, of which %d issued", tenures, issued)
	if 4*issued < tenures {
		t.Error("too little happens in these histories")
	}
}
