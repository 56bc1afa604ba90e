package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/testkit/memcluster"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// The simulation runs the real code of node, coordinator, localcache, timeguard and worker in one goroutine, with a
// ZooKeeper, disks and clocks in memory. A seeded scheduler calls the rounds of keep and of extendLoop. Everything that
// would run at the same time, in another process or in another goroutine, runs inside the calls to the store and the
// disk. At each of those calls any other event may happen, even the end of the calling process. The same seed gives the
// same history.
//
// Random events seldom form the sequence that a safeguard is there for. So each history also
// plays scenarios (sim_scenario_test.go): scripted sequences of events, each aimed at one safeguard,
// with random details and with some other events in between.

// world is the configuration of a history: it differs between histories, and stays the same within one.
type world struct {
	layout                             worker.Layout
	lease, confirm, heartbeat, reserve time.Duration
	// crowded: a remote node holds all slots but one, so all new nodes want the same slot.
	crowded bool
	// onRollback, borrow and segmentStart are zero (Leaf's rule, no borrowing, the first
	// segment), except in the worlds of sim_worlds_test.go.
	onRollback    timeguard.RollbackPolicy
	borrow        time.Duration
	sequenceStart worker.SequenceStart
	segmentStart  worker.SegmentStart
	// bootstrap: nodes create the cluster. Otherwise it exists before they start.
	bootstrap bool
	// slowHeartbeat: one process in so many has a heartbeat that is too slow for a holder to
	// notice a loss of data within the confirming time. Such a node must be refused.
	slowHeartbeat int
}

// mayLead returns how far ahead of the wall clock IDs may be.
func (w *world) mayLead() time.Duration { return w.borrow + w.onRollback.Coast() }

// drawWorld draws the configuration of the history. Coarse ticks that are seldom aligned to anything reveal rounding
// faults. Short leases let slots change hands. Real clusters have long ones.
func (s *sim) drawWorld() {
	w := &s.world
	w.heartbeat = pick(s, time.Second/2, time.Second, 2*time.Second)
	w.lease = pick(s, 3*w.heartbeat, 3*w.heartbeat, 10*time.Second, 30*time.Second, 90*time.Second, 10*time.Minute)
	w.confirm = 2*w.heartbeat + pick(s, 0, 0, time.Second, 6*time.Second)
	w.reserve = pick(s, 3*time.Second, 3*time.Second, 9*time.Second)
	w.layout = worker.Layout{
		Epoch: 1_700_000_000_000 + int64(s.between(0, 999)),
		Unit:  pick(s, 10*time.Millisecond, 100*time.Millisecond, 250*time.Millisecond, time.Second), TimeBits: 41,
		WorkerBits: pick[uint8](s, 1, 1, 2, 4), SequenceBits: uint8(s.between(1, 6)),
	}
	w.crowded = w.layout.WorkerBits < 4 && !s.chance(3)
	w.bootstrap = !s.chance(4)
	w.sequenceStart = pick(s, worker.StartZero, worker.StartRandom, worker.StartCarryOn)
	w.slowHeartbeat = 40
	if s.chance(30) { // the layout's time field runs out in this history
		w.layout.TimeBits = 16
		left := time.Minute + s.upTo(time.Hour)
		w.layout.Epoch = (s.now + int64(left) - int64(w.layout.Unit)<<w.layout.TimeBits) / 1e6
	}
}

const (
	simDepth = 2       // how deep events inside calls may nest
	simCalls = 200_000 // calls to the store: more are an endless loop
)

