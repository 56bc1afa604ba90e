package node

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/localcache"
)

// Scenarios that were found by attacking the shipped binary on a real ZooKeeper.

// lose makes ZooKeeper lose its data: it is wiped, or restored to the older copy given. lose
// reports whether ZooKeeper was wiped.
func (s *sim) lose(copied *memzk.Snapshot) (wiped bool) {
	wiped = copied == nil || s.chance(3)
	if !wiped {
		s.snapshot = copied
		s.restoreSnapshot()
	} else {
		s.note("ZooKeeper is wiped")
		s.Mem.Wipe()
		if s.epoch > 0 && s.chance(2) {
			s.elect()
		}
	}
	s.forget()
	return wiped
}

// incarnation returns the incarnation in the cluster record, which is higher each time that an
// holder has noticed a loss. It returns 0 if there is no record.
func (s *sim) incarnation() int64 { return s.cluster().Incarnation }

// cluster returns the cluster's record, empty if there is none.
func (s *sim) cluster() coordinator.Cluster {
	cl, _ := coordinator.ReadCluster(context.Background(), s.admin)
	return cl
}

// playNoticed: ZooKeeper loses its data while holders are connected. The holders come back by themselves: their next
// heartbeat is due, and their clients have given up the silent server and found another. Each of these takes at most as
// long as the holder has asked of its client. Newcomers take at once what looks free.
func (s *sim) playNoticed() bool {
	s.mend()
	if s.holder() == nil {
		return false
	}
	copied := s.Mem.Snapshot()
	s.live(s.upTo(20*time.Second), s.heartbeat)
	holders := s.holders()
	var on, newcomers []*machine
	for _, p := range holders {
		on = append(on, p.machine)
	}
	for _, m := range s.machines {
		if !slices.Contains(on, m) {
			s.clear(m)
			newcomers = append(newcomers, m)
		}
	}
	if len(holders) == 0 || len(newcomers) == 0 {
		return false
	}
	w := holders[0].held()
	s.lose(copied)
	back := make(map[*process]int64)
	for _, p := range holders {
		n := p.session.Notice()
		late := n.Heartbeat + n.Answer + n.Redial
		if n == (limits.Notice{}) { // Hurry was not called
			late = 30 * time.Second
		}
		if !s.chance(3) {
			late = s.upTo(late)
		}
		back[p], p.slow = s.now+int64(late), n.Call
		s.cutOff(p)
		p.session.Expire()
	}
	slices.SortFunc(holders, func(a, b *process) int { return cmp.Compare(back[a], back[b]) })
	s.deadline = max(s.now, back[holders[0]])
	for _, m := range newcomers {
		s.aim(w)
		if p := s.start(m); p != nil {
			s.keep(p)
		}
	}
	before := s.incarnation()
	for _, p := range holders {
		// No other event may delay the holder's return.
		for s.deadline = max(s.now, back[p]); s.now < s.deadline && !s.done(); s.fine() {
			for _, p := range holders {
				s.burst(p)
				s.over = s.over || p.dead && s.incarnation() <= before // before it could notice
			}
		}
		s.deadline = 0
		s.comesBack(p)
		s.over = s.over || p.dead && s.incarnation() <= before
	}
	s.watch(s.confirm + 4*time.Second)
	return true
}

// comesBack lets a holder reach ZooKeeper and report. No other event happens meanwhile, but the
// holder's calls take time.
func (s *sim) comesBack(p *process) {
	p.machine.wake() // a process that stands still cannot notice
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

// knows reports whether a machine's state directory names the cluster uuid.
func (m *machine) knows(uuid string) bool {
	cache, err := localcache.New(m.Disk.Clone(), m.Print)
	return err == nil && text(cache.Load().Record.Payload, "uuid") == uuid
}

// playGrowth: a holder is cut off, or stopped, while the cluster grows beyond the workers that
// the holder knows. The holder of a new worker is cut off too when ZooKeeper loses its data, so
// the first holder is the only one to notice. A new node then tries the new worker.
func (s *sim) playGrowth() bool {
	a := s.holder()
	if a == nil || s.crowded {
		return false
	}
	cl, first := a.n.keeper.coord.View().Cluster, a.machine
	known, uuid := cl.HighestSlot, cl.UUID
	if known+1 >= s.layout.Workers() {
		return false
	}
	copied := s.Mem.Snapshot()
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
	if b == nil || !s.serves(b, s.confirm+5*time.Second) || !b.n.view.Load().Claim.EverConfirmed {
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
			must = wiped && s.now >= first.paused && a.n.view.Load().Claim.EverConfirmed && a.n.now() < a.n.view.Load().Claim.LeaseUntil
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
		s.over = true // nobody could notice: the promise ends here
		return false
	}
	c := s.other(first, b.machine)
	s.aim(w)
	if p := s.start(c); p != nil {
		s.keep(p)
	}
	for end := s.now + int64(s.confirm+4*time.Second); s.now < end && !s.done(); s.fine() {
		s.burst(b)
	}
	if !b.dead && s.chance(2) {
		s.heal(b)
	}
	s.watch(s.confirm + 4*time.Second)
	return true
}

// playThawedTooEarly: an operator ends a freeze although the holder of a worker has only stopped. A new node confirms
// that worker. The promise for IDs is broken then. Still the holder must not overwrite the record that the new node has
// confirmed: the holder's own term is of an earlier incarnation.
func (s *sim) playThawedTooEarly() bool {
	s.mend()
	b := s.holder()
	if b == nil {
		return false
	}
	w, m := b.held(), b.machine
	for range s.between(0, 3) { // each makes its term higher
		s.kill(b, false)
		b.session.Expire()
		if b = s.restart(m, false); b == nil || !s.serves(b, 15*time.Second) || b.held() != w {
			return false
		}
	}
	a := s.witness(m)
	if a == nil || b.dead || b.held() != w || !b.n.view.Load().Claim.EverConfirmed {
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
	freed, err := s.thaw()
	s.note("by hand: thaw, too early: %d freed, %v", freed, err)
	s.forgiven = true // all but the records
	defer func() { s.over = true }()
	s.quietly(func() {
		c := s.queue(s.other(m, a.machine), w, 3*time.Second)
		if c == nil || !s.serves(c, s.confirm+5*time.Second) {
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

// witness returns a holder on another machine than this one, nil if there is none.
func (s *sim) witness(than *machine) *process {
	for _, p := range s.holders() {
		if p.machine != than {
			return p
		}
	}
	return nil
}
