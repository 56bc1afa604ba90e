package node

import (
	"time"

	"github.com/flaked/flaked/internal/testkit/memzk"
)

// playRotation: a node takes a fresh worker after its clock went back. The release of the old
// worker may be late, or its answer may be lost. Another node may take the old worker.
func (s *sim) playRotation() bool {
	a := s.roomFor()
	if a == nil {
		return false
	}
	reached := false
	for range s.between(1, 3) {
		from := a.held()
		if s.chance(2) {
			fault := pick(s, memzk.FailBefore, memzk.FailAfter, memzk.FailLate)
			a.trap = &trap{on: releases(from), before: func() memzk.Fault {
				s.note("%s: the release of its old worker %s", a.name, faultText(fault))
				return fault
			}}
		}
		if !s.rotates(a) {
			break
		}
		reached = true
		if s.chance(3) {
			s.queue(s.other(a.machine), from, 2*time.Second)
		}
	}
	s.watch(s.confirm + 3*time.Second)
	return reached
}

// playBackAgain: a node takes a fresh worker, and does not learn for a while that its old
// worker was released. Meanwhile it takes the old worker again. The release that is still
// pending is of the earlier tenure, and must not apply to the new one.
func (s *sim) playBackAgain() bool {
	a := s.roomFor()
	if a == nil {
		return false
	}
	from, fault := a.held(), pick(s, memzk.FailAfter, memzk.FailAfter, memzk.FailLate)
	a.trap = &trap{on: releases(from), before: func() memzk.Fault {
		s.note("%s: the release of its old worker %s, and nothing is heard of it", a.name, faultText(fault))
		a.fails = func(c memzk.Call) bool { return c.Op == "sync" && c.Path == "/" }
		return fault
	}}
	for range 3 {
		if !s.rotates(a) || a.fails == nil {
			return false
		}
		s.deliver()
		a.session.Expire() // so that its live lock there goes
		if a.held() == from {
			break
		}
	}
	if a.held() != from || !s.serves(a, s.confirm+5*time.Second) {
		return false
	}
	s.burst(a)
	s.fine()
	a.fails = nil
	s.keep(a)
	b := s.other(a.machine)
	s.quietly(func() { s.queue(b, from, time.Second) })
	s.watch(s.confirm + 3*time.Second)
	return true
}

// roomFor returns a holder, after most others have released their workers, so that the holder
// can take fresh ones. It returns nil if there is no holder.
func (s *sim) roomFor() *process {
	a := s.holder()
	if a == nil {
		return nil
	}
	for _, m := range s.machines {
		if p := m.proc; p != nil && p != a && !s.chance(8) {
			p.n.cfg.ReleaseOnExit = true
			s.stop(p)
		}
	}
	return a
}

// rotates moves the clock of a holder ahead, lets it issue by that clock, and sets the clock
// back by more than a node waits for. It reports whether the holder took a fresh worker.
func (s *sim) rotates(a *process) bool {
	if a.dead || !s.serves(a, s.confirm+5*time.Second) {
		return false
	}
	from := a.held()
	ahead := max(2100*time.Millisecond, a.n.view.Load().Cluster.ConfirmTime()+100*time.Millisecond) + s.layout.Unit +
		s.upTo(500*time.Millisecond)
	if ahead > 4800*time.Millisecond { // its clock would be wrong by most voters
		return false
	}
	s.drift(a.machine, ahead)
	s.keep(a)
	s.extend(a)
	s.burst(a)
	s.step(a.machine, -ahead)
	for range 2 {
		if !a.dead {
			s.keep(a)
		}
	}
	return a.held() >= 0 && a.held() != from
}
