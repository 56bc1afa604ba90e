package node

import (
	"context"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// heardOf returns a holder and its worker, after the holder has reported with a clock that is
// right by the leader's. It returns nil if there is no such holder.
func (s *sim) heardOf() (a *process, w int) {
	s.mend()
	if a = s.holder(); a == nil {
		return nil, 0
	}
	w = a.held()
	for range 2 {
		s.keep(a)
	}
	if a.dead || a.held() != w || a.n.clock.UnfollowedLeap() != 0 {
		return nil, 0
	}
	return a, w
}

// playForgotten: a holder is cut off and loses its worker to another node. Then ZooKeeper is
// wiped, or restored to data from before that. The former holder is the first to come back, by a
// clock that may be behind, and finds its own record or none.
func (s *sim) playForgotten() bool {
	a, w := s.heardOf()
	if a == nil {
		return false
	}
	s.snapshot = s.Mem.Snapshot()
	s.cutOff(a)
	a.session.Expire()
	if s.chance(2) {
		s.step(a.machine, -s.upTo(10*time.Second))
	}
	if !s.wait(w, time.Second) {
		return false
	}
	b := s.queue(s.other(a.machine), w, 10*time.Second)
	if b == nil || !s.serves(b, s.confirm+5*time.Second) || !b.n.view.Load().Claim.EverConfirmed || a.dead || a.held() != w ||
		s.snapshot == nil {
		return false
	}
	s.watch(s.upTo(2 * time.Second))
	if b.dead || b.n.view.Load().Claim.LeaseUntil-b.n.now() < s.confirm.Milliseconds() {
		return false // it could not put its record back
	}
	if s.chance(3) {
		s.note("ZooKeeper is wiped")
		s.Mem.Wipe()
	} else {
		s.restoreSnapshot()
	}
	s.forget()
	before := s.incarnation()
	s.deadline = s.now + int64(s.confirm) - 20e6
	s.cutOff(b)
	if s.chance(2) { // by less than the grace
		back := s.upTo(min(4*time.Second, s.lease/12))
		s.note("the leader's clock goes back by %s", back)
		s.Leap(-back)
	}
	s.quietly(func() {
		if !a.dead {
			s.heal(a)
			s.keep(a)
		}
	})
	for s.now < s.deadline && !s.done() {
		s.fine()
		s.burst(b)
	}
	s.noticed([]*machine{b.machine}, before)
	s.deadline = 0
	s.watch(s.confirm + 3*time.Second)
	return true
}

// playLostRecord: the record of one worker is lost while its holder is cut off or was killed, and
// no holder notices. A new node must see that a record was there.
func (s *sim) playLostRecord() bool {
	a := s.holder()
	if a == nil {
		return false
	}
	w, m := a.held(), a.machine
	s.cutOff(a)
	if s.chance(3) {
		s.kill(a, false)
	}
	a.session.Expire()
	s.note("the record of worker %d is lost", w)
	if s.admin.Delete(context.Background(), slotPath(w), store.AnyVersion) != nil {
		return false
	}
	s.forget()
	b := s.other(m)
	s.queue(b, w, 2*time.Second)
	s.watch(s.confirm + 2*time.Second)
	if s.restart(m, true); s.chance(2) {
		s.mend()
	}
	s.watch(s.confirm + 2*time.Second)
	return true
}
