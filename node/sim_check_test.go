package node

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/worker"
	"github.com/flaked/flaked/zkstore"
)

// What is checked. The first two are what it is all about: an ID that is given
// twice, and holders of a worker whose IDs lie among each other's. The rest are
// the rules that keep it from coming to that; they read what is on the disks
// and in the store, not what a node believes.
const (
	wrongTwice    = "twice"    // an ID given twice
	wrongOverlap  = "overlap"  // ranges of IDs of two tenures of a worker overlap
	wrongOrder    = "order"    // IDs of a connection, a node or a worker out of order
	wrongDisk     = "disk"     // an ID at or above what a restart would begin at
	wrongLease    = "lease"    // an ID at or above the settled, acknowledged lease bound
	wrongFloor    = "floor"    // an ID below the floor
	wrongReserved = "reserved" // an ID among what a predecessor had reserved
	wrongClock    = "clock"    // an ID's time is not the clock's
	wrongMFell    = "M fell"
	wrongHFell    = "H fell"
	wrongTaken    = "taken" // a record that another has settled on, and whose lease runs, is overwritten
	wrongSim      = "simulation"
)

// checks is what is known of a history.
type checks struct {
	idsOnly bool // judge by the IDs alone
	// forgiven: an operator has broken the promise, and only the records count.
	forgiven bool
	kind     string // of what was violated
	wrong    string

	used    map[worker.ID]*use // by an ID's tick and worker
	workers []workerChecks
	acked   map[holding]int64 // the settled, acknowledged lease bound
	ids     int
	ahead   int  // runs of IDs ahead of the wall clock
	rolled  int  // and of those that count a rollback
	lossy   bool // the store has lost data
	// How far clocks have ever been off, ns.
	lowest, highest int64
}

// use is which sequence numbers of a tick a worker has issued.
type use struct {
	sequences uint64
	who       *issued
}

// holding is a node's hold on a worker.
type holding struct {
	node   string
	worker int
}

// workerChecks is what is known of a worker slot.
type workerChecks struct {
	tenures []*issued
	latest  *issued    // which issued the latest tick
	record  slotRecord // in the store; not known after a loss of data
	known   bool
	held    bool // by anybody, ever
}

// issued is what a tenure has issued.
type issued struct {
	t        *tenure
	p        *process
	min, max worker.Tick
	last     [8]worker.ID // by the rollback field's value
	end      worker.Tick  // what it had reserved when it last issued, exclusive
}

// slotRecord is a slot's record in the store, read without the code under test.
type slotRecord struct {
	node, nonce                string
	term, h                    int64
	generation                 uint64
	settled, released, stopped bool
}

func (c *checks) init(workers int) {
	c.used, c.acked, c.workers = make(map[worker.ID]*use), make(map[holding]int64), make([]workerChecks, workers)
}

func (s *sim) violated(kind, format string, a ...any) {
	ids := kind == wrongTwice || kind == wrongOverlap || kind == wrongSim
	if s.wrong != "" || s.idsOnly && !ids || s.forgiven && kind != wrongTaken && kind != wrongSim {
		return
	}
	s.kind, s.wrong = kind, kind+": "+fmt.Sprintf(format, a...)
	s.note("VIOLATION: %s", s.wrong)
}

// check judges a run of IDs that a connection is given.
func (s *sim) check(p *process, c *conn, run worker.Run) {
	s.ids += run.Len
	f, err := s.layout.Decode(run.First)
	if err != nil || int(f.Worker) != c.t.worker {
		s.violated(wrongTwice, "%s is given %d, which is not of worker %d: %v", p.name, run.First, c.t.worker, err)
		return
	}
	last := run.At(run.Len - 1)
	w := &s.workers[c.t.worker]
	mine := w.of(c.t)
	if mine == nil {
		mine = &issued{t: c.t, p: p, min: f.Tick, max: f.Tick}
		w.tenures = append(w.tenures, mine)
	}
	s.checkTwice(mine, run, f)
	s.checkOrder(mine, c, run, w, f)
	mine.min, mine.max, mine.last[f.Rollback] = min(mine.min, f.Tick), max(mine.max, f.Tick), last
	c.last = last
	s.checkBounds(mine, f.Tick)
	s.checkApart(mine, w, f.Tick)
	start := s.layout.Start(f.Tick)
	if f.Rollback > 0 {
		s.rolled++
	}
	if start > p.Wall()/1e6 {
		s.ahead++
	}
	if wall := p.Wall() / 1e6; start > wall+s.mayLead().Milliseconds() || start+s.layout.Unit.Milliseconds() <= (s.now+p.lowest)/1e6 {
		s.violated(wrongClock, "%s issues for %d ms, where its clock reads %d and has never been off by less than %d ms", p.name, start, wall, p.lowest/1e6)
	}
}

