package coordinator

import (
	"errors"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

func (l *lab) examine(worker int) Examined {
	l.Helper()
	h, err := l.operator().Examine(l.Context(), worker)
	if err != nil {
		l.Fatal(err)
	}
	return h
}

// takeAway takes a slot from its holder, as an operator does.
func (l *lab) takeAway(worker int) Entry {
	l.Helper()
	e, err := l.operator().ForceRelease(l.Context(), l.examine(worker))
	if err != nil {
		l.Fatal(err)
	}
	l.observe()
	return e
}

// takenFrom has the states of a holder from which an operator takes its worker, and what the holder does next.
var takenFrom = map[string]struct {
	before func(a *member)
	was    Availability
	after  func(a *member) // the holder's steps after it
}{
	"connected": {func(*member) {}, Live, func(a *member) {
		_, err := a.beat()
		wantFenced(a, err)
	}},
	"cut off, and back": {func(a *member) { a.sess.Partition(); a.sess.Expire() }, Disconnected, func(a *member) {
		for range 5 {
			a.pass(time.Second)
			a.extend()
			if !a.issue() {
				a.Error("its lease runs")
			}
		}
		a.sess.Heal()
		_, err := a.beat()
		wantFenced(a, err)
	}},
	"cut off for good": {func(a *member) { a.sess.Partition(); a.sess.Expire() }, Disconnected, func(a *member) {
		for range 100 {
			a.pass(time.Second)
			a.extend()
			a.issue()
		}
	}},
	"killed, and started": {func(a *member) { a.crash(); a.expire() }, Disconnected, func(a *member) {
		if err := mayResume(ptr(a.slot(0)), a.disk.claim); err == nil {
			a.Error("it may be resumed")
		}
	}},
	"stopped, and started alone": {func(a *member) { a.must(a.halt()) }, Stopped, func(a *member) {
		a.startAlone()
		a.pass(time.Second)
		a.extend()
		if !a.issue() {
			a.Error("its lease runs")
		}
		_, err := a.beat()
		wantFenced(a, err)
	}},
	"its lease is over": {func(a *member) { a.crash(); a.expire(); a.pass(2 * labLease) }, Free, func(*member) {}},
}

// An operator takes a slot from its holder. Whatever the holder does, the next holder begins at or above the holder's
// lease bound.
func TestTakeAway(t *testing.T) {
	for name, row := range takenFrom {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1)
			a := l.serving("A")
			a.mustBeat()
			row.before(a)
			h := l.examine(0)
			if h.Availability != row.was {
				t.Errorf("it is %v, want %v", h.Availability, row.was)
			}
			was := l.slot(0)
			e, err := l.operator().ForceRelease(t.Context(), h)
			if err != nil {
				t.Fatal(err)
			}
			s := l.slot(0)
			if s.LeaseUntil != was.LeaseUntil || s.Term != was.Term+1 || s.Nonce == was.Nonce || s.Confirmed ||
				!s.Released || s.ReleasedBy != "test" || e.Slot.Term != s.Term {
				t.Errorf("%+v became %+v", was, s)
			}
			row.after(a)
			a.up = false
			a.sess.Expire()
			// The holder may run by a clock that is behind. It keeps the slot for the grace time.
			if free := s.LeaseUntil + l.cluster().graceMs(); l.now < free {
				l.now = free - 1
				wantErrAs[*FullError](t, l.node("too early").register())
				l.now = free
			}
			b := l.serving("B")
			if b.past[0].lo < was.LeaseUntil || b.claim.Term != s.Term+1 {
				t.Errorf("%+v after %+v", b.claim, s)
			}
			l.disjoint()
		})
	}
}

func ptr[T any](v T) *T { return &v }

