package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/worker"
)

// The simulation runs the real code of node, coordinator, localcache, timeguard
// and worker in one goroutine: the keeper's and the extend loop's steps are
// called as a seeded scheduler likes, over a ZooKeeper, disks and clocks in
// memory. What would run at the same time in other processes, or in another
// goroutine of the same one, runs inside the calls to the store and the disk:
// there, at each of them, anything else may happen, the end of the process that
// makes the call included. The same seed gives the same history.

// simLayout has coarse ticks and few numbers, so that two holders of one slot
// at a time are sure to issue the same ID.
func simLayout() worker.Layout {
	return worker.Layout{Epoch: 1_700_000_000_000, Unit: 100 * time.Millisecond, TimeBits: 41, WorkerBits: 1, SequenceBits: 4}
}

const (
	simLease     = 90 * time.Second
	simSettle    = 8 * time.Second
	simHeartbeat = time.Second
	simDepth     = 2 // how deep what happens inside calls may nest
)

// sim is one history.
type sim struct {
	rng      *rand.Rand
	now      int64 // true time, Unix ns
	mem      *coordinator.Mem
	snapshot *coordinator.MemSnapshot
	machines []*machine
	depth    int
	faults   bool // calls may fail by themselves
	epoch    uint32
	inode    int
	sessions []*coordinator.MemSession // of processes that are no more

	issued  map[worker.ID]string // who issued an ID
	ranges  map[int][]*issuedRange
	ids     int
	history []string
	wrong   string // what was violated
	over    bool   // nothing more can be asked of this history
}

// issuedRange is what a tenure has issued on a slot.
type issuedRange struct {
	tenure   *tenure
	who      string
	min, max worker.Tick
}

// machine is a disk and a clock, and a process on them when one runs.
type machine struct {
	s     *sim
	name  string
	skew  int64 // wall clock minus true time, ns
	disk  *localcache.MemFile
	print localcache.Fingerprint
	proc  *process
	runs  int
	// paused is until when the machine stands still (SIGSTOP, a stalled host),
	// true time in ns: only a clock runs on.
	paused int64
}

// machine is the clocks of its processes.
func (m *machine) Wall() int64 { return m.s.now + m.skew }
func (m *machine) Mono() int64 { return m.s.now }
func (m *machine) Boot() int64 { return m.s.now }

// process is a node that runs.
type process struct {
	*machine
	n         *Node
	session   *coordinator.MemSession
	attempt   attempt
	acquiring bool
	name      string
	dead      bool
	keeping   bool // the keeper is on the stack: it is one goroutine
	saving    bool // a write of the disk is
	extending bool
	cut       bool // off ZooKeeper
	// patience, when not 0, is how many more calls to the store a stop makes.
	patience int
	giveUp   context.CancelFunc
}

// killed unwinds the steps of a process that is no more.
type killed struct{ p *process }

func newSim(seed uint64) *sim {
	s := &sim{
		rng: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano(),
		issued: make(map[worker.ID]string), ranges: make(map[int][]*issuedRange),
	}
	leader := int64(s.between(-50, 50)) * 1e6
	s.mem = coordinator.NewMem(func() int64 { return (s.now + leader) / 1e6 })
	if s.chance(2) {
		s.elect()
	}
	for i := range s.between(3, 4) {
		m := &machine{s: s, name: string(rune('A' + i)), skew: int64(s.between(-100, 100)) * 1e6}
		s.newDisk(m)
		s.machines = append(s.machines, m)
	}
	return s
}

func (s *sim) chance(oneIn int) bool     { return s.rng.IntN(oneIn) == 0 }
func (s *sim) between(low, high int) int { return low + s.rng.IntN(high-low+1) }
func (s *sim) any() *machine             { return s.machines[s.rng.IntN(len(s.machines))] }

func (s *sim) note(format string, a ...any) {
	s.history = append(s.history, fmt.Sprintf("%9.3fs %s%s", float64(s.now%1e15)/1e9, strings.Repeat("  ", s.depth), fmt.Sprintf(format, a...)))
}

