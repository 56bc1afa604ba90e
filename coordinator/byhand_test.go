package coordinator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func (l *lab) byHand() ByHand {
	return ByHand{Store: l.admin, Now: func() int64 { return l.now }, By: "test"}
}

func (l *lab) examine(worker int) Holding {
	l.Helper()
	h, err := l.byHand().Examine(l.Context(), worker)
	if err != nil {
		l.Fatal(err)
	}
	return h
}

// takeAway has somebody take a slot from its holder.
func (l *lab) takeAway(worker int) Entry {
	l.Helper()
	e, err := l.byHand().TakeAway(l.Context(), l.examine(worker))
	if err != nil {
		l.Fatal(err)
	}
	l.observe()
	return e
}

// Whatever its holder does at the time, the next one begins where it ends.
func TestTakeAway(t *testing.T) {
	for name, row := range map[string]struct {
		before func(a *member)
		was    Availability
		after  func(a *member) // to the holder, from then on
	}{
		"connected": {func(*member) {}, Live, func(a *member) {
			_, err := a.beat()
			wantFenced(t, err)
		}},
		"cut off, and back": {func(a *member) { a.sess.Partition(); a.sess.Expire() }, Detached, func(a *member) {
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
		"cut off for good": {func(a *member) { a.sess.Partition(); a.sess.Expire() }, Detached, func(a *member) {
			for range 100 {
				a.pass(time.Second)
				a.extend()
				a.issue()
			}
		}},
		"killed, and started": {func(a *member) { a.crash(); a.expire() }, Detached, func(a *member) {
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
			e, err := l.byHand().TakeAway(t.Context(), h)
			if err != nil {
				t.Fatal(err)
			}
			s := l.slot(0)
			if s.H != was.H || s.Term != was.Term+1 || s.Nonce == was.Nonce || s.Settled || !s.Released || s.ReleasedBy != "test" || e.Slot.Term != s.Term {
				t.Errorf("%+v became %+v", was, s)
			}
			row.after(a)
			a.up = false
			a.sess.Expire()
			if l.now < s.H-millis(cooldown) {
				full := wantErrAs[*FullError](t, l.node("too early").register())
				if full.Cooled != 1 {
					t.Errorf("%+v", full)
				}
			}
			l.now = max(l.now, s.H-millis(cooldown))
			b := l.serving("B")
			if b.past[0].lo < was.H || b.claim.Term != s.Term+1 {
				t.Errorf("%+v after %+v", b.claim, s)
			}
			l.disjoint()
		})
	}
}

func ptr[T any](v T) *T { return &v }

// A heartbeat that comes in between makes no difference; another holder does.
func TestTakeAwayMeanwhile(t *testing.T) {
	l := newLab(t, 1)
	a := l.serving("A")
	h := l.examine(0)
	beats := 0
	l.admin.SetFault(func(c Call) Fault {
		if c.Op == "set" && beats < 3 {
			beats++
			l.pass(time.Second)
			a.mustBeat()
		}
		return NoFault
	})
	e, err := l.byHand().TakeAway(t.Context(), h)
	if err != nil || beats != 3 || e.Slot.H != a.claim.H || e.Slot.H <= h.Slot.H {
		t.Errorf("%+v, %v after %d heartbeats", e, err, beats)
	}
	l.admin.SetFault(nil)
	_, err = l.byHand().TakeAway(t.Context(), h)
	if changed := wantErrAs[*ChangedError](t, err); changed.Slot.Term != 2 {
		t.Errorf("%+v", changed)
	}
}

// Whose lease was over when it was looked at, and who has come back since, is not
// taken from: that would be another question.
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
	_, err := l.byHand().TakeAway(t.Context(), h)
	wantErrAs[*ChangedError](t, err)
}

// A restart in between is a change of hands.
func TestTakeAwayAfterARestart(t *testing.T) {
	l := newLab(t, 1)
	a := l.serving("A")
	a.must(a.halt())
	h := l.examine(0)
	a.must(a.start())
	_, err := l.byHand().TakeAway(t.Context(), h)
	wantErrAs[*ChangedError](t, err)
	a.mustBeat()
}

// What ZooKeeper says may be out of date while it is frozen.
func TestTakeAwayInAFreeze(t *testing.T) {
	l := newLab(t, 4)
	a, b := l.serving("A"), l.serving("B")
	h := l.examine(0)
	l.remove(slotPath(1))
	b.mustBeat() // puts it back, and freezes
	for name, f := range map[string]func(context.Context, Holding) (Entry, error){
		"take away": l.byHand().TakeAway,
		"lower":     func(ctx context.Context, h Holding) (Entry, error) { return l.byHand().LowerBound(ctx, h, 0) },
	} {
		_, err := f(t.Context(), h)
		if frozen := wantErrAs[*StillFrozenError](t, err); frozen.Until != l.cluster().FrozenUntil {
			t.Errorf("%s: %+v", name, frozen)
		}
	}
	a.mustBeat()
}

// An owner that ZooKeeper had forgotten comes back to a slot that was taken
// away: it is still its own.
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

// What cannot be read is kept for as long as its owner can live.
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
			if want := l.now + millis(labW) + lossTolerance; !e.Slot.Lost || e.Slot.H != want || l.slot(0).H != want {
				t.Errorf("%+v, want H %d", e, want)
			}
			a.sess.Heal()
			if b := a.mustBeat(); !b.Lost || l.slot(0).Node != a.claim.Node {
				t.Errorf("%+v, %+v", b, l.slot(0))
			}
		})
	}
}

