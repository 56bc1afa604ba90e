package timeguard

import (
	"time"

	"go.uber.org/atomic"
)

// Elapsed measures how much time passes. No single clock can be trusted with that: a hypervisor that pauses a machine
// stops its boot clock, a boot clock may run at a wrong rate, and a wall clock can step. So Elapsed compares three
// clocks: the boot clock, the wall clock, and the stamps of ZooKeeper's leader on this node's own acknowledged writes.
//
// AtMost and AtLeast are two clocks made of these. A rule to which a shorter time is dangerous goes by AtMost, and a
// rule to which a longer time is dangerous goes by AtLeast. Both are right while one of the three clocks is right on
// their side. docs/design.md says which rule goes by which (C31).
//
// Any goroutine may read them. One goroutine at a time may call Continue and Acknowledged.
type Elapsed struct {
	clock Clock
	last  atomic.Pointer[Moment]
}

// Moment is a reading of all clocks. It can be kept on the disk, and continued by another process of the same boot.
type Moment struct {
	// Boot and Wall are the readings of both clocks of the machine, in ns.
	Boot int64 `json:"boot,omitempty"`
	Wall int64 `json:"wall,omitempty"`
	// Least and Most are the readings of AtLeast and AtMost, in ns.
	Least int64 `json:"least,omitempty"`
	Most  int64 `json:"most,omitempty"`
}

// Stamped is an acknowledged write. The leader stamped it between the moments Sent and Acked, when the leader's clock
// read Stamp, Unix ms. The zero value is no write.
type Stamped struct {
	Sent  Moment `json:"sent,omitzero"`
	Acked Moment `json:"acked,omitzero"`
	Stamp int64  `json:"stamp,omitempty"`
}

// NewElapsed returns an Elapsed that begins now. Both clocks begin with the reading of the boot clock.
func NewElapsed(c Clock) *Elapsed {
	e := &Elapsed{clock: c}
	boot := c.Boot()
	e.last.Store(&Moment{Boot: boot, Wall: c.Wall(), Least: boot, Most: boot})
	return e
}

// Continue goes on from a moment of an earlier process on this boot of the machine. Only simulations and tests call it.
func (e *Elapsed) Continue(m Moment) {
	now := m.at(e.clock.Boot(), e.clock.Wall())
	e.last.Store(&now)
}

// AtLeast returns a clock, in ns, that counts no more than the time that has passed.
func (e *Elapsed) AtLeast() int64 { return e.Now().Least }

// AtMost returns a clock, in ns, that counts no less than the time that has passed.
func (e *Elapsed) AtMost() int64 { return e.Now().Most }

// Elapsed counts from a last moment, and replaces that by the present one:
//
//   - if the clocks of the machine differ by clocksDiffer in what they have counted since then;
//   - after goesOnAfter, because a wall clock that steps back makes AtLeast forget what has passed since then.
const (
	clocksDiffer = int64(time.Millisecond)
	goesOnAfter  = int64(time.Second)
)

// Now returns the present moment. If the clocks differ in what they have counted, one of them has stepped, stands still
// or runs at a wrong rate, and both clocks go on from here. Else a wall clock that steps ahead and back would make
// AtMost go back, and one that steps back and ahead would make AtLeast count the same time twice.
func (e *Elapsed) Now() Moment {
	for {
		last := e.last.Load()
		now := last.at(e.clock.Boot(), e.clock.Wall())
		//mutant:c31-step-forgotten by TestElapsedOverStepsThatWereRead -> if true {
		if now.Most-now.Least-(last.Most-last.Least) < clocksDiffer && now.Most-last.Most < goesOnAfter {
			return now
		}
		next := now // so that the usual case allocates nothing
		if e.last.CompareAndSwap(last, &next) {
			return now
		}
	}
}

// at returns the moment at which the clocks of the machine have these readings. A clock that went back has counted
// nothing.
func (m Moment) at(boot, wall int64) Moment {
	//mutant:c31-boot-clock-alone by TestElapsed -> b, w := max(0, boot-m.Boot), max(0, boot-m.Boot)
	b, w := max(0, boot-m.Boot), max(0, wall-m.Wall)
	return Moment{boot, wall, m.Least + min(b, w), m.Most + max(b, w)}
}

// Rebase returns a moment of an earlier process by AtLeast and AtMost of this one, so that both show what has passed
// since then. sameBoot: the machine was not started again since. Else only the wall clock shows what has passed at
// most, and nothing shows what has passed at least.
//
// Example: since m, the boot clock has counted 30 s, and the wall clock 31 s. Then m is 30 s ago by AtLeast, and 31 s
// ago by AtMost. If the machine was started again meanwhile, m is 0 s ago by AtLeast, and 31 s ago by AtMost.
func (e *Elapsed) Rebase(m Moment, sameBoot bool) Moment {
	now := e.Now()
	if !sameBoot || m.Boot > now.Boot {
		return Moment{now.Boot, m.Wall, now.Least, now.Most - max(0, now.Wall-m.Wall)}
	}
	since := m.at(now.Boot, now.Wall)
	// After Continue with m, this process also counts what ZooKeeper's leader has shown since m.
	m.Least = max(m.Least, now.Least-(since.Least-m.Least))
	m.Most = min(m.Most, now.Most-(since.Most-m.Most))
	return m
}

// Acknowledged corrects both clocks by the stamps of two writes of this node, and returns the latter with corrected
// moments. before may be the zero value.
//
// The leader stamped the writes at some time between sending and acknowledging. So what lies between the stamps is at
// most what has passed from the first one's sending to the second one's acknowledgement, and at least what has passed
// from the first one's acknowledgement to the second one's sending.
func (e *Elapsed) Acknowledged(before, now Stamped) Stamped {
	if before == (Stamped{}) {
		return now
	}
	between := max(0, now.Stamp-before.Stamp) * int64(time.Millisecond)
	const tick = int64(time.Millisecond) // stamps are whole milliseconds
	missed := max(0, between-tick-(now.Acked.Most-before.Sent.Most))
	added := max(0, now.Sent.Least-before.Acked.Least-between-tick)
	//mutant:c31-leader-not-asked by TestElapsedByTheLeader -> missed = 0
	e.correct(missed, added)
	// What was missed or added may have passed before the write was sent, so both moments are corrected.
	for _, m := range []*Moment{&now.Sent, &now.Acked} {
		m.Most, m.Least = m.Most+missed, m.Least-added
	}
	return now
}

// correct adds what AtMost has missed, and takes off what AtLeast has counted too much.
func (e *Elapsed) correct(missed, added int64) {
	for {
		last := e.last.Load()
		next := *last
		next.Most, next.Least = next.Most+missed, next.Least-added
		if e.last.CompareAndSwap(last, &next) {
			return
		}
	}
}
