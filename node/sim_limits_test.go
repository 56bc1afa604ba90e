package node

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/limits"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/zkstore"
)

// Stories that were found by attacking the shipped program on a real ZooKeeper.

// lose has ZooKeeper lose its data: wiped, or put back to an older copy.
func (s *sim) lose(copied *zkstore.MemSnapshot) (wiped bool) {
	wiped = copied == nil || s.chance(3)
	if !wiped {
		s.snapshot = copied
		s.restoreSnapshot()
	} else {
		s.note("ZooKeeper is wiped")
		s.mem.Wipe()
		if s.epoch > 0 && s.chance(2) {
			s.elect()
		}
	}
	s.forget()
	return wiped
}

// incarnation is how often an owner has noticed a loss, as the cluster's record says.
func (s *sim) incarnation() int64 {
	cl, err := coordinator.ReadCluster(context.Background(), s.admin)
	if err != nil {
		return 0
	}
	return cl.Incarnation
}

// tellNoticed: ZooKeeper loses its data while owners are connected. They come back by
// themselves: when their next heartbeat is due, the silent server has been given up
// and another one found, each as late as they have asked of their client. Newcomers
// take what looks free at once.
func (s *sim) tellNoticed() bool {
	s.mend()
	if s.owner() == nil {
		return false
	}
	copied := s.mem.Snapshot()
	s.live(s.upTo(20*time.Second), s.heartbeat)
	owners := s.owners()
	var on, newcomers []*machine
	for _, p := range owners {
		on = append(on, p.machine)
	}
	for _, m := range s.machines {
		if !slices.Contains(on, m) && (m.twin == nil || !slices.Contains(on, m.twin)) {
			s.clear(m)
			newcomers = append(newcomers, m)
		}
	}
	if len(owners) == 0 || len(newcomers) == 0 {
		return false
	}
	w := owners[0].held()
	s.lose(copied)
	back := make(map[*process]int64)
	for _, p := range owners {
		n := p.session.Notice()
		late := n.Heartbeat + n.Answer + n.Redial
		if n == (limits.Notice{}) { // it has not said how soon
			late = 30 * time.Second
		}
		if !s.chance(3) {
			late = s.upTo(late)
		}
		back[p], p.slow = s.now+int64(late), n.Call
		s.cutOff(p)
		p.session.Expire()
	}
	for _, m := range newcomers {
		s.aim(w)
		if p := s.start(m); p != nil {
			s.keep(p)
		}
	}
	slices.SortFunc(owners, func(a, b *process) int { return cmp.Compare(back[a], back[b]) })
	before := s.incarnation()
	for _, p := range owners {
		// Nothing that comes in between may make it later.
		for s.deadline = max(s.now, back[p]); s.now < s.deadline && !s.done(); s.fine() {
			for _, p := range owners {
				s.burst(p)
				s.over = s.over || p.dead && s.incarnation() <= before // before it could notice
			}
		}
		s.deadline = 0
		s.comesBack(p)
		s.over = s.over || p.dead && s.incarnation() <= before
	}
	s.watch(s.settle + 4*time.Second)
	return true
}

// comesBack has an owner reach ZooKeeper and report, with nothing in between but
// the time that its calls take.
func (s *sim) comesBack(p *process) {
	for _, m := range p.machine.both() {
		m.wake() // who stands still cannot notice: that is a limit
	}
	if !p.dead {
		s.heal(p)
	}
	s.quietly(func() {
		for range 3 {
			if !p.dead {
				s.keep(p)
			}
		}
	})
	p.slow = 0
}

// knows tells whether a machine's state directory names a cluster.
func (m *machine) knows(uuid string) bool {
	cache, err := localcache.New(m.disk.Clone(), m.print)
	return err == nil && text(cache.Load().Record.Payload, "uuid") == uuid
}

