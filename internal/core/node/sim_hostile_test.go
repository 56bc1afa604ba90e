package node

import (
	"slices"
	"time"

	"github.com/flaked/flaked/coordinator"
)

// Events and scenarios about clocks and processes that are worse than usual when ZooKeeper loses data.

// stallsInside makes a process stand still inside a call, now and then, as SIGSTOP does. The others go on.
func (s *sim) stallsInside(p *process) {
	often := 200
	if s.calm {
		often = 1000
	}
	if s.depth > 0 || s.done() || p.dead || !s.chance(often) {
		return
	}
	d := s.upTo(pick(s, 3*s.heartbeat, 2*s.confirm, min(s.lease, time.Minute)))
	s.depth++
	if s.chance(3) {
		s.pause(p.machine, d, s.chance(2))
	} else {
		s.standStill(p.machine, d)
	}
	s.live(d, s.heartbeat/2)
	s.depth--
	s.stillThere(p)
}

// leaderLeaps moves the leader's clock by more than a lease, and returns a function that sets it right.
func (s *sim) leaderLeaps() (right func()) {
	was, by := s.Leads(), s.lease+s.upTo(s.lease)
	if s.chance(2) {
		by = -by
	}
	s.note("the leader's clock leaps by %s", by)
	s.Leap(by)
	return func() {
		s.note("the leader's clock is set right")
		s.Leap(was - s.Leads())
	}
}

// playLeaderLeap: the leader's clock leaps by more than a lease, forward or back. Before that ZooKeeper may have been
// restored to older data, with the holders back just in time. Or a holder is cut off, and others want its worker.
func (s *sim) playLeaderLeap() bool {
	s.mend()
	a := s.holder()
	if a == nil {
		return false
	}
	w := a.held()
	s.snapshot = s.Mem.Snapshot()
	s.live(s.upTo(10*time.Second), s.heartbeat)
	holders := s.holders()
	if len(holders) == 0 || s.snapshot == nil {
		return false
	}
	if s.chance(2) {
		first := s.chance(2)
		if first {
			defer s.leaderLeaps()()
		}
		s.restoreSnapshot()
		s.forget()
		if !first {
			defer s.leaderLeaps()()
		}
		return s.comeBack(holders)
	}
	right := s.leaderLeaps()
	if !a.dead && s.chance(2) {
		s.cutOff(a)
		a.session.Expire()
	}
	s.watch(s.upTo(4 * s.heartbeat))
	s.queue(s.other(a.machine), w, s.confirm+3*time.Second)
	s.watch(s.upTo(s.confirm))
	right()
	s.queue(s.other(a.machine), w, s.confirm+3*time.Second)
	s.mend()
	s.watch(s.confirm + 3*time.Second)
	return true
}

// playAhead: a holder whose clock is far ahead raises the horizon, and is cut off. ZooKeeper loses its data, perhaps
// the raise alone. Another holder notices. New nodes come when the freeze is over.
func (s *sim) playAhead() bool {
	s.mend()
	a := s.holder()
	if a == nil {
		return false
	}
	b, w := s.witness(a.machine), a.held()
	if b == nil {
		return false
	}
	s.keep(b)
	copied := s.Mem.Snapshot()
	if s.chance(3) { // then it knows of no raise
		s.cutOff(b)
	}
	// The freeze is longer than a lease by the margin, and the clock does not end the lease at once.
	frozen := coordinator.Cluster{LeaseMs: s.lease.Milliseconds(), ConfirmMs: s.confirm.Milliseconds()}.Freeze(0)
	margin := time.Duration(frozen.FrozenUntil)*time.Millisecond - s.lease
	s.drift(a.machine, min(s.lease*3/4, pick(s, 4*time.Second, margin+s.upTo(10*time.Second),
		margin+s.upTo(time.Minute))))
	for range s.between(1, 6) {
		if s.chance(2) {
			copied = s.Mem.Snapshot()
		}
		s.keep(a)
		s.extend(a)
		s.live(s.upTo(s.heartbeat), s.heartbeat/2)
	}
	s.cutOff(a)
	a.session.Expire()
	s.watch(s.upTo(pick(s, s.heartbeat, 2*s.confirm)))
	if s.chance(2) { // the other one has not heard of the raise for long
		s.cutOff(b)
	}
	before := s.incarnation()
	s.lose(copied)
	s.comesBack(b)
	if s.incarnation() <= before || b.dead {
		s.note("nobody has noticed")
		s.over = true
		return false
	}
	left := time.Duration(s.cluster().FrozenUntil*1e6 - s.now)
	if left > 15*time.Minute {
		return false
	}
	s.burst(a)
	s.live(left, max(left/30, s.heartbeat/4))
	c := s.queue(s.other(a.machine, b.machine), w, 15*time.Second)
	for end := s.now + int64(s.confirm+4*time.Second); s.now < end && !s.done(); s.fine() {
		s.burst(a)
	}
	return c != nil
}

// playAllKilled: all nodes are killed, and older data is put back. They start with their directories before a new node
// can confirm: within two heartbeats or later, after a power cut or without one.
func (s *sim) playAllKilled() bool {
	s.mend()
	var a *process
	if s.chance(2) {
		a, _ = s.taken()
	} else if a = s.holder(); a != nil {
		s.snapshot = s.Mem.Snapshot()
		s.live(s.upTo(pick(s, s.heartbeat, 15*time.Second)), s.heartbeat/2)
	}
	if a == nil || a.dead || a.held() < 0 || s.snapshot == nil {
		return false
	}
	w := a.held()
	var on []*machine
	for _, p := range s.holders() {
		on = append(on, p.machine)
	}
	for _, m := range s.machines {
		switch {
		case !slices.Contains(on, m):
			s.clear(m)
		case m.proc != nil:
			s.kill(m.proc, s.chance(3))
		}
	}
	if len(on) == 0 {
		return false
	}
	s.now += int64(s.upTo(pick(s, s.heartbeat, 2*s.heartbeat, s.confirm)))
	s.restoreSnapshot()
	s.forget()
	before := s.incarnation()
	s.deadline = s.now + int64(s.confirm) - int64(s.upTo(s.confirm*3/4)) - 20e6
	s.quietly(func() {
		if len(on) < len(s.machines) && s.chance(2) {
			s.aim(w)
			if p := s.start(s.other(on...)); p != nil {
				s.keep(p)
			}
		}
	})
	for s.now < s.deadline && !s.done() {
		s.fine()
	}
	s.deadline = 0
	for _, m := range on {
		s.quietly(func() {
			if p := s.restart(m, false); p != nil {
				for range 3 {
					if !p.dead {
						s.keep(p)
					}
				}
			}
		})
	}
	for _, m := range on {
		refused := m.proc == nil && s.incarnation() <= before // for its settings, before it has asked ZooKeeper
		if p := m.proc; refused || p != nil && p.acquiring {
			s.over = true // it has not come back in time
			return false
		}
	}
	s.watch(s.confirm + 4*time.Second)
	return true
}