// While a slot is frozen, its record in ZooKeeper may be out of date. So ForceRelease refuses.
func TestTakeAwayInAFreeze(t *testing.T) {
	l := newLab(t, 4)
	a, b := l.serving("A"), l.serving("B")
	h := l.examine(0)
	l.remove(SlotPath(1))
	b.mustBeat() // puts it back, and freezes
	_, err := l.operator().ForceRelease(t.Context(), h)
	if frozen := wantErrAs[*StillFrozenError](t, err); frozen.Until != l.cluster().FrozenUntil {
		t.Errorf("%+v", frozen)
	}
	a.mustBeat()
}

// An operator takes a slot away when ZooKeeper has an older copy of its record. The holder comes back, and the slot is
// still its own.
func TestTakeAwayOfAnOlderCopy(t *testing.T) {
	l := newLab(t, 1)
	a := l.serving("A")
	copied := l.Mem.Snapshot()
	for range 4 {
		l.pass(limits.DefaultHeartbeat)
		a.mustBeat()
	}
	a.sess.Partition()
	l.Mem.Restore(copied)
	l.forget()
	s := l.takeAway(0).Slot
	a.sess.Heal()
	b := a.mustBeat()
	if !b.Restored || a.claim.Term != s.Term+1 || l.slot(0).Released {
		t.Errorf("%+v, %+v", b, l.slot(0))
	}
	if !l.cluster().Frozen(l.now) {
		t.Error("it is not frozen")
	}
	l.disjoint()
}

// ForceRelease replaces a record that is missing or cannot be read by a stand-in, which keeps the slot for as long
// as its holder's lease can run.
func TestTakeAwayOfALostRecord(t *testing.T) {
	for name, spoil := range map[string]func(l *lab){
		"absent":     func(l *lab) { l.remove(SlotPath(0)) },
		"unreadable": func(l *lab) { l.put(0, Slot{}); l.forget() },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1)
			a := l.serving("A")
			a.sess.Partition()
			a.sess.Expire()
			spoil(l)
			e := l.takeAway(0)
			if want := l.cluster().FreezeEnd(l.now); !e.Slot.StandsIn || e.Slot.LeaseUntil != want ||
				l.slot(0).LeaseUntil != want {
				t.Errorf("%+v, want H %d", e, want)
			}
			a.sess.Heal()
			if b := a.mustBeat(); !b.Restored || l.slot(0).Node != a.claim.Node {
				t.Errorf("%+v, %+v", b, l.slot(0))
			}
		})
	}
}

// A heartbeat of the holder between Examine and ForceRelease makes no difference. If the term has changed, ForceRelease
// refuses.
func TestTakeAwayMeanwhile(t *testing.T) {
	l := newLab(t, 1)
	a := l.serving("A")
	h := l.examine(0)
	beats := 0
	l.admin.SetFault(func(c memzk.Call) memzk.Fault {
		if c.Op == "set" && beats < 3 {
			beats++
			l.pass(time.Second)
			a.mustBeat()
		}
		return memzk.NoFault
	})
	e, err := l.operator().ForceRelease(t.Context(), h)
	if err != nil || beats != 3 || e.Slot.LeaseUntil != a.claim.LeaseUntil || e.Slot.LeaseUntil <= h.Slot.LeaseUntil {
		t.Errorf("%+v, %v after %d heartbeats", e, err, beats)
	}
	l.admin.SetFault(nil)
	_, err = l.operator().ForceRelease(t.Context(), h)
	if changed := wantErrAs[*ChangedError](t, err); changed.Slot.Term != 2 {
		t.Errorf("%+v", changed)
	}
}

// A free slot, a released one and a lost one have no holder to take them from.
func TestTakeAwayFromNobody(t *testing.T) {
	l := newLab(t, 4)
	a := l.serving("A")
	a.must(a.leave())
	l.put(2, Slot{LeaseUntil: l.now + millis(labW), StandsIn: true})
	for w := range 4 {
		before := l.slot(w)
		if _, err := l.operator().ForceRelease(t.Context(), l.examine(w)); !errors.Is(err, ErrNotHeld) ||
			!same(l.slot(w), before) {
			t.Errorf("%d: %v, %+v", w, err, l.slot(w))
		}
	}
}