func (w *workerChecks) of(t *tenure) *issued {
	for i := len(w.tenures) - 1; i >= 0; i-- {
		if w.tenures[i].t == t {
			return w.tenures[i]
		}
	}
	return nil
}

func (s *sim) checkTwice(mine *issued, run worker.Run, f worker.Fields) {
	// The first ID of the tick, or of its segment, wherever the sequence stands.
	of := f
	of.Sequence = 0
	tick, err := s.layout.Encode(of)
	if err != nil {
		panic(err) // it has been decoded
	}
	u := s.used[tick]
	if u == nil {
		u = &use{who: mine}
		s.used[tick] = u
	}
	// Each ID by itself: all of one tick and worker, in order, none of them twice.
	for i := range run.Len {
		id := run.At(i)
		l, err := s.layout.Decode(id)
		one := uint64(1) << l.Sequence
		same := l
		same.Sequence = f.Sequence
		switch {
		case err != nil || same != f || i > 0 && id <= run.At(i-1):
			s.violated(wrongTwice, "%s is given %d as one of %d IDs from %d on: it is not of their tick and worker, or not above the one before: %v", mine.p.name, id, run.Len, run.First, err)
		case u.sequences&one != 0:
			s.violated(wrongTwice, "%s issues tick %d of worker %d, sequence %d, which %s has issued", mine.p.name, l.Tick, l.Worker, l.Sequence, u.who.p.name)
		}
		u.sequences |= one
	}
}

// checkOrder: what one node issues for a worker grows, over connections and
// tenures, but for rollbacks that are counted; and over holders as far as clocks
// agree.
func (s *sim) checkOrder(mine *issued, c *conn, run worker.Run, w *workerChecks, f worker.Fields) {
	tick := f.Tick
	if last, err := s.layout.Decode(c.last); err == nil && last.Worker == f.Worker && last.Rollback == f.Rollback && run.First <= c.last {
		s.violated(wrongOrder, "a connection of %s is given %d after %d", mine.p.name, run.First, c.last)
	}
	if last := mine.last[f.Rollback]; run.First <= last {
		s.violated(wrongOrder, "%s issues %d after %d in one tenure", mine.p.name, run.First, last)
	}
	if w.latest == nil {
		w.latest = mine
	}
	if before := w.latest; before != mine && tick <= before.max {
		back := time.Duration(s.layout.Start(before.max)-s.layout.Start(tick)) * time.Millisecond
		later := before.p == mine.p || before.p.dead && before.p.ended < mine.p.started && !s.lossy
		if later || back > time.Duration(s.highest-s.lowest)+s.layout.Unit+s.mayLead() {
			s.violated(wrongOrder, "%s issues tick %d of worker %d after %s tick %d", mine.p.name, tick, mine.t.worker, before.p.name, before.max)
		}
	}
	if w.latest.max <= tick {
		w.latest = mine
	}
}

// checkBounds is the issue rule, lo <= ts < min(M, H), of whole ticks, with M
// as it is durable on the disk and H as it is acknowledged in the store.
func (s *sim) checkBounds(mine *issued, tick worker.Tick) {
	p, t := mine.p, mine.t
	start, end := s.layout.Start(tick), s.layout.Start(tick+1)
	h := s.acked[holding{t.node, t.worker}]
	if end > h {
		s.violated(wrongLease, "%s issues for %d to %d ms of worker %d, where %d is acknowledged", p.name, start, end, t.worker, h)
	}
	mine.end = max(mine.end, tick+1)
	if d := p.durable; d.found && !d.released && d.node == t.node && d.worker == t.worker {
		if end > d.begin {
			s.violated(wrongDisk, "%s issues for %d to %d ms of worker %d, where a restart would begin at %d", p.name, start, end, t.worker, d.begin)
		}
		if start < d.lo {
			s.violated(wrongFloor, "%s issues for %d ms of worker %d, where its floor is %d", p.name, start, t.worker, d.lo)
		}
		// Not what has landed and was not acknowledged: it does not count.
		mine.end = max(mine.end, s.layout.FloorTick(min(d.m, p.machine.saved.M, h)))
	}
}

