package node

import (
	"context"
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
	if s.chance(3) {
		_, _, err := hand.Freeze(ctx, time.Second+s.upTo(s.lease/2))
		s.note("by hand: freeze: %v", err)
		return
	}
	w := s.rng.IntN(s.layout.Workers())
	if found, err := hand.Examine(ctx, w); err == nil {
		_, err = hand.ForceRelease(ctx, found)
		s.note("by hand: release worker %d: %v", w, err)
	}
}

func (s *sim) thaw() (freed int, err error) {
	seen, err := coordinator.ReadCluster(context.Background(), s.operator)
	if err != nil {
		return 0, err
	}
	return coordinator.Thaw(context.Background(), s.operator, seen)
}

// playReleasedByHand: older data is put back, and an operator releases the worker of a cut-off holder before anybody
// has noticed. The holder is killed and starts again: it must make the loss known.
func (s *sim) playReleasedByHand() bool {
	s.mend()
	a := s.holder()
	if a == nil {
		return false
	}
	copied := s.Mem.Snapshot()
	s.live(10*time.Second+s.upTo(10*time.Second), s.heartbeat/2)
	if a.dead || a.held() < 0 || a.acquiring {
		return false
	}
	w, m := a.held(), a.machine
	s.cutOff(a)
	before := s.incarnation()
	s.snapshot = copied
	s.restoreSnapshot()
	s.forget()
	data, _, err := s.admin.Get(context.Background(), slotPath(w))
	kept := number(data, "lease_until")
	if found, e := s.hand().Examine(context.Background(), w); err == nil && e == nil {
		_, err = s.hand().ForceRelease(context.Background(), found)
		s.note("by hand: release worker %d: %v", w, err)
	}
	s.kill(a, s.chance(3))
	cache, e := localcache.New(m.Disk.Clone(), m.Print)
	if err != nil || e != nil || text(data, "node") != m.durable.node {
		s.over = true
		return false
	}
	knows := cache.Load().Record.LeaseUntil > kept && m.durable.found
	s.backToStore(m)
	if p := m.proc; p != nil {
		s.quietly(func() { s.keep(p); s.keep(p) })
	}
	if s.incarnation() <= before {
		if knows && !s.over && m.proc != nil {
			s.violated(wrongUnnoticed, "%s has started, and the incarnation is still %d", m.name, before)
		}
		s.over = true
		return false
	}
	s.watch(s.confirm + 4*time.Second)
	return true
}