// sim is one history.
type sim struct {
	world
	checks
	rng *rand.Rand
	now int64 // true time, Unix ns
	*memcluster.Cluster
	admin    *memzk.Session // of the simulation itself: no check sees its writes
	operator *memzk.Session
	snapshot *memzk.Snapshot
	machines []*machine
	depth    int
	deadline int64 // if not 0, time does not pass beyond it
	faults   bool  // calls may fail at random
	calm     bool  // in a scenario: other events are rare
	// keptBounds are the lease bounds that ZooKeeper kept at the last loss of data, Unix ms, by
	// the identity of the node that had a later one.
	keptBounds map[string]int64
	epoch      uint32
	inode      int
	aimed      int
	// elsewhere is a second ZooKeeper, which no node of the cluster should use. recent are
	// copies of the data from some time ago, for clients whose server lags behind.
	elsewhere *memzk.Server
	recent    []*memzk.Snapshot
	starts    int
	calls     int
	sessions  []*memzk.Session // of processes that have ended
	played    map[string]int   // scenarios reached, by name
	// tell, if not nil, makes the configuration of a process one that tells what it does. It returns where its nonces
	// come from.
	tell func(*process, *Config) (nonce func() string)

	history []line
	over    bool // the rest of it cannot be judged
}

// line is one line of the history. It is formatted only when it is read.
type line struct {
	now    int64
	depth  int
	format string
	args   []any
}

func (l line) String() string {
	return fmt.Sprintf("%11.4fs %s%s", float64(l.now%1e15)/1e9, strings.Repeat("  ", l.depth),
		fmt.Sprintf(l.format, l.args...))
}

func newSim(seed uint64) *sim {
	s := &sim{
		rng:    rand.New(rand.NewPCG(seed, 1)),
		played: make(map[string]int),
	}
	s.now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano() + s.rng.Int64N(1e9)
	s.drawWorld()
	s.checks.init(s.layout.Workers())
	s.Cluster = memcluster.New(func() int64 { return s.now })
	s.Leap(time.Duration(s.between(-50, 50)) * time.Millisecond)
	s.elsewhere = s.ZooKeeper()
	s.admin, s.operator = s.Mem.Session(), s.Mem.Session()
	s.operator.SetDone(func(c memzk.Call, result, reported error) {
		if result == nil {
			s.wrote(c, reported == nil)
		}
	})
	if s.chance(2) {
		s.elect()
	} else if s.chance(3) { // its epoch will change without an election
		s.Mem.SetZxid(1<<32 - int64(s.between(1, 3000)))
	}
	machines := s.between(3, 4)
	for i := range machines {
		skew := time.Duration(int64(s.between(-100, 100))*1e6 + s.rng.Int64N(1e6))
		s.machines = append(s.machines, s.newMachine(string(rune('A'+i)), skew))
	}
	s.note("tick %s, lease %s, confirming %s, heartbeat %s, reserve %s, %d workers, crowded %t, bootstrap %t, time "+
		"until %s, leader's epoch %d",
		s.layout.Unit, s.lease, s.confirm, s.heartbeat, s.reserve, s.layout.Workers(), s.crowded, s.bootstrap,
		s.layout.Expires(), s.epoch)
	s.crowd()
	return s
}

// found creates the cluster in a world where nodes do not.
func (s *sim) found() {
	if s.bootstrap {
		return
	}
	settings := s.settings()
	cl, err := settings.Record("sim-cluster", s.heartbeat)
	if err == nil {
		_, err = coordinator.CreateCluster(context.Background(), s.admin, cl, s.now/1e6)
	}
	if err != nil {
		s.violated(wrongSim, "%v", err)
	}
}

func (s *sim) settings() Settings {
	return Settings{Layout: &s.layout, Lease: &s.lease, ConfirmTime: &s.confirm, OnRollback: &s.onRollback,
		Borrow: &s.borrow, SequenceStart: &s.sequenceStart, SegmentStart: &s.segmentStart}
}

func pick[T any](s *sim, of ...T) T               { return of[s.rng.IntN(len(of))] }
func (s *sim) chance(oneIn int) bool              { return s.rng.IntN(oneIn) == 0 }
func (s *sim) between(low, high int) int          { return low + s.rng.IntN(high-low+1) }
func (s *sim) any() *machine                      { return pick(s, s.machines...) }
func (s *sim) done() bool                         { return s.wrong != "" || s.over }
func (s *sim) upTo(d time.Duration) time.Duration { return time.Duration(s.rng.Int64N(int64(d) + 1)) }

func (s *sim) note(format string, args ...any) {
	s.history = append(s.history, line{s.now, s.depth, format, args})
}

func (s *sim) elect() {
	s.epoch++
	s.Mem.SetEpoch(s.epoch)
}