// tellGrowth: an owner is cut off, or stopped, while the cluster grows beyond what
// it knows; the one who has the highest worker is cut off or stopped as well when
// ZooKeeper loses its data, and the first is the only one to notice. Newcomers look
// at the worker that it does not know of.
func (s *sim) tellGrowth() bool {
	a := s.owner()
	if a == nil || a.twin != nil || s.crowded {
		return false
	}
	known, first, uuid := a.n.coord.Used(), a.machine, a.n.cluster.UUID
	if known+1 >= s.layout.Workers() {
		return false
	}
	copied := s.mem.Snapshot()
	stopped, stops := s.chance(2), s.chance(2)
	if stopped {
		at := a.held()
		a.n.cfg.ReleaseOnExit = false
		if s.stop(a); s.chance(2) {
			s.wait(at, 0) // it has no lease then: it puts the cluster back, and waits
		}
	} else {
		s.cutOff(a)
		a.session.Expire()
	}
	w := s.between(known+1, s.layout.Workers()-1)
	b := s.queue(s.other(first), w, 20*time.Second)
	if b == nil || !s.serves(b, s.settle+5*time.Second) || !b.n.claim.Settled {
		return false
	}
	s.cutOff(b)
	b.session.Expire()
	before := s.incarnation()
	wiped, must := s.lose(copied), false
	s.quietly(func() {
		knows := first.knows(uuid) // it may have lost its disk
		if stopped {
			a = s.restart(first, false)
		}
		if a == nil || a.dead {
			return
		}
		s.heal(a)
		if !stopped && stops { // before its next heartbeat
			must = wiped && s.now >= first.paused && a.n.claim.Settled && a.n.now() < a.n.claim.H
			s.stop(a)
			return
		}
		for range 3 {
			if !a.dead {
				s.keep(a)
			}
		}
		must = wiped && s.bootstrap && stopped && knows && !a.dead
	})
	if s.incarnation() <= before && !must {
		s.over = true // nobody could notice: this is where the promise ends
		return false
	}
	c := s.other(first, b.machine)
	s.aim(w)
	if p := s.start(c); p != nil {
		s.keep(p)
	}
	for end := s.now + int64(s.settle+4*time.Second); s.now < end && !s.done(); s.fine() {
		s.burst(b)
	}
	if !b.dead && s.chance(2) {
		s.heal(b)
	}
	s.watch(s.settle + 4*time.Second)
	return true
}

// tellThawedTooEarly: an operator ends a freeze though the owner of a worker has only
// stopped. A newcomer settles on it. No promise is left for IDs, but the owner may not
// overwrite what the newcomer has settled on, as its term is of an earlier incarnation.
func (s *sim) tellThawedTooEarly() bool {
	s.mend()
	b := s.owner()
	if b == nil || b.twin != nil {
		return false
	}
	w, m := b.held(), b.machine
	for range s.between(0, 3) { // which makes its term higher
		s.kill(b, false)
		b.session.Expire()
		if b = s.restart(m, false); b == nil || !s.serves(b, 15*time.Second) || b.held() != w {
			return false
		}
	}
	a := s.witness(m)
	if a == nil || b.dead || b.held() != w || !b.n.claim.Settled {
		return false
	}
	b.n.cfg.ReleaseOnExit = false
	s.quietly(func() { s.stop(b) })
	if !b.dead {
		return false
	}
	before := s.incarnation()
	s.lose(nil)
	s.quietly(func() {
		for range 3 {
			if !a.dead {
				s.keep(a)
			}
		}
	})
	if s.incarnation() <= before {
		s.over = true
		return false
	}
	freed, err := s.thaw("")
	s.note("by hand: thaw, too early: %d freed, %v", freed, err)
	s.forgiven = true // all but the records
	defer func() { s.over = true }()
	s.quietly(func() {
		c := s.queue(s.other(m, a.machine), w, 3*time.Second)
		if c == nil || !s.serves(c, s.settle+5*time.Second) {
			return
		}
		if p := s.restart(m, false); p != nil {
			for range 5 {
				if !p.dead {
					s.keep(p)
					s.now += int64(s.heartbeat)
				}
			}
		}
	})
	return true
}

// witness is an owner on another machine than this one.
func (s *sim) witness(than *machine) *process {
	for _, p := range s.owners() {
		if p.machine != than && p.machine.twin != than {
			return p
		}
	}
	return nil
}

