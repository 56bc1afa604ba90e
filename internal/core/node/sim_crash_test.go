package node

import (
	"time"

	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/localcache"
)

// Scenarios about crashes, and about what they leave on the disk.

// playCrash: a node issues up to its reserved bound, while its disk fails or stalls, or after
// its clock went back. Then it ends by kill -9 or a power cut. A byte of its disk may rot, and
// its clock may go back. It restarts, with ZooKeeper or from its state directory alone.
func (s *sim) playCrash() bool {
	a := s.holder()
	if a == nil {
		return false
	}
	m := a.machine
	if s.chance(2) {
		s.cutOff(a)
	}
	issue := func(d time.Duration) {
		for end := s.now + int64(d); s.now < end && !a.dead && !s.done(); {
			s.fine()
			s.burst(a)
		}
	}
	switch s.rng.IntN(5) {
	case 0:
		s.ail(m, pick(s, diskFull, diskReadOnly))
		issue(s.reserve + s.upTo(2*time.Second))
	case 1:
		m.stall = func() {
			s.note("%s: the disk stalls", m.name)
			s.depth++
			issue(s.reserve/2 + s.upTo(s.reserve))
			s.depth--
			if !a.dead && s.chance(2) {
				m.Disk.Survives = func(int64) bool { return false }
				s.kill(a, true)
			}
		}
		s.extend(a)
	case 2:
		s.step(m, -time.Millisecond-s.upTo(9*time.Second))
		s.extend(a)
		if !a.dead && s.chance(2) {
			s.keep(a)
		}
	case 3: // one extension is late, the next is the last
		s.now += int64(s.reserve) - int64(s.upTo(200*time.Millisecond))
		s.burst(a)
		s.extend(a)
		for end := s.now + int64(s.reserve); s.now < end; s.now += int64(s.upTo(100 * time.Millisecond)) {
			s.burst(a)
		}
	}
	if !a.dead {
		s.burst(a)
		s.kill(a, s.chance(2))
	}
	s.ail(m, noTrouble)
	switch s.rng.IntN(4) {
	case 0: // in the newer block
		s.rot(m, int64(m.durable.block*localcache.FileSize/2+s.between(0, localcache.FileSize/2-1)))
	case 1:
		s.rot(m, int64(s.between(0, localcache.FileSize-1)))
	}
	if s.chance(3) {
		a.session.Expire()
	}
	if s.chance(2) {
		s.step(m, -s.upTo(9500*time.Millisecond))
	}
	p := s.restart(m, s.chance(2))
	s.watch(12 * time.Second)
	if p != nil && !p.dead {
		s.heal(p)
		s.watch(s.confirm + 2*time.Second)
	}
	return p != nil
}

// playGrant: a process saves a claim. It ends before the write that carries the claim, before the answer to that write,
// or while the write is on its way. It restarts, perhaps with its clock a little back.
func (s *sim) playGrant() bool {
	m := s.any()
	if s.chance(2) {
		if a := s.holder(); a != nil {
			m = a.machine
		}
	}
	if p := m.proc; p != nil {
		s.burst(p)
		s.kill(p, s.chance(2))
		if s.chance(2) {
			p.session.Expire()
		}
	}
	s.ail(m, noTrouble)
	reached := false
	for range s.between(1, 3) {
		if s.chance(2) {
			s.step(m, -s.upTo(3*time.Second))
		}
		p := s.restart(m, false)
		if p == nil {
			return reached
		}
		kill := func() { reached = true; s.kill(p, s.chance(2)) }
		late := func() memzk.Fault {
			reached = true
			s.note("%s: a write is late", p.name)
			return memzk.FailLate
		}
		deliver := func() memzk.Fault { s.deliver(); return memzk.NoFault }
		switch t := (&trap{on: writes(-1)}); s.rng.IntN(5) {
		case 0:
			t.before = func() memzk.Fault { kill(); return memzk.NoFault }
			p.trap = t
		case 1:
			t.after = kill
			p.trap = t
		case 2:
			t.before = late
			p.trap = t
		case 3:
			t.before = deliver
			p.trap = t
		}
		for range s.between(1, 3) {
			if !p.dead {
				s.keep(p)
				s.fine()
			}
		}
		if !p.dead && s.chance(2) {
			s.kill(p, s.chance(3))
		}
	}
	if m.proc == nil {
		s.restart(m, s.chance(3))
	}
	s.deliver()
	s.watch(s.confirm + 8*time.Second)
	return reached
}

// playCopy: a machine gets a copy of a holder's disk, and a node starts there. The original runs on, or restarts later.
func (s *sim) playCopy() bool {
	a := s.holder()
	if a == nil {
		return false
	}
	from, b := a.machine, s.other(a.machine)
	s.copyDisk(b, from)
	if s.chance(3) {
		s.kill(a, s.chance(2))
	}
	s.restart(b, s.chance(2))
	s.watch(4 * time.Second)
	s.restart(from, s.chance(2))
	s.watch(4 * time.Second)
	s.mend()
	s.watch(s.confirm + 3*time.Second)
	return true
}

// playOldFile: an old copy is put back into the same state file, and the clock goes back.
// ZooKeeper can be reached and has seen a newer generation of the file.
func (s *sim) playOldFile() bool {
	a := s.holder()
	if a == nil {
		return false
	}
	m, w := a.machine, a.held()
	old, generation := m.Disk.Clone(), m.durable.generation
	s.watch(s.upTo(5 * time.Second))
	if a.dead || a.cut || a.held() != w {
		return false
	}
	s.extend(a)
	s.keep(a)
	if r := s.workers[w].record; a.dead || r.node != a.n.view.Load().Claim.Node || r.generation <= generation+1 {
		return false
	}
	for range s.between(1, 10) { // the last report is from before that
		s.now += int64(s.upTo(100 * time.Millisecond))
		s.extend(a)
		s.burst(a)
	}
	if a.dead {
		return false
	}
	s.kill(a, false)
	s.note("%s: an old copy of its state file is put back", m.name)
	s.giveDisk(m, old, m.Print)
	s.step(m, -s.upTo(5*time.Second))
	s.backToStore(m)
	s.watch(s.confirm + 6*time.Second)
	return true
}
