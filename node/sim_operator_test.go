package node

import (
	"context"
	"fmt"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/localcache"
)

// Commands of operators, used as the documents allow.

func (s *sim) hand() coordinator.Operator {
	return coordinator.Operator{Store: s.operator, Now: func() int64 { return s.now / 1e6 }, By: "op"}
}

// operate runs one random command of an operator, whose clock is right.
func (s *sim) operate() {
	hand, ctx := s.hand(), context.Background()
	w := s.rng.IntN(s.layout.Workers())
	switch s.rng.IntN(4) {
	case 0:
		workers := coordinator.AllWorkers(s.layout.Workers())
		if s.chance(2) {
			workers = coordinator.WorkerSet(fmt.Sprint(w))
		}
		_, _, err := hand.Freeze(ctx, workers, time.Second+s.upTo(s.lease/2))
		s.note("by hand: freeze %q: %v", workers, err)
	case 1:
		if found, err := hand.Examine(ctx, w); err == nil && w < s.layout.Workers() {
			_, err = hand.ForceRelease(ctx, found)
			s.note("by hand: release worker %d: %v", w, err)
		}
	case 2:
		s.openUnused()
	case 3:
		s.resetAndLower(s.any())
	}
}

// openUnused thaws the workers that no node has ever held.
func (s *sim) openUnused() {
	var unused coordinator.WorkerSet
	for w := range s.workers {
		if !s.workers[w].held {
			unused = unused.Union(coordinator.WorkerSet(fmt.Sprint(w)))
		}
	}
	if unused == "" {
		return
	}
	freed, err := s.thaw(unused)
	s.note("by hand: thaw %q: %d freed, %v", unused, freed, err)
}

func (s *sim) thaw(workers coordinator.WorkerSet) (freed int, err error) {
	seen, err := coordinator.ReadCluster(context.Background(), s.operator)
	if err != nil {
		return 0, err
	}
	return coordinator.Thaw(context.Background(), s.operator, seen, workers)
}

// resetAndLower resets the identity of a node that does not run, and lowers the lease bound of
// its worker. The bound does not go below the reserved bound of the state directory.
// resetAndLower reports whether that was done.
func (s *sim) resetAndLower(m *machine) bool {
	if m.proc != nil {
		return false
	}
	d := m.durable
	cache, err := localcache.New(m.disk, m.print)
	if err != nil {
		return false
	}
	if l := cache.Load(); l.Status != localcache.StatusRecord || l.Damaged || len(l.Changed) > 0 {
		return false // refused: nobody knows how far the node came
	}
	s.note("%s: reset-identity, of worker %d", m.name, d.worker)
	s.newDisk(m)
	return s.lower(d)
}

// lower releases the worker of a state directory that was set aside, and lowers its lease
// bound. It reports whether that was done.
func (s *sim) lower(backup diskLook) bool {
	hand, ctx := s.hand(), context.Background()
	found, err := hand.Examine(ctx, backup.worker)
	if err != nil || found.Slot.Node != backup.node || found.Live {
		return false // another's by now, or not to be lowered yet
	}
	if !found.Slot.Released {
		if found.Entry, err = hand.ForceRelease(ctx, found); err != nil {
			return false
		}
	}
	e, err := hand.LowerBound(ctx, found, backup.reservedUntil)
	s.note("by hand: worker %d is lowered to %d: %v", backup.worker, e.Slot.LeaseUntil, err)
	return err == nil
}
