package node

import (
	"fmt"
	"time"

	"github.com/flaked/flaked/worker"
)

// The kinds of violations. The first two break the promise itself: an ID is issued twice, or
// the ID ranges of two tenures of a worker overlap. The others break the rules that protect the
// promise. Their checks read the disks and the store, and not what a node believes.
const (
	wrongTwice     = "twice"    // an ID given twice
	wrongOverlap   = "overlap"  // ranges of IDs of two tenures of a worker overlap
	wrongOrder     = "order"    // IDs of a connection, a node or a worker out of order
	wrongDisk      = "disk"     // an ID at or above what a restart would begin at
	wrongLease     = "lease"    // an ID at or above the confirmed, acknowledged lease bound
	wrongFloor     = "floor"    // an ID below the floor
	wrongReserved  = "reserved" // an ID among what a predecessor had reserved
	wrongClock     = "clock"    // an ID's time is not the clock's
	wrongBoundFell = "reserved bound fell"
	wrongLeaseFell = "lease bound fell"
	wrongTaken     = "taken"     // another node's confirmed record is overwritten while its lease runs
	wrongUnnoticed = "unnoticed" // a holder has seen a loss of data and does not freeze
	wrongSim       = "simulation"
)

// checks has the facts about a history that its checks go by.
type checks struct {
	idsOnly bool // judge by the IDs alone
	// forgiven: an operator has broken the promise. Only wrongTaken and wrongSim count now.
	forgiven bool
	kind     string // of what was violated
	wrong    string

	used    map[worker.ID]*use // by IDs of sequence 0
	workers []workerChecks
	acked   map[holding]int64 // the confirmed, acknowledged lease bound
	ids     int
	ahead   int  // runs of IDs ahead of the wall clock
	rolled  int  // runs of IDs that count a rollback
	lossy   bool // the store has lost data
	// How far clocks have ever been off, ns.
	lowest, highest int64
}

// use is the set of sequence numbers that a worker has issued in one tick and segment. who is
// the first tenure that did so.
type use struct {
	sequences uint64
	who       *issued
}

// holding names a node and a worker that it holds.
type holding struct {
	node   string
	worker int
}

// workerChecks has the facts about a worker that the checks go by.
type workerChecks struct {
	tenures []*issued
	latest  *issued    // which issued the latest tick
	record  slotRecord // in the store, not known after a loss of data
	known   bool
	held    bool // by anybody, ever
}

// issued has the IDs of a tenure.
type issued struct {
	t        *tenure
	p        *process
	min, max worker.Tick
	last     [8]worker.ID // by the rollback field's value
	end      worker.Tick  // end of what it had reserved when it last issued
}

