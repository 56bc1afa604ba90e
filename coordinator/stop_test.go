package coordinator

import (
	"errors"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

func TestRelease(t *testing.T) {
	l := newLab(t, 1)
	a := l.serving("A")
	a.wait = labW
	a.mustBeat()
	a.extend()
	end := a.end()
	a.must(a.leave())
	s := l.slot(0)
	if !s.Released || s.LeaseUntil != end || s.Term != 1 || len(l.children(ticketsPath)) != 0 || l.liveHolder(0) != 0 {
		t.Errorf("%+v, tickets %q", s, l.children(ticketsPath))
	}
	b := l.serving("B") // at once
	if b.claim.Term != 2 || b.claim.Floor < end {
		t.Errorf("%+v", b.claim)
	}
	if err := mayResume(&s, a.disk.claim); err == nil {
		t.Error("a released slot may be resumed")
	}
	l.disjoint()
}

// If another node has the slot, or takes it meanwhile, Stop and Release write nothing.
func TestStopLeavesAnotherNodesSlotAlone(t *testing.T) {
	for name, finish := range map[string]func(m *member) error{
		"stop":    func(m *member) error { return m.co.Stop(m.Context(), m.end(), m.disk.generation) },
		"release": func(m *member) error { return m.co.Release(m.Context(), m.end()) },
	} {
		for when, early := range map[string]bool{"before": true, "meanwhile": false} {
			t.Run(name+" "+when, func(t *testing.T) {
				l := newLab(t, 1)
				a := l.serving("A")
				var b *member
				take := func() {
					a.sess.Expire()
					l.pass(labLease + limits.ClocksAgree)
					b = l.serving("B")
				}
				if early {
					take()
				}
				a.hook = func(c memzk.Call) memzk.Fault {
					if c.Op == "set" && b == nil {
						take()
					}
					return memzk.NoFault
				}
				if err := finish(a); err != nil {
					t.Error(err)
				}
				if s := l.slot(0); s.Node != b.claim.Node || s.Stopped || s.Released ||
					s.LeaseUntil < b.claim.LeaseUntil || l.liveHolder(0) != b.sess.SessionID() {
					t.Errorf("%+v", s)
				}
				b.mustBeat()
				if !b.issue() && l.now != b.t.issued {
					t.Error("the new holder was hurt")
				}
				l.disjoint()
			})
		}
	}
}

// A machine is cloned while its node serves, and one of both is stopped. It must leave the slot, the ticket and the
// live lock to the other, and must not report success (C33).
func TestStopOfACloneLeavesAllToTheOther(t *testing.T) {
	for name, finish := range map[string]func(m *member) error{
		"stop":    func(m *member) error { return m.co.Stop(m.Context(), m.end(), m.disk.generation) },
		"release": func(m *member) error { return m.co.Release(m.Context(), m.end()) },
		"release of a slot that it left": func(m *member) error {
			return m.co.ReleaseOld(m.Context(), OldSlot{m.co.holder}, m.end())
		},
		"look for a loss": func(m *member) error { return m.co.LookForLoss(m.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 8)
			a, clone := l.serving("A"), l.node("clone")
			a.mustBeat()
			memory := *a.co.holder
			clone.co.holder = &memory
			l.pass(time.Second)
			_, err := clone.co.Heartbeat(t.Context(), Report{Lease: labLease})
			clone.must(err)
			a.hook = func(c memzk.Call) memzk.Fault {
				if c.Write() {
					t.Errorf("it wrote: %+v", c)
				}
				return memzk.NoFault
			}
			fenced, ok := errors.AsType[*FencedError](finish(a))
			if !ok || !fenced.Cloned || fenced.Worker != memory.Worker {
				t.Errorf("it reports %+v", fenced)
			}
			if l.liveHolder(memory.Worker) == 0 || len(l.children(ticketsPath)) != 1 {
				t.Errorf("live lock of %d, tickets %q", l.liveHolder(memory.Worker), l.children(ticketsPath))
			}
		})
	}
}

// The answer to the write of a stop is lost. The record that the stop then finds is its own, and no clone's (C33).
func TestUnknownWriteOfAStopIsNoClone(t *testing.T) {
	for name, finish := range map[string]func(m *member) error{"stop": (*member).halt, "release": (*member).leave} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1)
			a := l.serving("A")
			a.mustBeat()
			a.hook = faulty(memzk.FailAfter, 0, 2, touching("set", SlotPath(0)))
			a.must(finish(a))
			if s := l.slot(0); !s.Stopped && !s.Released {
				t.Errorf("%+v", s)
			}
		})
	}
}

// A lagging server shows no record of the slot, or an older copy. Stop must not take that for a loss of data or for a
// take-over.
func TestStopThroughALaggingServer(t *testing.T) {
	l := newLab(t, 1)
	views := []*memzk.Snapshot{l.Mem.Snapshot()}
	a := l.serving("A")
	views = append(views, l.Mem.Snapshot())
	for _, view := range views {
		l.pass(time.Second)
		a.mustBeat()
		a.sess.LagTo(view)
		a.must(a.halt())
		if cl := l.cluster(); cl.FrozenUntil != 0 || !l.slot(0).Stopped {
			t.Errorf("%+v, %+v", cl, l.slot(0))
		}
		a.must(a.start())
	}
}

// Release does not lower the lease bound below the floor. If a node has issued nothing since it acquired the slot, the
// bound stays at the earlier holder's.
func TestReleaseIsNotBelowTheFloor(t *testing.T) {
	for name, end := range map[string]int64{"nothing issued": 0, "below": -1, "its floor": labStart + 5000} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1)
			l.put(0, Slot{})
			l.remove(SlotPath(0))
			a := l.node("A")
			a.must(a.register())
			a.crash()
			l.expire()
			s := l.slot(0)
			s.Released, s.LeaseUntil = true, l.now+5000 // a predecessor whose clock was ahead
			l.forget()
			l.put(0, s)
			b := l.node("B")
			b.must(b.register())
			if b.claim.Floor != l.now+5000 {
				t.Fatalf("%+v", b.claim)
			}
			if err := b.co.Release(t.Context(), end); err != nil {
				t.Fatal(err)
			}
			if s := l.slot(0); !s.Released || s.LeaseUntil != l.now+5000 {
				t.Errorf("%+v", s)
			}
		})
	}
}
