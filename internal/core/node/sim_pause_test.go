package node

import "time"

// Scenarios about machines that a hypervisor pauses.

// playPausedPeer: the machine of a holder is paused just after a heartbeat, and its boot clock stands still. Meanwhile
// a node takes a worker and confirms. Then data from before that is put back, which has the record of the paused holder
// as that holder's next heartbeat expects it, and its machine goes on. A new node takes the worker. The other holder is
// cut off, and comes back in time.
func (s *sim) playPausedPeer() bool {
	s.mend()
	p := s.holder()
	if p == nil {
		return false
	}
	a := s.witness(p.machine)
	if a == nil {
		return false
	}
	w := a.held()
	a.n.cfg.ReleaseOnExit = true
	s.stop(a)
	if !s.workers[w].record.released {
		return false
	}
	s.newDisk(a.machine)
	s.live(2*s.confirm, s.heartbeat/2)
	if p.dead || p.held() < 0 {
		return false
	}
	s.quietly(func() { s.keep(p) })
	copied := s.Mem.Snapshot()
	s.pause(p.machine, time.Hour, s.chance(2))
	c := s.queue(s.other(p.machine), w, 5*time.Second)
	if c == nil || !s.serves(c, s.confirm+6*time.Second) || !c.n.view.Load().Claim.EverConfirmed {
		p.machine.wake()
		return false
	}
	before := s.incarnation()
	s.cutOff(c)
	s.snapshot = copied
	s.restoreSnapshot()
	s.forget()
	p.machine.wake()
	s.deadline = s.now + int64(s.confirm) - int64(s.upTo(s.confirm/2)) - 20e6
	s.aim(w)
	if d := s.start(s.other(p.machine, c.machine)); d != nil {
		s.keep(d)
	}
	for s.now < s.deadline && !s.done() {
		s.fine()
		s.burst(c)
	}
	s.noticed([]*machine{c.machine}, before)
	s.deadline = 0
	s.watch(s.confirm + 3*time.Second)
	return true
}