// A bound that is lowered is where the next holder begins, at once.
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
			func(_ int64, was Slot) int64 { return was.StoppedM + lossTolerance }},
		"its lease is over": {func(a *member) { a.crash(); a.pass(labW) }, func(_ int64, was Slot) int64 { return was.H }},
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
			e, err := l.byHand().LowerBound(t.Context(), l.examine(0), 0)
			if want := row.want(l.now, was); err != nil || e.Slot.H != want || l.slot(0).H != want {
				t.Fatalf("H is %d, want %d, %v", e.Slot.H-l.now, want-l.now, err)
			}
			again, err := l.byHand().LowerBound(t.Context(), l.examine(0), 0)
			if err != nil || again.Slot.H != e.Slot.H {
				t.Errorf("%+v, %v", again, err)
			}
			l.now = max(l.now, e.Slot.H-millis(cooldown))
			b := l.serving("B")
			if b.claim.Worker != 0 || b.past[0].lo < min(was.H, l.now) {
				t.Errorf("%+v", b.claim)
			}
			l.disjoint()
		})
	}
}

// Each thing that is known of the holder counts where it is the highest: the next one
// begins a clock's error and what may be borrowed above it.
func TestLowered(t *testing.T) {
	const now, far = int64(1_000_000), int64(9_000_000)
	cl := Cluster{BorrowMs: 300}
	for name, row := range map[string]struct {
		slot     Slot
		notBelow int64
		want     int64
	}{
		"nothing is known":                           {Slot{H: far}, 0, now + lossTolerance + 300},
		"the bound is nearer":                        {Slot{H: now + 5}, 0, now + 5},
		"its clock is ahead":                         {Slot{H: far, AheadMs: 70}, 0, now + 70 + lossTolerance + 300},
		"it stopped by a clock that was ahead":       {Slot{H: far, StoppedM: now + 71}, 0, now + 71 + lossTolerance + 300},
		"it had reached more before it was set back": {Slot{H: far, Reached: now + 72}, 0, now + 72 + lossTolerance + 300},
		"it reported more":                           {Slot{H: far, Reported: now + 73}, 0, now + 73 + lossTolerance + 300},
		"its state ends below":                       {Slot{H: far}, now + lossTolerance, now + lossTolerance + 300},
		"its state ends above":                       {Slot{H: far}, now + lossTolerance + 301, now + lossTolerance + 301},
		"its state ends above an older bound":        {Slot{H: now + 5}, far, far},
	} {
		if got := lowered(row.slot, cl, now, row.notBelow); got != row.want {
			t.Errorf("%s: %d ms from now, want %d", name, got-now, row.want-now)
		}
	}
}