func (s *sim) violated(format string, a ...any) {
	if s.wrong == "" {
		s.wrong = fmt.Sprintf(format, a...)
		s.note("VIOLATION: %s", s.wrong)
	}
}

func (s *sim) elect() {
	s.epoch++
	s.mem.SetEpoch(s.epoch)
}

// newDisk gives a machine a file of its own: another inode than any before.
func (s *sim) newDisk(m *machine) {
	s.inode++
	m.disk = localcache.NewMemFile(nil)
	m.print = localcache.Fingerprint{Inode: fmt.Sprint(s.inode)}
	s.hookDisk(m)
}

func (s *sim) hookDisk(m *machine) {
	m.disk.Survives = func(int64) bool { return s.chance(2) }
	disk := m.disk
	disk.FailSyncs = func() error {
		p := m.proc
		if p == nil || m.disk != disk {
			return nil
		}
		p.saving = true
		s.meanwhile(p)
		p.saving = false
		if s.faults && s.chance(60) {
			s.note("%s: fsync fails", p.name)
			return errors.New("simulated I/O error")
		}
		return nil
	}
}

// meanwhile lets others act while a process is inside a call.
func (s *sim) meanwhile(p *process) {
	if s.depth < simDepth && s.wrong == "" {
		s.depth++
		for s.chance(6) {
			s.act()
		}
		s.depth--
	}
	if p.dead {
		panic(killed{p})
	}
}

func (s *sim) start(m *machine) {
	cache, err := localcache.New(m.disk, m.print)
	if err != nil {
		s.note("%s: does not start: %v", m.name, err)
		return
	}
	m.runs++
	p := &process{machine: m, name: fmt.Sprintf("%s%d", m.name, m.runs), session: s.mem.Session(), acquiring: true}
	p.session.SetFault(func(c coordinator.Call) coordinator.Fault {
		s.meanwhile(p)
		if p.patience--; p.patience == 0 {
			p.giveUp()
		}
		if !s.faults || !s.chance(25) {
			return coordinator.NoFault
		}
		if s.chance(2) {
			s.note("%s: %s %s is lost", p.name, c.Op, c.Path)
			return coordinator.FailBefore
		}
		s.note("%s: the answer to %s %s is lost", p.name, c.Op, c.Path)
		return coordinator.FailAfter
	})
	layout, lease, settle := simLayout(), simLease, simSettle
	p.n, err = New(Config{
		Cluster: "sim", Bootstrap: true, Store: p.session, Cache: cache, Clock: m,
		Settings:  Settings{Layout: &layout, Lease: &lease, Settle: &settle},
		Heartbeat: simHeartbeat, Labels: coordinator.Labels{Name: p.name},
		ReleaseOnExit: s.chance(4), SequenceStart: worker.StartZero,
		Identity: func() string { return fmt.Sprintf("%s-%d", p.name, s.rng.Int64()) },
	})
	if err != nil {
		s.violated("%s: %v", p.name, err)
		return
	}
	p.n.coord.RetryAfter = -1
	p.n.coord.Nonce = func() string { return fmt.Sprint(s.rng.Int64()) }
	m.proc = p
	s.note("%s: starts, clock %+dms", p.name, m.skew/1e6)
	s.within(p, &p.keeping, func() {
		p.attempt, err = p.n.begin()
		if err != nil {
			s.exits(p, err)
		}
	})
}

// within runs a step of a process, which may end in it.
func (s *sim) within(p *process, busy *bool, f func()) {
	if p.dead || *busy {
		return
	}
	*busy = true
	defer func() {
		*busy = false
		if r := recover(); r != nil {
			if k, ok := r.(killed); !ok || k.p != p {
				panic(r)
			}
		}
	}()
	f()
}

// exits is the end of a process by itself.
func (s *sim) exits(p *process, err error) {
	s.note("%s: exits: %v", p.name, err)
	_ = p.session.Close()
	p.dead = true
	p.machine.proc = nil
}