// tellElsewhere: a node is started with its state, but in another ZooKeeper, which is
// empty or has another cluster. Its worker is taken over in the first one.
func (s *sim) tellElsewhere() bool {
	a := s.owner()
	if a == nil || a.twin != nil {
		return false
	}
	w, m := a.held(), a.machine
	s.elsewhere.Wipe()
	if s.chance(2) {
		settings := s.settings()
		other, err := settings.Record("another", s.heartbeat)
		if err == nil {
			_, err = coordinator.CreateCluster(context.Background(), s.elsewhere.Session(), other)
		}
		if err != nil {
			s.violated(wrongSim, "%v", err)
		}
	}
	a.n.cfg.ReleaseOnExit = false // it would be a new node
	if s.chance(2) {
		s.stop(a)
	}
	if !a.dead {
		s.kill(a, s.chance(2))
	}
	a.session.Expire()
	if cache, err := localcache.New(m.disk.Clone(), m.print); err != nil || cache.Load().Status != localcache.StatusRecord {
		return false // its state is damaged, so that it is a new node, which may be one there
	}
	p := s.startIn(m, s.elsewhere)
	if p == nil {
		return false
	}
	if s.chance(2) {
		s.cutOff(p) // there is nobody to say that it is wrong
	}
	if !s.wait(w, time.Second) {
		return false
	}
	s.queue(s.other(m), w, 10*time.Second)
	if !p.dead {
		s.heal(p)
	}
	s.watch(s.settle + 4*time.Second)
	if m.proc != nil && m.proc == p {
		s.kill(p, false) // the rest of the history is about the first one
		s.newDisk(m)
	}
	return true
}

// tellReleasedCopy: a copy of the state file is made; its node stops and gives its
// worker back, and another takes it; then the copy is written back in place, and the
// node starts while it cannot reach ZooKeeper.
func (s *sim) tellReleasedCopy() bool {
	a := s.owner()
	if a == nil || a.twin != nil {
		return false
	}
	w, m := a.held(), a.machine
	old := m.disk.Clone()
	a.n.cfg.ReleaseOnExit = true
	s.stop(a)
	if !a.dead || !s.workers[w].record.released {
		return false
	}
	removed := m.disk.Removed()
	b := s.queue(s.other(m), w, 5*time.Second)
	if b == nil || !s.serves(b, s.settle+6*time.Second) {
		return false
	}
	s.note("%s: a copy of its state file is written back, the file was deleted %t", m.name, removed)
	print := m.print
	if removed {
		print = s.newInode() // nothing is there to be written into
	}
	s.giveDisk(m, old, print)
	s.restart(m, true)
	s.watch(4 * time.Second)
	if m.proc != nil {
		s.heal(m.proc)
	}
	s.watch(s.settle + 3*time.Second)
	return true
}

// tellPoisoned: a node restarts from its directory, without ZooKeeper and by a clock
// that is ahead, issues and is killed. The clock is set right. An operator resets the
// node's identity and frees its worker, and somebody takes that.
func (s *sim) tellPoisoned() bool {
	a := s.owner()
	if a == nil || a.twin != nil {
		return false
	}
	w, m := a.held(), a.machine
	s.kill(a, false)
	a.session.Expire()
	left := time.Duration(a.n.claim.H-s.now/1e6) * time.Millisecond
	if left < 25*time.Second {
		return false
	}
	s.step(m, left/2+s.upTo(left/4))
	if a = s.restart(m, true); a == nil {
		return false
	}
	s.quietly(func() { s.keep(a) })
	if !s.serves(a, 5*time.Second) {
		return false
	}
	s.extend(a)
	s.burst(a)
	if !a.dead {
		s.kill(a, s.chance(3))
	}
	s.step(m, -time.Duration(m.skew))
	if !s.resetAndLower(m) || !s.wait(w, time.Second) {
		return false
	}
	got := s.queue(s.other(m), w, 10*time.Second)
	s.watch(s.settle + 5*time.Second)
	return got != nil
}
