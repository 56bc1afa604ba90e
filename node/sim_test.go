package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
	"github.com/flaked/flaked/zkstore"
)

// The simulation runs the real code of node, coordinator, localcache, timeguard
// and worker in one goroutine: the keeper's and the extend loop's steps are
// called as a seeded scheduler likes, over a ZooKeeper, disks and clocks in
// memory. What would run at the same time in other processes, or in another
// goroutine of the same one, runs inside the calls to the store and the disk:
// there, at each of them, anything else may happen, the end of the process that
// makes the call included. The same seed gives the same history.
//
// Chance alone seldom finds the sequences that a safeguard is there for. So
// part of each history are stories (sim_story_test.go): sequences aimed at one,
// with random details and with the usual chaos in between.

// world is what differs from history to history, and stays in one.
type world struct {
	layout                            worker.Layout
	lease, settle, heartbeat, reserve time.Duration
	// crowded: there is one slot to be had, all others are somebody's far away.
	// Whoever wants one waits for the same.
	crowded bool
	// The rest is Leaf's rule, no borrowing and the first segment, but in
	// sim_worlds_test.go.
	onRollback   timeguard.RollbackPolicy
	borrow       time.Duration
	segmentStart worker.SegmentStart
	// bootstrap: nodes make the cluster; else somebody has made it before.
	bootstrap bool
	// twins: the first two machines are one, whose process is a group of two nodes.
	twins bool
	// slowHeartbeat: one process in so many has a heartbeat that is too slow for an owner
	// to notice a loss of data within the settling time. Such a node has to be refused.
	slowHeartbeat int
}

// mayLead is how far beyond the clock IDs may be.
func (w *world) mayLead() time.Duration { return w.borrow + w.onRollback.Coast() }

// drawWorld: coarse ticks of which few are aligned to anything show rounding
// faults, short leases let slots change hands, long ones are the rule.
func (s *sim) drawWorld() {
	w := &s.world
	w.heartbeat = pick(s, time.Second/2, time.Second, 2*time.Second)
	w.lease = pick(s, 3*w.heartbeat, 3*w.heartbeat, 10*time.Second, 30*time.Second, 90*time.Second, 10*time.Minute)
	w.settle = 2*w.heartbeat + pick(s, 0, 0, time.Second, 6*time.Second)
	w.reserve = pick(s, 3*time.Second, 3*time.Second, 9*time.Second)
	w.layout = worker.Layout{
		Epoch: 1_700_000_000_000 + int64(s.between(0, 999)),
		Unit:  pick(s, 10*time.Millisecond, 100*time.Millisecond, 250*time.Millisecond, time.Second), TimeBits: 41,
		WorkerBits: pick[uint8](s, 1, 1, 2, 4), SequenceBits: uint8(s.between(1, 6)),
	}
	w.crowded = w.layout.WorkerBits < 4 && !s.chance(3)
	w.bootstrap, w.twins = !s.chance(4), s.chance(6)
	w.slowHeartbeat = 40
	if s.chance(30) { // the layout's time runs out in this history, in a minute to an hour
		w.layout.TimeBits = 16
		left := time.Minute + s.upTo(time.Hour)
		w.layout.Epoch = (s.now + int64(left) - int64(w.layout.Unit)<<w.layout.TimeBits) / 1e6
	}
}

const (
	simDepth = 2       // how deep what happens inside calls may nest
	simCalls = 200_000 // to the store, in a history: far more than there are
)

// sim is one history.
type sim struct {
	world
	checks
	rng      *rand.Rand
	now      int64 // true time, Unix ns
	mem      *zkstore.Mem
	admin    *zkstore.MemSession // of the simulation's own doings, which the checks do not see
	operator *zkstore.MemSession
	snapshot *zkstore.MemSnapshot
	machines []*machine
	depth    int
	deadline int64 // when not 0, time stops here until it is taken away
	faults   bool  // calls may fail by themselves
	calm     bool  // a story is told: little comes in between
	epoch    uint32
	inode    int
	aimed    int
	leader   int64 // the leader's clock minus true time, ns
	// elsewhere is another ZooKeeper, which nobody should use; recent are copies of the
	// data as they were lately, for clients whose server has fallen behind.
	elsewhere *zkstore.Mem
	recent    []*zkstore.MemSnapshot
	starts    int
	calls     int
	sessions  []*zkstore.MemSession // of processes that are no more
	told      map[string]int        // stories, by how they ended

	history []line
	over    bool // nothing more can be asked of this history
}

// line is one line of the history, put together when it is read.
type line struct {
	now    int64
	depth  int
	format string
	args   []any
}

func (l line) String() string {
	return fmt.Sprintf("%11.4fs %s%s", float64(l.now%1e15)/1e9, strings.Repeat("  ", l.depth), fmt.Sprintf(l.format, l.args...))
}

