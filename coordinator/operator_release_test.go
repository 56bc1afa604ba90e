package coordinator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/flaked/flaked/zkstore"
)

func (l *lab) examine(worker int) Holding {
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

// An operator takes a slot from its holder. Whatever the holder does, the next holder begins at
// or above the holder's lease bound.
func TestTakeAway(t *testing.T) {
	for name, row := range map[string]struct {
		before func(a *member)
		was    Availability
		after  func(a *member) // the holder's steps after it
	}{
		"connected": {func(*member) {}, Live, func(a *member) {
			_, err := a.beat()
			wantFenced(t, err)
		}},
		"cut off, and back": {func(a *member) { a.sess.Partition(); a.sess.Expire() }, Disconnected, func(a *member) {
			for range 5 {
				a.pass(time.Second)
				a.extend()
				if !a.issue() {
					t.Error("its lease runs")
				}
			}
			a.sess.Heal()
			_, err := a.beat()
			wantFenced(t, err)
		}},
		"cut off for good": {func(a *member) { a.sess.Partition(); a.sess.Expire() }, Disconnected, func(a *member) {
			for range 100 {
				a.pass(time.Second)
				a.extend()
				a.issue()
			}
		}},
		"killed, and started": {func(a *member) { a.crash(); a.expire() }, Disconnected, func(a *member) {
			if err := JudgeResume(ptr(a.slot(0)), a.disk.claim); err == nil {
				t.Error("it may be resumed")
			}
		}},
		"stopped, and started alone": {func(a *member) { a.must(a.halt()) }, Stopped, func(a *member) {
			a.startAlone()
			a.pass(time.Second)
			a.extend()
			if !a.issue() {
				t.Error("its lease runs")
			}
			_, err := a.beat()
			wantFenced(t, err)
		}},
		"its lease is over": {func(a *member) { a.crash(); a.expire(); a.pass(2 * labLease) }, Free, func(*member) {}},
	} {
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
			if s.LeaseUntil != was.LeaseUntil || s.Term != was.Term+1 || s.Nonce == was.Nonce || s.Confirmed || !s.Released || s.ReleasedBy != "test" || e.Slot.Term != s.Term {
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

// A heartbeat of the holder between Examine and ForceRelease makes no difference. If the term has
// changed, ForceRelease refuses.
func TestTakeAwayMeanwhile(t *testing.T) {
	l := newLab(t, 1)
	a := l.serving("A")
	h := l.examine(0)
	beats := 0
	l.admin.SetFault(func(c zkstore.Call) zkstore.Fault {
		if c.Op == "set" && beats < 3 {
			beats++
			l.pass(time.Second)
			a.mustBeat()
		}
		return zkstore.NoFault
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

// The holder's lease had ended when the operator examined the slot, and the holder has come
// back since. ForceRelease must refuse, because the operator decided by the earlier state.
func TestTakeAwayOfOneWhoCameBack(t *testing.T) {
	l := newLab(t, 1)
	a := l.serving("A")
	a.sess.Expire()
	l.pass(2 * time.Hour)
	h := l.examine(0)
	if h.Availability != Free {
		t.Fatalf("%v after its lease", h.Availability)
	}
	a.mustBeat()
	_, err := l.operator().ForceRelease(t.Context(), h)
	wantErrAs[*ChangedError](t, err)
}

// If the holder restarts between Examine and ForceRelease, ForceRelease refuses.
func TestTakeAwayAfterARestart(t *testing.T) {
	l := newLab(t, 1)
	a := l.serving("A")
	a.must(a.halt())
	h := l.examine(0)
	a.must(a.start())
	_, err := l.operator().ForceRelease(t.Context(), h)
	wantErrAs[*ChangedError](t, err)
	a.mustBeat()
}

// While a slot is frozen, its record in ZooKeeper may be out of date. So ForceRelease and
// LowerBound refuse.
func TestTakeAwayInAFreeze(t *testing.T) {
	l := newLab(t, 4)
	a, b := l.serving("A"), l.serving("B")
	h := l.examine(0)
	l.remove(slotPath(1))
	b.mustBeat() // puts it back, and freezes
	for name, f := range map[string]func(context.Context, Holding) (Entry, error){
		"take away": l.operator().ForceRelease,
		"lower":     func(ctx context.Context, h Holding) (Entry, error) { return l.operator().LowerBound(ctx, h, 0) },
	} {
		_, err := f(t.Context(), h)
		if frozen := wantErrAs[*StillFrozenError](t, err); frozen.Until != l.cluster().FrozenUntil {
			t.Errorf("%s: %+v", name, frozen)
		}
	}
	a.mustBeat()
}

// An operator takes a slot away when ZooKeeper has an older copy of its record. The holder comes
// back, and the slot is still its own.
func TestTakeAwayOfAnOlderCopy(t *testing.T) {
	l := newLab(t, 1)
	a := l.serving("A")
	copied := l.mem.Snapshot()
	for range 4 {
		l.pass(DefaultHeartbeat)
		a.mustBeat()
	}
	a.sess.Partition()
	l.mem.Restore(copied)
	l.forget()
	s := l.takeAway(0).Slot
	a.sess.Heal()
	b := a.mustBeat()
	if !b.Lost || b.Claim.Term != s.Term+1 || l.slot(0).Released {
		t.Errorf("%+v, %+v", b, l.slot(0))
	}
	if !l.cluster().Frozen(0, l.now) {
		t.Error("it is not frozen")
	}
	l.disjoint()
}

// ForceRelease replaces a record that is missing or cannot be read by a Lost record, which keeps
// the slot for as long as its holder's lease can run.
func TestTakeAwayOfALostRecord(t *testing.T) {
	for name, spoil := range map[string]func(l *lab){
		"absent":     func(l *lab) { l.remove(slotPath(0)) },
		"unreadable": func(l *lab) { l.put(0, Slot{}); l.forget() },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1)
			a := l.serving("A")
			a.sess.Partition()
			a.sess.Expire()
			spoil(l)
			e := l.takeAway(0)
			if want := l.now + millis(labW) + lossTolerance; !e.Slot.Lost || e.Slot.LeaseUntil != want || l.slot(0).LeaseUntil != want {
				t.Errorf("%+v, want H %d", e, want)
			}
			a.sess.Heal()
			if b := a.mustBeat(); !b.Lost || l.slot(0).Node != a.claim.Node {
				t.Errorf("%+v, %+v", b, l.slot(0))
			}
		})
	}
}

// After LowerBound, a new holder acquires the slot without waiting for the old lease bound.
func TestLowerBound(t *testing.T) {
	ahead := int64(millis(time.Minute))
	for name, row := range map[string]struct {
		before func(a *member)
		want   func(now int64, was Slot) int64
	}{
		"killed":  {func(a *member) { a.crash() }, func(now int64, _ Slot) int64 { return now + lossTolerance }},
		"stopped": {func(a *member) { a.must(a.halt()) }, func(now int64, _ Slot) int64 { return now + lossTolerance }},
		"its clock was behind": {func(a *member) { a.skew = -3_000; a.mustBeat(); a.crash() },
			func(now int64, _ Slot) int64 { return now + lossTolerance }},
		"its clock was ahead": {func(a *member) {
			a.skew = ahead
			a.mustBeat()
			a.pass(4 * time.Second)
			a.extend()
			a.issue()
			a.crash()
		},
			func(now int64, _ Slot) int64 { return now + ahead + lossTolerance }},
		"its clock was ahead, and it stopped": {func(a *member) {
			a.skew = ahead
			a.mustBeat()
			a.pass(4 * time.Second)
			a.extend()
			a.issue()
			a.must(a.halt())
		},
			func(_ int64, was Slot) int64 { return was.StoppedAt + lossTolerance }},
		"its lease is over": {func(a *member) { a.crash(); a.pass(labW) }, func(_ int64, was Slot) int64 { return was.LeaseUntil }},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1)
			a := l.serving("A")
			a.wait = time.Hour
			a.mustBeat()
			row.before(a)
			l.expire()
			l.pass(time.Second)
			was := l.slot(0)
			l.takeAway(0)
			e, err := l.operator().LowerBound(t.Context(), l.examine(0), 0)
			if want := row.want(l.now, was); err != nil || e.Slot.LeaseUntil != want || l.slot(0).LeaseUntil != want {
				t.Fatalf("H is %d, want %d, %v", e.Slot.LeaseUntil-l.now, want-l.now, err)
			}
			again, err := l.operator().LowerBound(t.Context(), l.examine(0), 0)
			if err != nil || again.Slot.LeaseUntil != e.Slot.LeaseUntil {
				t.Errorf("%+v, %v", again, err)
			}
			l.now = max(l.now, e.Slot.LeaseUntil-millis(cooldown))
			b := l.serving("B")
			if b.claim.Worker != 0 || b.past[0].lo < min(was.LeaseUntil, l.now) {
				t.Errorf("%+v", b.claim)
			}
			l.disjoint()
		})
	}
}

// The new bound is the latest time that the holder may have reached, plus lossTolerance and
// BorrowMs. It is not above the old bound, unless the state directory's bound is.
func TestLowered(t *testing.T) {
	const now, far = int64(1_000_000), int64(9_000_000)
	cl := Cluster{BorrowMs: 300}
	for name, row := range map[string]struct {
		slot     Slot
		notBelow int64
		want     int64
	}{
		"nothing is known":                           {Slot{LeaseUntil: far}, 0, now + lossTolerance + 300},
		"the bound is nearer":                        {Slot{LeaseUntil: now + 5}, 0, now + 5},
		"its clock is ahead":                         {Slot{LeaseUntil: far, AheadMs: 70}, 0, now + 70 + lossTolerance + 300},
		"it stopped by a clock that was ahead":       {Slot{LeaseUntil: far, StoppedAt: now + 71}, 0, now + 71 + lossTolerance + 300},
		"it had reached more before it was set back": {Slot{LeaseUntil: far, TrustedClock: now + 72}, 0, now + 72 + lossTolerance + 300},
		"it reported more":                           {Slot{LeaseUntil: far, ReportedClock: now + 73}, 0, now + 73 + lossTolerance + 300},
		"its state ends below":                       {Slot{LeaseUntil: far}, now + lossTolerance, now + lossTolerance + 300},
		"its state ends above":                       {Slot{LeaseUntil: far}, now + lossTolerance + 301, now + lossTolerance + 301},
		"its state ends above an older bound":        {Slot{LeaseUntil: now + 5}, far, far},
	} {
		if got := lowered(row.slot, cl, now, row.notBelow); got != row.want {
			t.Errorf("%s: %d ms from now, want %d", name, got-now, row.want-now)
		}
	}
}

// The holder may have issued by a clock that was ahead while it could not reach ZooKeeper. So
// LowerBound does not go below the bound in the holder's state directory.
func TestLowerBoundStaysAboveTheStateDirectory(t *testing.T) {
	l := newLab(t, 1)
	a := l.serving("A")
	a.wait = time.Hour
	a.mustBeat()
	a.crash()
	l.expire()
	issued := l.now + 45_000
	l.takeAway(0)
	e, err := l.operator().LowerBound(t.Context(), l.examine(0), issued)
	if err != nil || e.Slot.LeaseUntil != issued {
		t.Errorf("H is %d ms beyond what may have been issued, %v", e.Slot.LeaseUntil-issued, err)
	}
	// ZooKeeper may have an older copy of the record, with a bound below that.
	far := e.Slot.LeaseUntil + 99_000
	if e, err = l.operator().LowerBound(t.Context(), l.examine(0), far); err != nil || e.Slot.LeaseUntil != far {
		t.Errorf("H is %d ms beyond what was issued, %v", e.Slot.LeaseUntil-far, err)
	}
}

func TestTakeAwayFromNobody(t *testing.T) {
	l := newLab(t, 4)
	a := l.serving("A")
	a.must(a.leave())
	l.put(2, Slot{LeaseUntil: l.now + millis(labW), Lost: true})
	for w := range 4 {
		before := l.slot(w)
		if _, err := l.operator().ForceRelease(t.Context(), l.examine(w)); !errors.Is(err, ErrNotHeld) || l.slot(w) != before {
			t.Errorf("%d: %v, %+v", w, err, l.slot(w))
		}
	}
}

func TestLowerBoundRefused(t *testing.T) {
	l := newLab(t, 2)
	a := l.serving("A")
	l.takeAway(0)
	if _, err := l.operator().LowerBound(t.Context(), l.examine(0), 0); !errors.Is(err, ErrConnected) {
		t.Errorf("connected: %v", err)
	}
	a.crash()
	l.expire()
	b := l.serving("B")
	b.crash()
	l.expire()
	was := l.slot(1)
	if _, err := l.operator().LowerBound(t.Context(), l.examine(1), 0); err == nil || l.slot(1).LeaseUntil != was.LeaseUntil {
		t.Errorf("not taken away: %v", err)
	}
}