// checkApart: tenures of a worker lie apart, and whoever follows begins above
// what its predecessor could still have issued, had nobody known its end.
func (s *sim) checkApart(mine *issued, w *workerChecks, tick worker.Tick) {
	for _, r := range w.tenures {
		switch {
		case r == mine:
		case r.min <= mine.max && mine.min <= r.max:
			s.violated(wrongOverlap, "%s issued ticks %d to %d for worker %d, and %s %d to %d", mine.p.name, mine.min, mine.max, mine.t.worker, r.p.name, r.min, r.max)
		case r.max < tick && tick < r.end && !r.closed():
			s.violated(wrongReserved, "%s issues tick %d for worker %d, of which %s had reserved all below %d", mine.p.name, tick, mine.t.worker, r.p.name, r.end)
		}
	}
}

// closed tells whether a tenure ended in a way that its end is known.
func (r *issued) closed() bool {
	return r.end == 0 || r.p.stopping || !r.p.killed && (r.p.dead || r.p.n.held != r.t)
}

// killed takes down what a process that was killed has left open.
func (s *sim) killed(p *process) {
	for i := range s.workers {
		for _, r := range s.workers[i].tenures {
			if r.p == p && r.closed() {
				r.end = 0
			}
		}
	}
}

// forget is called when the store has lost data: what it says may be older, and
// nobody knows of what dead processes had reserved.
func (s *sim) forget() {
	s.lossy, s.recent = true, nil
	s.crowd()
	for i := range s.workers {
		w := &s.workers[i]
		w.known = false
		for _, r := range w.tenures {
			r.end = 0
		}
	}
}

// wrote is told of each write that the store has carried out.
func (s *sim) wrote(c zkstore.Call, acked bool) {
	switch c.Op {
	case "set", "create":
		s.wroteSlot(c.Path, c.Data, acked)
	case "multi":
		for _, op := range c.Ops {
			switch op := op.(type) {
			case zkstore.SetOp:
				s.wroteSlot(op.Path, op.Data, acked)
			case zkstore.CreateOp:
				s.wroteSlot(op.Path, op.Data, acked)
			}
		}
	}
}

func (s *sim) wroteSlot(at string, data []byte, acked bool) {
	if !strings.HasPrefix(at, "/workers/") {
		return
	}
	n, _ := strconv.Atoi(path.Base(at))
	w := &s.workers[n]
	w.held = w.held || text(data, "node") != ""
	r := slotRecord{
		node: text(data, "node"), nonce: text(data, "nonce"), term: number(data, "term"), h: number(data, "h"),
		generation: uint64(number(data, "generation")),
		settled:    has(data, "settled"), released: has(data, "released"), stopped: has(data, "stopped"),
	}
	was := w.record
	// A record of nobody was made in place of a lost one, and says nothing of its owner's bound.
	if w.known && was.node != "" && (r.h < was.h && !(r.released && r.nonce == was.nonce) || r.term < was.term) {
		s.violated(wrongHFell, "the record of worker %d goes from %+v to %+v", n, was, r)
	}
	if w.known && was.released && r.node == was.node && r.term > was.term {
		delete(s.acked, holding{r.node, n}) // its holder takes it once more
	}
	// Clocks may be 10 s apart, and one that has gone back further is refused.
	if w.known && was.settled && !was.released && r.node != was.node && was.h > s.now/1e6+10_000 {
		s.violated(wrongTaken, "the record of worker %d goes from %+v to %+v", n, was, r)
	}
	if r.released && !was.released && !s.lossy {
		for _, t := range w.tenures {
			if end := s.layout.Start(t.max + 1); r.h < end {
				s.violated(wrongHFell, "worker %d is released from %d on, where %s has issued below %d", n, r.h, t.p.name, end)
			}
		}
	}
	w.record, w.known = r, true
	if acked && r.settled {
		at := holding{r.node, n}
		s.acked[at] = max(s.acked[at], r.h)
	}
}

// saved is a record of which the disk has said that it is durable: its M counts,
// and never goes down but at a stop.
func (s *sim) saved(m *machine, r localcache.Record) {
	was := m.saved
	same := text(was.Payload, "node") == text(r.Payload, "node") && number(was.Payload, "worker") == number(r.Payload, "worker")
	if same && r.M < was.M && !has(r.Payload, "stopped") {
		s.violated(wrongMFell, "%s: the bound on the disk goes from %d to %d", m.name, was.M, r.M)
	}
	m.saved = r
}