// machine is a disk and a clock, and a process on them when one runs.
type machine struct {
	s       *sim
	name    string
	skew    int64 // wall clock minus true time, ns
	lowest  int64 // that the skew has ever been
	disk    *localcache.MemFile
	print   localcache.Fingerprint
	durable diskLook
	saved   localcache.Record // the last that counts
	trouble trouble
	// stall, if set, is what happens during the next sync.
	stall func()
	proc  *process
	runs  int
	// paused is until when the machine stands still (SIGSTOP, a stalled host, suspend),
	// true time in ns: only clocks run on.
	paused int64
	// slept is how long it has been suspended before sleepFrom, and since then it is or
	// was until sleepUntil, true time in ns.
	slept, sleepFrom, sleepUntil int64
	twin                         *machine // of one process with this one; nil for none
}

// machine is the clocks of its processes.
func (m *machine) Wall() int64 { return m.s.now + m.skew }
func (m *machine) Boot() int64 { return m.s.now }
func (m *machine) Mono() int64 {
	return m.s.now - m.slept - max(0, min(m.s.now, m.sleepUntil)-m.sleepFrom)
}

// sleep suspends a machine: its monotonic clock stands still as well.
func (s *sim) sleep(m *machine, d time.Duration) {
	s.note("%s: suspended for %s", m.name, d)
	for _, m := range m.both() {
		m.slept = s.now - m.Mono()
		m.sleepFrom, m.sleepUntil = s.now, s.now+int64(d)
		m.paused = m.sleepUntil + 1e6 // by then the issuing clock has looked
	}
}

// wake ends a stand-still early. A moment goes by, so that the issuing clock, which
// looks at the others that often by the monotonic one, sees a suspend.
func (m *machine) wake() {
	m.paused = 0
	if m.s.now < m.sleepUntil {
		m.sleepUntil = max(m.s.now, m.sleepFrom)
		m.s.now += 1e6
	}
}

// both are a machine and its twin, which have one clock and stand still together.
func (m *machine) both() []*machine {
	if m.twin == nil {
		return []*machine{m}
	}
	return []*machine{m, m.twin}
}

func newSim(seed uint64) *sim {
	s := &sim{
		rng:  rand.New(rand.NewPCG(seed, 1)),
		told: make(map[string]int),
	}
	s.now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano() + s.rng.Int64N(1e9)
	s.drawWorld()
	s.checks.init(s.layout.Workers())
	s.leader = int64(s.between(-50, 50)) * 1e6
	clock := func() int64 { return (s.now + s.leader) / 1e6 }
	s.mem, s.elsewhere = zkstore.NewMem(clock), zkstore.NewMem(clock)
	s.admin, s.operator = s.mem.Session(), s.mem.Session()
	s.operator.SetDone(func(c zkstore.Call, result, told error) {
		if result == nil {
			s.wrote(c, told == nil)
		}
	})
	if s.chance(2) {
		s.elect()
	}
	machines := s.between(3, 4)
	if s.twins {
		machines = 4
	}
	for i := range machines {
		m := &machine{s: s, name: string(rune('A' + i))}
		s.setSkew(m, int64(s.between(-100, 100))*1e6+s.rng.Int64N(1e6))
		s.newDisk(m)
		s.machines = append(s.machines, m)
	}
	if s.twins {
		a, b := s.machines[0], s.machines[1]
		a.twin, b.twin, b.skew, b.lowest = b, a, a.skew, a.lowest
	}
	s.note("tick %s, lease %s, settling %s, heartbeat %s, reserve %s, %d workers, crowded %t, bootstrap %t, twins %t, time until %s, leader's epoch %d",
		s.layout.Unit, s.lease, s.settle, s.heartbeat, s.reserve, s.layout.Workers(), s.crowded, s.bootstrap, s.twins, s.layout.Expires(), s.epoch)
	s.crowd()
	return s
}

// found makes the cluster, in a world where no node does.
func (s *sim) found() {
	if s.bootstrap {
		return
	}
	settings := s.settings()
	cl, err := settings.Record("sim-cluster", s.heartbeat)
	if err == nil {
		_, err = coordinator.CreateCluster(context.Background(), s.admin, cl)
	}
	if err != nil {
		s.violated(wrongSim, "%v", err)
	}
}

func (s *sim) settings() Settings {
	return Settings{Layout: &s.layout, Lease: &s.lease, Settle: &s.settle, OnRollback: &s.onRollback, Borrow: &s.borrow}
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
	s.mem.SetEpoch(s.epoch)
}

// step moves a machine's wall clock. A moment goes by, so that the issuing
// clock, which looks at it that often, sees it.
func (s *sim) step(m *machine, d time.Duration) {
	s.note("%s: clock steps by %s", m.name, d)
	s.setSkew(m, m.skew+int64(d))
	s.now += 1e6
}

// drift moves it ahead in steps that are followed.
func (s *sim) drift(m *machine, d time.Duration) {
	s.note("%s: clock gains %s", m.name, d)
	for d > 0 {
		by := min(d, 900*time.Millisecond)
		d -= by
		s.setSkew(m, m.skew+int64(by))
		s.now += 1e6
		if m.proc != nil {
			m.proc.n.clock.Now()
		}
	}
}

func (s *sim) setSkew(m *machine, skew int64) {
	for _, m := range m.both() {
		m.skew = skew
		m.lowest = min(m.lowest, skew)
	}
	s.lowest, s.highest = min(s.lowest, skew), max(s.highest, skew)
}