// What has to be over is judged by the earlier of two clocks, and what is to come by
// the later.
func TestMomentIsOfBothClocks(t *testing.T) {
	for _, skew := range []int64{0, 3_000, -3_000} {
		l := newLab(t, 1)
		hand := l.byHand()
		hand.Now = func() int64 { return l.now + skew }
		_, now, err := hand.begin(t.Context())
		if want := (moment{l.now + min(0, skew), l.now + max(0, skew)}); err != nil || now != want {
			t.Errorf("%d ms ahead of the leader: %+v, want %+v, %v", skew, now, want, err)
		}
	}
}

// The holder issued by a clock that was ahead while ZooKeeper could not hear it. What
// its state directory held is where the next holder begins at the earliest.
func TestLowerBoundStaysAboveTheStateDirectory(t *testing.T) {
	l := newLab(t, 1)
	a := l.serving("A")
	a.wait = time.Hour
	a.mustBeat()
	a.crash()
	l.expire()
	issued := l.now + 45_000
	l.takeAway(0)
	e, err := l.byHand().LowerBound(t.Context(), l.examine(0), issued)
	if err != nil || e.Slot.H != issued {
		t.Errorf("H is %d ms beyond what may have been issued, %v", e.Slot.H-issued, err)
	}
	// ZooKeeper may have an older copy, with a lower bound.
	far := e.Slot.H + 99_000
	if e, err = l.byHand().LowerBound(t.Context(), l.examine(0), far); err != nil || e.Slot.H != far {
		t.Errorf("H is %d ms beyond what was issued, %v", e.Slot.H-far, err)
	}
}

func TestTakeAwayFromNobody(t *testing.T) {
	l := newLab(t, 4)
	a := l.serving("A")
	a.must(a.leave())
	l.put(2, Slot{H: l.now + millis(labW), Lost: true})
	for w := range 4 {
		before := l.slot(w)
		if _, err := l.byHand().TakeAway(t.Context(), l.examine(w)); !errors.Is(err, ErrNotHeld) || l.slot(w) != before {
			t.Errorf("%d: %v, %+v", w, err, l.slot(w))
		}
	}
}

func TestLowerBoundRefused(t *testing.T) {
	l := newLab(t, 2)
	a := l.serving("A")
	l.takeAway(0)
	if _, err := l.byHand().LowerBound(t.Context(), l.examine(0), 0); !errors.Is(err, ErrConnected) {
		t.Errorf("connected: %v", err)
	}
	a.crash()
	l.expire()
	b := l.serving("B")
	b.crash()
	l.expire()
	was := l.slot(1)
	if _, err := l.byHand().LowerBound(t.Context(), l.examine(1), 0); err == nil || l.slot(1).H != was.H {
		t.Errorf("not taken away: %v", err)
	}
}

// Our own clock decides nothing while it is wrong.
func TestByHandWithAWrongClock(t *testing.T) {
	for name, skew := range map[string]int64{"ahead": 6000, "behind": -6000} {
		l := newLab(t, 2)
		a := l.serving("A")
		a.crash()
		l.expire()
		h, before, frozen := l.examine(0), l.slot(0), l.cluster()
		hand := l.byHand()
		hand.Now = func() int64 { return l.now + skew }
		_, err1 := hand.Examine(t.Context(), 0)
		_, err2 := hand.TakeAway(t.Context(), h)
		_, err3 := hand.LowerBound(t.Context(), h, 0)
		_, _, err4 := hand.Freeze(t.Context(), "0-1", time.Hour)
		for _, err := range []error{err1, err2, err3, err4} {
			if wrong := wantErrAs[*ClocksError](t, err); millis(wrong.Ahead) != skew {
				t.Errorf("%s: %v", name, wrong)
			}
		}
		if s := l.slot(0); s.Nonce != before.Nonce || l.cluster() != frozen || len(l.children(livePath)) != 0 {
			t.Errorf("%s: %+v, %+v, %q", name, s, l.cluster(), l.children(livePath))
		}
	}
}

