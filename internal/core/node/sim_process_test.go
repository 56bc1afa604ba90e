package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/worker"
)

// process is a node that was started.
type process struct {
	*machine
	n         *Node
	session   *memzk.Session
	attempt   attempt
	acquiring bool
	name      string
	dead      bool
	// keeping, saving, extending: a step of keep, a write to the disk or a step of extendLoop
	// is on the stack. Each of them is never on the stack twice.
	keeping   bool
	saving    bool
	extending bool
	stopping  bool
	killed    bool  // ended from outside
	failed    error // of the node, which has ended the process
	started   int64
	ended     int64
	cut       bool // disconnected
	// extendAt and keepAt are the times at which the loops are due, extended that of the last run of extendLoop. All
	// are true time in ns.
	extendAt, keepAt, extended int64
	// conns are the connections of two clients.
	conns [2]conn
	// trap, if not nil, waits for a call to the store. then, if not nil, is called after the
	// call that the trap has caught.
	trap *trap
	then func()
	// fails, if not nil, reports whether a call to the store is lost.
	fails func(memzk.Call) bool
	// patience, if not 0, is how many more calls to the store a stop makes before giveUp.
	patience int
	giveUp   context.CancelFunc
	// slow is the longest time that a call to the store takes.
	slow time.Duration
}

// conn is a connection: the tenure that its last request found, and the last ID it was given.
type conn struct {
	t    *tenure
	last worker.ID
}

// trap waits for a call to the store that on selects.
type trap struct {
	on     func(memzk.Call) bool
	before func() memzk.Fault // may be nil
	after  func()             // after the call and before its answer, may be nil
}

// gone is the panic value that unwinds the steps of a process that has ended.
type gone struct{ p *process }

// start runs a process on a machine that has none. It returns nil if the node has ended.
func (s *sim) start(m *machine) *process { return s.startIn(m, s.Mem) }

// startIn is start for a node that uses the ZooKeeper given.
func (s *sim) startIn(m *machine, mem *memzk.Server) *process {
	m.wake() // nothing starts on a machine that is suspended
	if m.Disk.Removed() {
		s.newDisk(m)
	}
	cache, err := localcache.New(m.Disk, m.Print)
	if err != nil {
		s.note("%s: does not start: %v", m.name, err)
		return nil
	}
	m.runs++
	s.starts++
	zookeeper := "here"
	if mem == s.elsewhere {
		zookeeper = "elsewhere"
	}
	p := &process{machine: m, name: fmt.Sprintf("%s%d", m.name, m.runs), session: mem.Session(), acquiring: true,
		started: s.now, extended: s.now}
	p.session.SetFault(func(c memzk.Call) memzk.Fault { return s.asked(p, c) })
	p.session.SetDone(func(c memzk.Call, result, reported error) {
		if mem == s.elsewhere { // not checked
			result = cmp.Or(result, errSim)
		}
		s.answered(p, c, result, reported)
	})
	cfg := Config{
		Cluster: "sim", Bootstrap: s.bootstrap, ZooKeeper: zookeeper, Store: p.session, Cache: spiedCache{cache, m},
		Clock:    m,
		Settings: s.settings(),
		// The order in which two timers fire at the same instant is not defined. So no two
		// processes have the same timeout.
		RoundTimeout: 5*time.Second + time.Duration(s.starts)*time.Microsecond,
		BootID:       fmt.Sprint(m.Boots),
		Heartbeat:    s.drawHeartbeat(), Reserve: s.reserve, Labels: coordinator.Labels{Name: p.name},
		ReleaseOnExit: s.chance(4),
		Rand:          s.rng.Uint32N,
		Identity:      func() string { return fmt.Sprintf("%s-%d", p.name, s.rng.Int64()) },
	}
	nonce := func() string { return fmt.Sprint(s.rng.Int64()) }
	if s.tell != nil {
		nonce = s.tell(p, &cfg)
	}
	if p.n, err = New(cfg); err != nil {
		s.violated(wrongSim, "%s: %v", p.name, err)
		return nil
	}
	// RetryAfter is time of the synctest bubble, so that retries come to an end. It divides no
	// timeout, so that no two timers fire at the same instant.
	p.n.keeper.coord.RetryAfter = 997 * time.Millisecond
	p.n.keeper.coord.Nonce = nonce
	m.proc = p
	s.note("%s: starts, clock %+dms", p.name, m.skew()/1e6)
	s.within(p, &p.keeping, func() {
		p.attempt, err = p.n.keeper.firstAttempt()
		if err != nil {
			s.exits(p, err)
		}
	})
	return m.proc
}

// drawHeartbeat returns the heartbeat of a new process: that of the world, or one that is too
// slow for the confirming time.
func (s *sim) drawHeartbeat() time.Duration {
	if s.chance(s.slowHeartbeat) {
		return s.confirm
	}
	return s.heartbeat
}