// slotRecord is a slot's record in the store, read without the code under test.
type slotRecord struct {
	node, nonce                  string
	term, leaseUntil             int64
	generation                   uint64
	confirmed, released, stopped bool
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

// check judges a run of IDs that a connection gets.
func (s *sim) check(p *process, c *conn, run worker.Run) {
	s.ids += run.Len
	f, err := s.layout.Decode(run.First)
	if err != nil || int(f.Worker) != c.t.Worker {
		s.violated(wrongTwice, "%s is given %d, which is not of worker %d: %v", p.name, run.First, c.t.Worker, err)
		return
	}
	last := run.At(run.Len - 1)
	w := &s.workers[c.t.Worker]
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
	if wall := p.Wall() / 1e6; start > wall+s.mayLead().Milliseconds() ||
		start+s.layout.Unit.Milliseconds() <= (s.now+p.lowest)/1e6 {
		s.violated(wrongClock,
			"%s issues for %d ms, where its clock reads %d and has never been off by less than %d ms", p.name, start,
			wall, p.lowest/1e6)
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
	// The key is the ID with sequence 0, wherever in an ID the sequence stands.
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
	// All IDs must be of one tick and worker, in ascending order, and none issued before.
	for i := range run.Len {
		id := run.At(i)
		l, err := s.layout.Decode(id)
		one := uint64(1) << l.Sequence
		same := l
		same.Sequence = f.Sequence
		switch {
		case err != nil || same != f || i > 0 && id <= run.At(i-1):
			s.violated(wrongTwice, "%s is given %d as one of %d IDs from %d on: it is not of their tick and worker, "+
				"or not above the one before: %v", mine.p.name, id, run.Len, run.First, err)
		case u.sequences&one != 0:
			s.violated(wrongTwice, "%s issues tick %d of worker %d, sequence %d, which %s has issued", mine.p.name,
				l.Tick, l.Worker, l.Sequence, u.who.p.name)
		}
		u.sequences |= one
	}
}

// checkOrder checks that IDs grow: on a connection and within a tenure, for each value of the rollback field, and over
// the tenures of a worker. For tenures of different nodes, that is checked only as far as their clocks agree.
func (s *sim) checkOrder(mine *issued, c *conn, run worker.Run, w *workerChecks, f worker.Fields) {
	tick := f.Tick
	if last, err := s.layout.Decode(c.last); err == nil && last.Worker == f.Worker && last.Rollback == f.Rollback &&
		run.First <= c.last {
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
			s.violated(wrongOrder, "%s issues tick %d of worker %d after %s tick %d", mine.p.name, tick, mine.t.Worker,
				before.p.name, before.max)
		}
	}
	if w.latest.max <= tick {
		w.latest = mine
	}
}

// checkBounds checks the issue rule for whole ticks: floor <= timestamp < min(reserved bound, lease bound). The
// reserved bound is the durable one, read from the disk. The lease bound is the one that the store has acknowledged.
func (s *sim) checkBounds(mine *issued, tick worker.Tick) {
	p, t := mine.p, mine.t
	start, end := s.layout.Start(tick), s.layout.Start(tick+1)
	h := s.acked[holding{t.Node, t.Worker}]
	if end > h {
		s.violated(wrongLease, "%s issues for %d to %d ms of worker %d, where %d is acknowledged", p.name, start, end,
			t.Worker, h)
	}
	mine.end = max(mine.end, tick+1)
	if d := p.durable; d.found && !d.released && d.node == t.Node && d.worker == t.Worker {
		if end > d.begin {
			s.violated(wrongDisk, "%s issues for %d to %d ms of worker %d, where a restart would begin at %d", p.name,
				start, end, t.Worker, d.begin)
		}
		if start < d.floor {
			s.violated(wrongFloor, "%s issues for %d ms of worker %d, where its floor is %d", p.name, start, t.Worker,
				d.floor)
		}
		// A bound that has reached the disk without an acknowledgement does not count.
		mine.end = max(mine.end, s.layout.FloorTick(min(d.reservedUntil, p.machine.saved.ReservedUntil, h)))
	}
}

// checkApart checks that the tenures of a worker do not overlap. A tenure must also begin above
// all that an earlier tenure had reserved, unless the end of the earlier one is known.
func (s *sim) checkApart(mine *issued, w *workerChecks, tick worker.Tick) {
	for _, r := range w.tenures {
		switch {
		case r == mine:
		case r.min <= mine.max && mine.min <= r.max:
			s.violated(wrongOverlap, "%s issued ticks %d to %d for worker %d, and %s %d to %d", mine.p.name, mine.min,
				mine.max, mine.t.Worker, r.p.name, r.min, r.max)
		case r.max < tick && tick < r.end && !r.closed():
			s.violated(wrongReserved, "%s issues tick %d for worker %d, of which %s had reserved all below %d",
				mine.p.name, tick, mine.t.Worker, r.p.name, r.end)
		}
	}
}

// closed reports whether the end of a tenure is known, because it was closed before its process
// was killed. It is also true if a loss of data has made the reservation void.
func (r *issued) closed() bool {
	return r.end == 0 || r.p.stopping || !r.p.killed && (r.p.dead || r.p.n.tenure != r.t)
}

// killed is called before a process is killed. The reservations of its tenures that are closed by then no longer count.
func (s *sim) killed(p *process) {
	for i := range s.workers {
		for _, r := range s.workers[i].tenures {
			if r.p == p && r.closed() {
				r.end = 0
			}
		}
	}
}

// forget is called when the store has lost data. Its records may be older now, and nothing is
// known any more of what dead processes had reserved.
func (s *sim) forget() {
	s.lossy, s.recent, s.keptBounds = true, nil, nil
	s.crowd()
	for i := range s.workers {
		w := &s.workers[i]
		w.known = false
		for _, r := range w.tenures {
			r.end = 0
		}
	}
}