func TestFreezeByHand(t *testing.T) {
	l := newLab(t, 4)
	a := l.serving("A")
	hand := l.byHand()
	was, is, err := hand.Freeze(t.Context(), "0-3", 0)
	if want := l.now + millis(labW) + lossTolerance; err != nil || was.FrozenUntil != 0 || is.FrozenUntil != want || is.Open != "" || l.cluster() != is {
		t.Fatalf("%+v, %+v, %v", was, is, err)
	}
	frozen := wantErrAs[*FrozenError](t, l.node("B").register())
	if frozen.Until != is.FrozenUntil || frozen.By != "test" || !strings.Contains(frozen.Error(), "until 2023-11-15T22:13:40Z, by test: wait") || len(l.children(ticketsPath)) != 1 {
		t.Errorf("%+v, tickets %q", frozen, l.children(ticketsPath))
	}
	a.mustBeat() // its own lease runs
	a.must(a.halt())
	a.must(a.start())
	a.settle()

	// Shorter, or of fewer, changes nothing; longer does, and so does more.
	for _, row := range []struct {
		workers WorkerSet
		d       time.Duration
		until   int64
	}{
		{"0-1", time.Hour, is.FrozenUntil},
		{"0-1", 48 * time.Hour, l.now + 48*hourMs},
	} {
		_, is, err = hand.Freeze(t.Context(), row.workers, row.d)
		if err != nil || is.FrozenUntil != row.until || is.Open != "" {
			t.Errorf("%+v: %+v, %v", row, is, err)
		}
	}
	// An owner that notices the loss undoes nothing of it.
	l.remove(slotPath(0))
	a.mustBeat()
	if cl := l.cluster(); cl.Open != "" || cl.FrozenUntil != is.FrozenUntil {
		t.Errorf("%+v", cl)
	}
	if _, err := Thaw(t.Context(), l.admin, l.cluster(), ""); err != nil {
		t.Fatal(err)
	}
	l.serving("C")
	// A freeze that is over counts for nothing.
	_, is, err = hand.Freeze(t.Context(), "0-2", time.Minute)
	if err != nil || is.Open != "3" {
		t.Errorf("%+v, %v", is, err)
	}
	l.pass(time.Hour)
	_, is, err = hand.Freeze(t.Context(), "0-1", time.Minute)
	if err != nil || is.Open != "2-3" || is.FrozenUntil != l.now+millis(time.Minute) {
		t.Errorf("%+v, %v", is, err)
	}
}

const hourMs = int64(time.Hour / time.Millisecond)

// A freeze of some workers, and an owner with a longer lease than what is left of
// it: the owner's is longer, and of all workers.
func TestFreezeByHandIsKept(t *testing.T) {
	l := newLab(t, 256)
	a := l.serving("A")
	if _, _, err := l.byHand().Freeze(t.Context(), "0-99", time.Hour); err != nil {
		t.Fatal(err)
	}
	l.remove(slotPath(0))
	a.mustBeat()
	if cl := l.cluster(); cl.Open != "" || cl.FrozenUntil != l.now+millis(labW)+lossTolerance {
		t.Errorf("%+v", cl)
	}
}

