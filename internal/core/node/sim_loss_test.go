package node

import (
	"context"
	"slices"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
)

// Scenarios about a ZooKeeper that loses data. If no holder notices a loss, the promise does not hold. So in these
// scenarios a confirmed holder whose lease runs reaches ZooKeeper before any new node confirms, or no holder is left.

// playLoss: ZooKeeper is wiped, is restored to old data, or loses the cluster record. Newcomers take what looks free,
// and the holders come back just in time, as the confirming time allows. Holders and new nodes may restart meanwhile.
func (s *sim) playLoss() bool {
	s.mend()
	if s.holder() == nil {
		return false
	}
	if s.snapshot == nil {
		s.snapshot = s.Mem.Snapshot()
		s.live(s.upTo(10*time.Second), s.heartbeat)
	}
	witnesses := s.holders()
	if len(witnesses) == 0 || s.snapshot == nil {
		return false
	}
	switch s.rng.IntN(5) {
	case 0, 1:
		s.note("ZooKeeper is wiped")
		s.Mem.Wipe()
		if s.epoch > 0 && s.chance(2) {
			s.elect()
		}
	case 2, 3:
		s.restoreSnapshot()
	case 4:
		s.note("the cluster's record is lost")
		_ = s.admin.Delete(context.Background(), "/cluster", store.AnyVersion)
	}
	s.forget()
	s.keepBounds(witnesses)
	return s.comeBack(witnesses)
}

// keepBounds records, just after a loss of data, the lease bound that ZooKeeper has kept for each
// process that has lost a later one: 0 if the record of its worker is missing or another node's.
func (s *sim) keepBounds(of []*process) {
	s.keptBounds = map[string]int64{}
	for _, p := range of {
		claim, kept := p.n.view.Load().Claim, int64(0)
		data, _, err := s.admin.Get(context.Background(), slotPath(p.held()))
		if err == nil && text(data, "node") == claim.Node {
			kept = number(data, "lease_until")
		}
		if beyond(claim, kept) {
			s.keptBounds[claim.Node] = kept
		}
	}
}

// beyond reports whether the lease of a claim reaches well beyond a bound.
func beyond(claim coordinator.Claim, bound int64) bool { return claim.LeaseUntil > bound+8000 }

// mustNotice reports whether a process that reports now must notice the last loss of data. Its
// node has lost a record, its lease runs, and it still knows of a later bound than ZooKeeper: a
// restarted process knows only the bound on its disk.
func (s *sim) mustNotice(p *process) bool {
	claim := p.n.view.Load().Claim
	kept, lost := s.keptBounds[claim.Node]
	return lost && beyond(claim, kept) && claim.EverConfirmed && claim.LeaseUntil > max(p.n.now(), s.now/1e6)+6000 &&
		!p.acquiring
}

func (s *sim) restoreSnapshot() {
	switch place, elects := s.chance(3), !s.chance(3); {
	case place:
		s.note("ZooKeeper gets its old data back while it runs")
		s.Mem.RestoreRunning(s.snapshot)
	default:
		s.note("ZooKeeper gets its old data back, a leader is elected %t", elects)
		s.Mem.Restore(s.snapshot)
		if s.epoch > 0 && elects {
			s.elect()
		}
	}
	s.snapshot = nil
	if s.chance(2) {
		s.Mem.ExpireOrphans()
	}
}

// comeBack lets new nodes try to take the holders' workers. Just before a new node can confirm,
// all holders come back, or only one does and the others stay cut off for longer.
func (s *sim) comeBack(witnesses []*process) bool {
	before := s.incarnation()
	// They come back well before a new node can confirm, or at the last moment.
	s.deadline = s.now + int64(s.confirm) - int64(s.upTo(s.confirm*3/4)) - 20e6
	var on []*machine
	for _, p := range witnesses {
		s.cutOff(p)
		on = append(on, p.machine)
	}
	var newcomers []*machine
	for _, m := range s.machines {
		if !slices.Contains(on, m) && (len(newcomers) == 0 || !s.chance(4)) {
			s.clear(m)
			newcomers = append(newcomers, m)
		}
	}
	if len(newcomers) == 0 { // all are holders: one of them makes room
		last := len(on) - 1
		s.clear(on[last])
		on, newcomers = on[:last], []*machine{on[last]}
	}
	w := witnesses[0].held()
	for _, m := range newcomers {
		s.aim(w)
		if p := s.start(m); p != nil {
			s.keep(p)
		}
	}
	for s.now < s.deadline && !s.done() {
		d := time.Millisecond + s.upTo(300*time.Millisecond)
		s.live(d, d)
		if m := s.any(); s.chance(4) && slices.Contains(newcomers, m) { // starts again
			if p := m.proc; p != nil {
				s.kill(p, false)
				p.session.Expire()
			}
			if p := s.start(m); p != nil {
				s.keep(p)
			}
		}
		if m := pick(s, on...); s.chance(20) && m.proc != nil && len(on) > 0 { // a holder does
			s.kill(m.proc, s.chance(3))
			s.restart(m, true)
		}
	}
	away := s.noticed(on, before)
	s.deadline = 0
	for _, p := range away {
		s.queue(pick(s, newcomers...), p.held(), s.confirm+3*time.Second)
	}
	s.mend()
	s.watch(s.confirm + 4*time.Second)
	return true
}