// asked is called before each call to the store. Other events may happen in it. It returns what becomes of the call.
func (s *sim) asked(p *process, c memzk.Call) memzk.Fault {
	if s.calls++; s.calls > simCalls {
		s.violated(wrongSim, "%s goes round in circles: %s %s", p.name, c.Op, c.Path)
		s.kill(p, false)
		panic(gone{p})
	}
	if t := p.trap; t != nil && t.on(c) {
		p.trap, p.then = nil, t.after
		if t.before != nil {
			fault := t.before()
			s.stillThere(p)
			return fault
		}
		return memzk.NoFault
	}
	if p.patience--; p.patience == 0 {
		p.giveUp()
	}
	s.now += int64(s.upTo(p.slow))
	if p.fails != nil && p.fails(c) {
		return memzk.FailBefore
	}
	s.meanwhile(p)
	s.stallsInside(p)
	if !s.faults || s.depth >= simDepth || !s.chance(25) {
		return memzk.NoFault
	}
	fault := pick(s, memzk.FailBefore, memzk.FailAfter, memzk.FailAfter, memzk.FailLate)
	if fault == memzk.FailBefore && c.Write() && s.chance(50) {
		fault = memzk.FailQuota
	}
	s.note("%s: %s %s %s", p.name, c.Op, c.Path, faultText(fault))
	return fault
}

func faultText(f memzk.Fault) string {
	switch f {
	case memzk.FailBefore:
		return "is lost"
	case memzk.FailQuota:
		return "exceeds a quota"
	case memzk.FailAfter:
		return "loses its answer"
	case memzk.FailLate:
		return "is late"
	}
	return "arrives"
}

// answered is called after each call that the store has handled.
func (s *sim) answered(p *process, c memzk.Call, result, reported error) {
	if result == nil {
		s.wrote(c, reported == nil)
	}
	s.stallsInside(p)
	if then := p.then; then != nil {
		p.then = nil
		then()
		s.stillThere(p)
	}
}

// meanwhile lets other events happen while a process is inside a call.
func (s *sim) meanwhile(p *process) {
	often := 8
	if s.calm {
		often = 60
	}
	if s.depth < simDepth && s.wrong == "" {
		s.depth++
		for s.chance(often) {
			s.act()
		}
		s.depth--
	}
	s.stillThere(p)
}

func (s *sim) stillThere(p *process) {
	if p.dead {
		panic(gone{p})
	}
}

// within runs a step of a process. The process may end during the step.
func (s *sim) within(p *process, busy *bool, f func()) {
	if p.dead || *busy {
		return
	}
	*busy = true
	depth := s.depth
	defer func() {
		*busy = false
		if r := recover(); r != nil {
			if g, ok := r.(gone); !ok || g.p != p {
				panic(r)
			}
			s.depth = depth
		}
	}()
	f()
}

// held returns the worker that a process holds, -1 for none.
func (p *process) held() int {
	if p.dead || p.acquiring || p.n.tenure == nil {
		return -1
	}
	return p.n.tenure.Worker
}

// keep runs one round of the node's keep, or one attempt to acquire a slot.
func (s *sim) keep(p *process) {
	if p.saving || s.now < p.paused {
		return // saveMu is held, or nothing runs
	}
	p.keepAt = s.now + int64(s.heartbeat/2) + int64(s.upTo(s.heartbeat))
	s.within(p, &p.keeping, func() {
		if p.acquiring {
			switch err := p.n.keeper.tryAcquire(context.Background(), &p.attempt); {
			case err == nil:
				p.acquiring = false
				s.note("%s: %s", p.name, p.n.Worker())
			case !errors.Is(err, store.ErrUnreachable):
				s.exits(p, err)
			}
			return
		}
		phase, term, at := p.n.phase(), p.n.view.Load().Claim.Term, p.held()
		err := p.n.keeper.round(context.Background())
		var fenced *coordinator.FencedError
		switch {
		case errors.As(err, &fenced):
			s.note("%s: %v", p.name, err)
			p.n.keeper.dropTenure(fenced)
			p.n.keeper.becomeNewcomer()
			p.attempt, p.acquiring = attempt{}, true
		case err != nil:
			s.exits(p, err)
		case phase != p.n.phase() || term != p.n.view.Load().Claim.Term || at != p.held():
			s.note("%s: %s", p.name, p.n.Worker())
		}
	})
}

// extend runs one round of extendLoop.
func (s *sim) extend(p *process) {
	if p.saving || s.now < p.paused {
		return
	}
	p.extendAt = s.now + int64(s.reserve/6) + int64(s.upTo(s.reserve/3))
	s.within(p, &p.extending, func() {
		elapsed := s.now - p.extended
		p.extended = s.now
		p.n.addServed(time.Duration(elapsed))
		p.n.extend(0)
		p.n.startServing()
	})
}

// get asks a process for IDs on one of its connections. The request may use a tenure that has
// been replaced meanwhile, as a real one does that was delayed after it had loaded serving.
func (s *sim) get(p *process, count int) {
	if p.dead || s.now < p.paused {
		return
	}
	c := &p.conns[s.rng.IntN(len(p.conns))]
	if t := p.n.serving.Load(); c.t == nil || t != nil && !s.chance(6) {
		c.t = t
	}
	if c.t == nil {
		return
	}
	waited := time.Duration(0)
	if s.chance(4) {
		waited = time.Millisecond
	}
	run, _, err := c.t.gen.Try(count, waited)
	if err != nil {
		_ = p.n.explain(c.t, err)
		return
	}
	if run.Len > 0 {
		s.check(p, c, run)
	}
}