func TestByHandWithoutACluster(t *testing.T) {
	l := newLab(t, 2)
	h := l.examine(1)
	l.remove(clusterPath)
	hand := l.byHand()
	_, err1 := hand.Examine(t.Context(), 0)
	_, err2 := hand.TakeAway(t.Context(), h)
	_, _, err3 := hand.Freeze(t.Context(), "0-1", 0)
	for _, err := range []error{err1, err2, err3} {
		if !errors.Is(err, ErrNoCluster) {
			t.Errorf("got %v", err)
		}
	}
	l.cl.UUID = "another"
	l.init(l.cl)
	_, err := hand.TakeAway(t.Context(), h)
	wantErrAs[*OtherClusterError](t, err)
}

// TestModelByHand: people who take slots away at any moment, and lower bounds of
// nodes that are no more, make nothing overlap.
func TestModelByHand(t *testing.T) {
	taken, lowered := 0, 0
	runModel(t, 1000, func(t testing.TB, seed uint64) {
		d := newModel(t, seed)
		d.skews = []int64{0, 0, 2000, -2000}
		d.hands = func() {
			w := d.rng.IntN(d.cl.Slots)
			hand := ByHand{Store: d.admin, Now: func() int64 { return d.now }, By: "model"}
			h, err := hand.Examine(d.Context(), w)
			if err != nil {
				d.Fatal(err)
			}
			if h.Slot.Term > 0 && !h.Slot.Released {
				d.note("by hand", "takes away %d, %v", w, h.Availability)
				if _, err := hand.TakeAway(d.Context(), h); err != nil {
					d.Error(err)
				}
				d.observe()
				taken++
			}
			if !d.goneFrom(w) {
				return
			}
			if h, err = hand.Examine(d.Context(), w); err != nil {
				d.Fatal(err)
			}
			if !h.Live && h.Slot.Released && h.Slot.ReleasedBy != "" {
				e, err := hand.LowerBound(d.Context(), h, 0)
				d.note("by hand", "lowers %d to %d, %v", w, e.Slot.H-memNow, err)
				if err != nil {
					d.Error(err)
				}
				lowered++
			}
		}
		d.run(60)
		if !t.Failed() {
			d.ends()
		}
	})
	t.Logf("%d taken away, %d bounds lowered", taken, lowered)
	if taken < 50 || lowered < 20 {
		t.Error("too little happens in these histories")
	}
}

// goneFrom ends those who may hold a slot, with their disks, for good: what
// somebody has to know who lowers a bound. Not in the middle of a step of theirs.
func (d *model) goneFrom(worker int) bool {
	var holders []*member
	for _, m := range d.nodes {
		if m.up && m.claim.Worker == worker || m.disk.usable && m.disk.claim.Worker == worker {
			if d.busy[m] {
				return false
			}
			holders = append(holders, m)
		}
	}
	for _, m := range holders {
		m.disk = &disk{cl: d.cl}
		m.crash()
	}
	d.expire()
	return true
}

type openLedger struct{}

func (openLedger) Save(Claim) (uint64, error) { return 1, nil }