// keep is one round of the keeper.
func (s *sim) keep(p *process) {
	if p.saving || s.now < p.paused {
		return // the lock that both loops take is held
	}
	s.within(p, &p.keeping, func() {
		if p.acquiring {
			switch err := p.n.tryAcquire(context.Background(), &p.attempt); {
			case err == nil:
				p.acquiring = false
				s.note("%s: %s", p.name, p.n.Worker())
			case !errors.Is(err, coordinator.ErrUnreachable):
				s.exits(p, err)
			}
			return
		}
		was := p.n.Worker()
		err := p.n.step(context.Background())
		var fenced *coordinator.FencedError
		switch {
		case errors.As(err, &fenced):
			s.note("%s: %v", p.name, err)
			p.n.fenced(fenced)
			p.attempt, p.acquiring = p.n.newcomer(), true
		case err != nil:
			s.exits(p, err)
		default:
			if is := p.n.Worker(); is != was {
				s.note("%s: %s", p.name, is)
			}
		}
	})
}

// extend is one round of the extend loop.
func (s *sim) extend(p *process) {
	if p.saving || s.now < p.paused {
		return // likewise
	}
	s.within(p, &p.extending, func() {
		p.n.extend(500 * time.Millisecond)
		p.n.publish()
	})
}

// get asks a process for IDs, and checks them.
func (s *sim) get(p *process, count int) {
	t := p.n.serving.Load()
	if t == nil || p.dead || s.now < p.paused {
		return
	}
	run, _, err := t.gen.Try(count, false)
	if err != nil {
		_ = p.n.explain(t, err)
		return
	}
	for i := range run.Len {
		id := run.At(i)
		s.ids++
		if other, twice := s.issued[id]; twice {
			s.violated("%s issues %d, which %s has issued", p.name, id, other)
			return
		}
		s.issued[id] = p.name
	}
	if run.Len == 0 {
		return
	}
	f, _ := simLayout().Decode(run.First)
	if int(f.Worker) != t.worker {
		s.violated("%s holds worker %d and issues for %d", p.name, t.worker, f.Worker)
	}
	s.record(p, t, f.Tick)
}

// record keeps the range of each tenure, and finds those that overlap: they
// need not have issued the same ID yet.
func (s *sim) record(p *process, t *tenure, tick worker.Tick) {
	var own *issuedRange
	for _, r := range s.ranges[t.worker] {
		if r.tenure == t {
			own = r
		}
	}
	if own == nil {
		own = &issuedRange{tenure: t, who: p.name, min: tick, max: tick}
		s.ranges[t.worker] = append(s.ranges[t.worker], own)
	}
	own.min, own.max = min(own.min, tick), max(own.max, tick)
	for _, r := range s.ranges[t.worker] {
		if r != own && r.min <= own.max && own.min <= r.max {
			s.violated("%s issued ticks %d to %d for worker %d, and %s %d to %d", own.who, own.min, own.max, t.worker, r.who, r.min, r.max)
		}
	}
}

// kill is kill -9, or a power cut.
func (s *sim) kill(p *process) {
	s.note("%s: killed", p.name)
	s.sessions = append(s.sessions, p.session)
	p.dead = true
	p.machine.proc = nil
	if s.chance(3) {
		p.machine.disk.Crash()
	}
}

// stop is a clean stop.
func (s *sim) stop(p *process) {
	if p.keeping || p.extending || p.saving || p.acquiring {
		return // Run stops the loops first
	}
	s.within(p, &p.keeping, func() {
		var ctx context.Context
		ctx, p.giveUp = context.WithCancel(context.Background())
		p.patience = s.between(1, 12)
		p.n.stop(ctx)
		p.giveUp()
		s.note("%s: stops, %s", p.name, p.n.refusalText())
		p.dead = true
		p.machine.proc = nil
		_ = p.session.Close()
	})
}

func (n *Node) refusalText() string {
	if e := n.refusal.Load(); e != nil && e.Code != lineproto.NOTREADY {
		return e.Error()
	}
	return "done"
}
