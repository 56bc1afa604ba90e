package node

import (
	"context"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/localcache"
)

// playElsewhere: a node is started with its state directory, but with another ZooKeeper, which
// is empty or has another cluster. In the first ZooKeeper another node takes its worker.
func (s *sim) playElsewhere() bool {
	a := s.holder()
	if a == nil {
		return false
	}
	w, m := a.held(), a.machine
	s.elsewhere.Wipe()
	if s.chance(2) {
		settings := s.settings()
		other, err := settings.Record("another", s.heartbeat)
		if err == nil {
			_, err = coordinator.CreateCluster(context.Background(), s.elsewhere.Session(), other, s.now/1e6)
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
	if cache, err := localcache.New(m.Disk.Clone(), m.Print); err != nil ||
		cache.Load().Status != localcache.StatusRecord {
		return false // its state is damaged: as a new node it may register there
	}
	p := s.startIn(m, s.elsewhere)
	if p == nil {
		return false
	}
	if s.chance(2) {
		s.cutOff(p) // no server can tell it that it is wrong
	}
	if !s.wait(w, time.Second) {
		return false
	}
	s.queue(s.other(m), w, 10*time.Second)
	if !p.dead {
		s.heal(p)
	}
	s.watch(s.confirm + 4*time.Second)
	if m.proc != nil && m.proc == p {
		s.kill(p, false) // the history goes on in the first ZooKeeper
		s.newDisk(m)
	}
	return true
}

// playReleasedCopy: a state file is copied. Its node stops and releases its worker, and another node takes the worker.
// Then the copy is written back in place, and a node starts from it while it cannot reach ZooKeeper.
func (s *sim) playReleasedCopy() bool {
	a := s.holder()
	if a == nil {
		return false
	}
	w, m := a.held(), a.machine
	old := m.Disk.Clone()
	a.n.cfg.ReleaseOnExit = true
	s.stop(a)
	if !a.dead || !s.workers[w].record.released {
		return false
	}
	removed := m.Disk.Removed()
	b := s.queue(s.other(m), w, 5*time.Second)
	if b == nil || !s.serves(b, s.confirm+6*time.Second) {
		return false
	}
	s.note("%s: a copy of its state file is written back, the file was deleted %t", m.name, removed)
	print := m.Print
	if removed {
		print = s.newInode() // the old file is not there
	}
	s.giveDisk(m, old, print)
	s.restart(m, true)
	s.watch(4 * time.Second)
	if m.proc != nil {
		s.heal(m.proc)
	}
	s.watch(s.confirm + 3*time.Second)
	return true
}