// noticed lets the holders on these machines report, with no other event in between: all of
// them, or only until one has noticed the loss. away are the holders that did not report. If
// none has noticed, so that the incarnation is still the one before, the history is over.
func (s *sim) noticed(on []*machine, before int64) (away []*process) {
	some, noticed := s.chance(2), false
	for _, i := range s.rng.Perm(len(on)) {
		p := on[i].proc
		if noticed && some {
			if p != nil && p.held() >= 0 {
				away = append(away, p)
			}
			continue
		}
		if p == nil || p.saving || p.keeping || p.extending || s.now < p.paused {
			continue
		}
		s.heal(p)
		must := s.mustNotice(p)
		s.quietly(func() {
			for range 3 { // a holder that has just started needs several
				if !p.dead {
					s.keep(p)
				}
			}
		})
		frozen := s.incarnation() > before
		if must && !frozen && !s.cluster().Frozen(s.now/1e6) {
			s.violated(wrongUnnoticed, "%s has reported, and registration is not frozen", p.name)
		}
		noticed = noticed || frozen
	}
	if !noticed {
		s.note("nobody has noticed: this is where the promise ends")
		s.over = true
	}
	return away
}

// playEqualTerm: ZooKeeper is restored to data from before a holder took its worker. A new node
// takes the worker with the same term, and has not confirmed when the holder is back.
func (s *sim) playEqualTerm() bool {
	s.mend()
	a, w := s.taken()
	if a == nil {
		return false
	}
	s.restoreSnapshot()
	s.forget()
	s.keepBounds([]*process{a})
	return s.comeBack(append([]*process{a}, slices.DeleteFunc(s.holders(),
		func(p *process) bool { return p == a || p.held() == w })...))
}

// taken makes a holder release its worker, copies ZooKeeper's data, and makes another node take
// the worker and confirm. It returns that node's process and the worker, or nil.
func (s *sim) taken() (*process, int) {
	a := s.holder()
	if a == nil {
		return nil, 0
	}
	w, m := a.held(), a.machine
	a.n.cfg.ReleaseOnExit = true
	s.stop(a)
	given := s.workers[w].record
	if !given.released {
		return nil, 0
	}
	s.snapshot = s.Mem.Snapshot()
	s.newDisk(m)
	b := s.queue(m, w, 5*time.Second)
	if b == nil || !s.serves(b, s.confirm+6*time.Second) {
		return nil, 0
	}
	s.watch(s.upTo(2 * time.Second))
	// With another holder in between, a new node's term after the loss would be lower than this node's. A record of a
	// lower term counts as an older copy, and the promise does not hold if nobody notices the loss.
	if b.dead || b.held() != w || b.n.view.Load().Claim.Term != given.term+1 || b.n.serving.Load() == nil ||
		!b.n.view.Load().Claim.EverConfirmed || b.cut || s.snapshot == nil {
		return nil, 0
	}
	return b, w
}

// playAllGone: no process runs when ZooKeeper is restored to old data. A new node confirms a worker before the worker's
// holder restarts, whose lease still runs. The holder must notice that it has lost the worker.
func (s *sim) playAllGone() bool {
	s.mend()
	b, w := s.taken()
	if b == nil {
		return false
	}
	// Clocks must agree: a new node cannot know otherwise how far IDs went.
	ahead := func() time.Duration {
		if s.workers[w].latest == nil {
			return 0
		}
		return time.Duration(s.layout.Start(s.workers[w].latest.max+1))*time.Millisecond - time.Duration(s.now)
	}
	s.live(min(ahead(), 10*time.Second), s.heartbeat)
	if b.dead || b.held() != w || ahead() > s.layout.Unit+500*time.Millisecond {
		return false
	}
	s.kill(b, s.chance(3))
	b.session.Expire()
	m := b.machine
	for _, other := range s.machines {
		if other != m {
			s.clear(other) // the others' leases are lost as well, and nobody comes back for them
		}
	}
	s.mend()
	s.now += int64(2 * time.Second)
	before := s.incarnation()
	s.restoreSnapshot()
	s.forget()
	s.Mem.ExpireOrphans()
	if s.incarnation() < before {
		s.over = true // no record of an earlier incarnation fences the holder
		return false
	}
	var c *process
	s.quietly(func() { c = s.queue(s.other(m), w, 5*time.Second) })
	if c == nil || !s.serves(c, s.confirm+5*time.Second) {
		s.over = true // the holder is still to come
		return false
	}
	s.backToStore(m)
	s.watch(s.confirm + 5*time.Second)
	return true
}

// backToStore starts a node on a machine. Its local record must not be used, and only ZooKeeper
// can tell the node so. If the node does not reach ZooKeeper, the history is over.
func (s *sim) backToStore(m *machine) {
	node := m.durable.node
	s.quietly(func() {
		if p := s.restart(m, false); p != nil {
			s.keep(p)
		}
	})
	if p := m.proc; (p == nil || p.acquiring) && m.durable.node == node && !m.durable.released {
		s.over = true
	}
}