// The same by both stores: a slot that is taken from a node that runs, lowered
// once that is gone, and taken by another with the first in its history.
func TestByHandConformance(t *testing.T) {
	for name, make := range map[string]func(*testing.T) world{"Mem": memWorld, "ZooKeeper": zkWorld} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := make(t)
			clock := func() int64 { return time.Now().UnixMilli() }
			admin := w.open(t)
			cl, err := CreateCluster(t.Context(), admin, Cluster{UUID: "c", Layout: "test", Slots: 1, LeaseMs: 24 * hourMs})
			if err != nil {
				t.Fatal(err)
			}
			take := func(name string) (*Coordinator, Claim, error) {
				c, err := New(Config{Store: w.open(t), Now: clock, Ledger: openLedger{}, Labels: Labels{Name: name}})
				if err != nil {
					t.Fatal(err)
				}
				c.Join(cl)
				g, err := c.Register(t.Context(), Claim{Node: "node-" + name}, time.Hour, func(Reading, []Reading) error { return nil })
				if err != nil {
					return c, g.Claim, err
				}
				if err := c.GoLive(t.Context(), g.Claim); err != nil {
					t.Fatal(err)
				}
				beat, err := c.Heartbeat(t.Context(), g.Claim, Report{Lease: time.Hour, Generation: 1, State: "serving", Settle: true})
				return c, beat.Claim, err
			}
			a, claim, err := take("a")
			if err != nil {
				t.Fatal(err)
			}
			hand := ByHand{Store: admin, Now: clock, By: "test"}
			found, err := hand.Examine(t.Context(), 0)
			if err != nil || found.Availability != Live || found.Slot.Name != "a" {
				t.Fatalf("%+v, %v", found, err)
			}
			if _, err := hand.TakeAway(t.Context(), found); err != nil {
				t.Fatal(err)
			}
			if found, err = hand.Examine(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			if _, err := hand.LowerBound(t.Context(), found, 0); !errors.Is(err, ErrConnected) {
				t.Errorf("%v", err)
			}
			_, err = a.Heartbeat(t.Context(), claim, Report{Lease: time.Hour, Generation: 1, State: "serving"})
			wantFenced(t, err) // and gives its lock up
			_, _, err = take("too early")
			wantErrAs[*FullError](t, err)
			e, err := hand.LowerBound(t.Context(), found, 0)
			if err != nil || e.Slot.H > clock()+lossTolerance+1000 {
				t.Fatalf("%+v, %v", e, err)
			}
			if _, _, err := take("b"); err != nil {
				t.Fatal(err)
			}
			now, err := ReadSlot(t.Context(), admin, cl, 0)
			if err != nil || !now.Live || now.Slot.Name != "b" || now.Slot.Term != 3 || now.Slot.names()[0] != "a by hand" {
				t.Errorf("%+v, %v", now, err)
			}
			if _, is, err := hand.Freeze(t.Context(), "0", time.Hour); err != nil || !is.Frozen(0, clock()) {
				t.Errorf("%+v, %v", is, err)
			}
			found.Slot = now.Slot
			_, err = hand.TakeAway(t.Context(), found)
			wantErrAs[*StillFrozenError](t, err)
			if names, err := admin.Children(t.Context(), livePath); err != nil || len(names) != 1 {
				t.Errorf("left behind: %q, %v", names, err)
			}
		})
	}
}

func TestForgetTicket(t *testing.T) {
	l := newLab(t, 4)
	l.serving("A")
	b := l.node("B")
	b.hook = faulty(FailBefore, 0, 1, touching("multi", slotPath(1)))
	if b.register() == nil {
		t.Fatal("it was to die with a ticket drawn")
	}
	b.crash()
	if _, err := l.admin.Create(t.Context(), ticketsPath+"/rubbish", []byte("{"), Persistent); err != nil {
		t.Fatal(err)
	}
	entries, err := ReadSlots(t.Context(), l.admin, l.cluster())
	if err != nil {
		t.Fatal(err)
	}
	unused, err := UnusedTickets(t.Context(), l.admin, entries)
	if err != nil || len(unused) != 2 || unused[0].Name != "n-0000000001" || unused[0].Labels.Name != "B" || unused[0].Stat.Ctime != l.now || unused[1].Name != "rubbish" || unused[1].Node != "" {
		t.Errorf("%+v, %v", unused, err)
	}
	inUse := wantErrAs[*TicketInUseError](t, ForgetTicket(t.Context(), l.admin, l.cluster(), "n-0000000000"))
	if inUse.Worker != 0 || inUse.Holder.Name != "A" {
		t.Errorf("%+v", inUse)
	}
	for _, name := range []string{"n-0000000001", "rubbish"} {
		if err := ForgetTicket(t.Context(), l.admin, l.cluster(), name); err != nil {
			t.Error(err)
		}
	}
	if err := ForgetTicket(t.Context(), l.admin, l.cluster(), "rubbish"); !errors.Is(err, ErrNoNode) {
		t.Errorf("%v", err)
	}
	if names := l.children(ticketsPath); len(names) != 1 {
		t.Errorf("%q", names)
	}
}
