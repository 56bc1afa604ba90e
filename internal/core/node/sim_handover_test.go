package node

import (
	"bytes"
	"slices"
	"time"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

// Scenarios about a worker that passes to another node.

// playBound: a holder is cut off, perhaps with its last heartbeat on the way. It issues up to its lease bound, by a
// clock that may be off. Other nodes wait for its worker, and take it as soon as they may.
func (s *sim) playBound() bool {
	a := s.holder()
	if a == nil {
		return false
	}
	w, b := a.held(), s.other(a.machine)
	if s.chance(2) {
		fault := pick(s, memzk.FailBefore, memzk.FailAfter, memzk.FailLate)
		a.trap = &trap{on: writes(w), before: func() memzk.Fault {
			s.note("%s: a heartbeat %s", a.name, faultText(fault))
			return fault
		}}
		s.live(s.upTo(s.heartbeat), s.heartbeat/2)
		s.keep(a)
	}
	s.cutOff(a)
	a.session.Expire()
	switch s.rng.IntN(4) {
	case 0:
		s.step(a.machine, -s.upTo(10*time.Second))
	case 1:
		s.drift(a.machine, s.upTo(10*time.Second))
	case 2:
		s.standStill(a.machine, s.upTo(2*s.lease))
	}
	if !s.wait(w, 2*time.Second) {
		return false
	}
	got := s.queue(b, w, 15*time.Second)
	s.watch(8 * time.Second)
	if !a.dead && s.chance(2) {
		s.heal(a)
	}
	s.watch(s.confirm + 4*time.Second)
	return got != nil
}

// playLateWrite: a process has read a record and stands still before it writes the record. It is at a heartbeat, at its
// start, or takes the worker as a new node. Another node takes the worker meanwhile. Then the late write goes out.
func (s *sim) playLateWrite() bool {
	a := s.holder()
	if a == nil {
		return false
	}
	w, m, reached := a.held(), a.machine, false
	b := s.other(m)
	switch s.rng.IntN(4) {
	case 0: // at its start
		s.kill(a, s.chance(3))
		if a = s.start(m); a == nil {
			return false
		}
	case 1: // as a new node
		s.clear(m)
		s.wait(w, 0)
		s.aim(w)
		if a = s.start(m); a == nil {
			return false
		}
	}
	a.trap = &trap{on: writes(w), before: func() memzk.Fault {
		s.standStill(m, time.Hour)
		a.session.Expire()
		if s.wait(w, time.Second) {
			reached = s.takes(b, w)
		}
		s.note("%s: goes on", a.name)
		m.wake()
		return memzk.NoFault
	}}
	s.keep(a)
	if a.trap = nil; !a.dead {
		s.keep(a)
	}
	s.watch(s.confirm + 4*time.Second)
	return reached
}

// takes makes a node on machine m take worker w and serve, and perhaps cuts it off then. It
// reports whether the node has served.
func (s *sim) takes(m *machine, w int) bool {
	p := s.queue(m, w, 12*time.Second)
	if p == nil || !s.serves(p, s.confirm+5*time.Second) {
		return false
	}
	s.watch(s.upTo(2 * time.Second))
	if !p.dead && s.chance(2) {
		s.cutOff(p)
		p.session.Expire()
	}
	return true
}

// playLateRelease: a process that stops stands still before it writes its record as released or
// stopped. Another node takes the worker meanwhile. Then the late write goes out.
func (s *sim) playLateRelease() bool {
	a := s.holder()
	if a == nil {
		return false
	}
	w, b, reached := a.held(), s.other(a.machine), false
	c := s.other(a.machine, b)
	a.n.cfg.ReleaseOnExit = !s.chance(4)
	a.trap = &trap{on: writes(w), before: func() memzk.Fault {
		s.standStill(a.machine, time.Hour)
		a.session.Expire()
		if s.wait(w, time.Second) {
			reached = s.takes(b, w)
		}
		s.note("%s: goes on", a.name)
		a.machine.wake()
		return memzk.NoFault
	}}
	s.stop(a)
	s.queue(c, w, 3*time.Second)
	s.watch(s.confirm + 4*time.Second)
	return reached
}

// playHandover: a holder whose clock is ahead releases its worker, and others take it at once. They may release it
// before they have issued anything, or be killed. The first holder may restart, and must find that it holds nothing.
func (s *sim) playHandover() bool {
	a := s.holder()
	if a == nil {
		return false
	}
	w, first := a.held(), a.machine
	s.drift(first, pick(s, s.upTo(4900*time.Millisecond), 4900*time.Millisecond))
	s.extend(a)
	s.burst(a)
	a.n.cfg.ReleaseOnExit = true
	switch s.rng.IntN(4) {
	case 0:
		a.trap = &trap{on: writes(w), after: func() { s.kill(a, s.chance(2)) }}
	case 1: // requests that began before it stopped go on
		a.trap = &trap{on: writes(w), after: func() {
			for range s.between(1, 5) {
				s.fine()
				s.burst(a)
			}
		}}
	}
	s.stop(a)
	if a.trap = nil; s.chance(3) {
		s.restart(first, s.chance(2))
	}
	reached := false
	for range s.between(1, 3) {
		m := s.other(first)
		p := s.queue(m, w, 3*time.Second)
		if p == nil {
			break
		}
		reached = true
		switch s.rng.IntN(4) {
		case 0: // nothing issued
			p.n.cfg.ReleaseOnExit = s.chance(2)
			s.stop(p)
			if s.chance(2) {
				s.restart(m, s.chance(4))
			}
		case 1:
			s.kill(p, true)
			p.session.Expire()
			s.wait(w, time.Second)
		case 2:
			s.serves(p, s.confirm+6*time.Second)
		}
	}
	s.watch(s.confirm + 6*time.Second)
	return reached
}

// playChain: a holder's clock goes back after it has issued. The holder reports once more, and is lost with its disk.
// The next holder must begin above all that the holder has issued, and so must the holder after that.
func (s *sim) playChain() bool {
	a := s.holder()
	if a == nil {
		return false
	}
	w, m := a.held(), a.machine
	ahead := pick(s, s.upTo(4900*time.Millisecond), 4900*time.Millisecond)
	s.drift(m, ahead)
	s.extend(a)
	s.keep(a)
	s.burst(a)
	s.step(m, -ahead-s.upTo(time.Second))
	s.keep(a)
	if !a.dead {
		s.kill(a, true)
		a.session.Expire()
	}
	s.newDisk(m)
	reached := false
	for range s.between(1, 3) {
		if !s.wait(w, time.Second) {
			break
		}
		p := s.queue(s.other(m), w, 10*time.Second)
		if p == nil {
			break
		}
		reached = true
		if s.chance(2) {
			s.serves(p, s.confirm+6*time.Second)
		}
		s.watch(s.upTo(2 * time.Second))
		if !p.dead {
			s.kill(p, s.chance(2))
			p.session.Expire()
		}
	}
	s.watch(s.confirm + 5*time.Second)
	return reached
}

// releases returns a function that reports whether a call writes worker w as released.
func releases(w int) func(memzk.Call) bool {
	on := writes(w)
	return func(c memzk.Call) bool {
		return on(c) && (bytes.Contains(c.Data, []byte(`"released":true`)) ||
			slices.ContainsFunc(c.Ops, func(op store.Op) bool {
				set, ok := op.(store.SetOp)
				return ok && bytes.Contains(set.Data, []byte(`"released":true`))
			}))
	}
}
