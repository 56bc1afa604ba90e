package coordinator

import (
	"testing"
	"time"
)

// The restart of a node that began without ZooKeeper is written, and the
// acknowledgement is lost: what it finds next is its own write.
func TestRestartReportIsNotFencedByItself(t *testing.T) {
	for name, fault := range map[string]Fault{"not applied": FailBefore, "not acknowledged": FailAfter} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 4)
			a := l.serving("A")
			a.crash()
			a.startAlone()
			a.hook = faulty(fault, 0, 2, touching("set", slotPath(0)))
			for range 2 {
				l.pass(time.Second)
				if _, err := a.beat(); err == nil {
					t.Fatal("acknowledged")
				}
			}
			a.hook = nil
			beat := a.mustBeat()
			if s := l.slot(0); beat.Settled || beat.Wait != labSettle || s.Nonce != a.claim.Nonce || s.Settled || a.restartedFrom != 0 {
				t.Errorf("%+v, %+v", beat, s)
			}
			a.settle()
			l.disjoint()
		})
	}
}

// An old copy of the state that is started alone is fenced also where it knows
// the nonce as one that was pending.
func TestRestartFromAnOldCopyIsFenced(t *testing.T) {
	l := newLab(t, 4)
	a := l.node("A")
	var copied disk
	a.must(a.register())
	a.settle()
	a.crash()
	a.disk.saving = func(c Claim) { copied = *a.disk; copied.claim = c }
	a.must(a.resume())
	a.disk.saving = nil
	copied.generation++
	a.settle()
	l.serve(time.Minute)

	b := l.node("copy of A")
	b.disk = &copied
	b.startAlone()
	if b.claim.PendingNonce != a.claim.Nonce {
		t.Fatalf("%+v is no copy of %+v in the making", b.claim, a.claim)
	}
	_, err := b.beat()
	wantFenced(t, err)
}

// An owner or a newcomer whose lease has run out finds its own record. Another
// may have had the slot since, and ZooKeeper may have been put back to a copy
// from before: only after another settling time is it known that nobody did.
func TestLapsedLeaseSettlesAnew(t *testing.T) {
	for name, first := range map[string]func(l *lab) *member{
		"owner": func(l *lab) *member { return l.serving("A") },
		"newcomer": func(l *lab) *member {
			a := l.node("A")
			a.must(a.register())
			return a
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1)
			a := first(l)
			copied := l.mem.Snapshot()
			a.sess.Partition()
			a.sess.Expire()
			l.pass(2 * time.Minute)
			b := l.serving("B")
			l.mem.Restore(copied)
			l.mem.ExpireOrphans()
			l.forget()

			a.sess.Heal()
			if beat := a.mustBeat(); beat.Settled || a.issue() || beat.Wait != labSettle {
				t.Fatalf("%+v, with B in the slot", beat)
			}
			l.pass(time.Second)
			if beat := b.mustBeat(); !beat.Lost || !b.issue() {
				t.Errorf("the owner did not come back: %+v", beat)
			}
			_, err := a.beat()
			wantFenced(t, err)
			l.disjoint()
		})
	}
}

// The same where nobody came in between: it serves again after the settling
// time, also when the write that began that was not acknowledged.
func TestLapsedLeaseServesAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		epoch uint32
		fault Fault
		wait  time.Duration
	}{
		"standalone":       {wait: labSettle},
		"not acknowledged": {wait: labSettle, fault: FailAfter},
		"not applied":      {wait: labSettle, fault: FailBefore},
		"steady ensemble":  {epoch: 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1)
			if tc.epoch > 0 {
				l.wipe()
				l.mem.SetEpoch(tc.epoch)
				l.init(l.cl)
			}
			a := l.serving("A")
			floor := a.t.lo
			l.pass(time.Hour)
			if tc.fault != NoFault {
				a.hook = faulty(tc.fault, 0, 1, touching("set", slotPath(0)))
				if _, err := a.beat(); err == nil {
					t.Fatal("acknowledged")
				}
			}
			started := l.now
			for !a.issue() {
				if beat := a.mustBeat(); beat.Settled && l.now-started < millis(tc.wait) {
					t.Fatalf("settled after %dms", l.now-started)
				}
				l.pass(time.Second)
				if l.now-started > millis(tc.wait+3*time.Second) {
					t.Fatalf("not settled after %dms", l.now-started)
				}
			}
			if a.claim.Lo <= floor {
				t.Errorf("the floor is %d still", a.claim.Lo)
			}
			l.disjoint()
		})
	}
}
