package timeguard

import (
	"sync/atomic"
	"time"
)

// Elapsed measures how much time passes. No single clock can be trusted with that: a hypervisor that pauses a machine
// stops its boot clock, a boot clock may run at a wrong rate, and a wall clock can step. So Elapsed compares three
// clocks: the boot clock, the wall clock, and the stamps of ZooKeeper's leader on this node's own acknowledged writes.
//
// AtMost and AtLeast are two clocks made of these. A rule to which a shorter time is dangerous goes by AtMost, and a
// rule to which a longer time is dangerous goes by AtLeast. Both are right while one of the three clocks is right on
// their side. docs/safety.md has the table of the rules.
//
// Any goroutine may read them. One goroutine at a time may call Note and Acknowledged.
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

// Continue goes on from a moment of an earlier process on this boot of the machine.
func (e *Elapsed) Continue(m Moment) {
	now := m.at(e.clock.Boot(), e.clock.Wall())
	e.last.Store(&now)
}

// AtLeast returns a clock, in ns, that counts no more than the time that has passed.
func (e *Elapsed) AtLeast() int64 { return e.Now().Least }

// AtMost returns a clock, in ns, that counts no less than the time that has passed.
func (e *Elapsed) AtMost() int64 { return e.Now().Most }

// Now returns the present moment.
func (e *Elapsed) Now() Moment { return e.last.Load().at(e.clock.Boot(), e.clock.Wall()) }

// at returns the moment at which the clocks of the machine have these readings. A clock that went back has counted
// nothing.
func (m Moment) at(boot, wall int64) Moment {
	//mutant:c31-boot-clock-alone by TestElapsed -> b, w := max(0, boot-m.Boot), max(0, boot-m.Boot)
	b, w := max(0, boot-m.Boot), max(0, wall-m.Wall)
	return Moment{boot, wall, m.Least + min(b, w), m.Most + max(b, w)}
}

// Note makes the clocks go on from now. So a step of the wall clock changes them by no more than what has passed since
// the last call. The node calls it at each heartbeat.
func (e *Elapsed) Note() {
	now := e.Now()
	e.last.Store(&now)
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
	last := *e.last.Load()
	//mutant:c31-leader-not-asked by TestElapsedByTheLeader -> missed = 0
	last.Most += missed
	last.Least -= added
	e.last.Store(&last)
	// What was missed or added may have passed before the write was sent, so both moments are corrected.
	for _, m := range []*Moment{&now.Sent, &now.Acked} {
		m.Most, m.Least = m.Most+missed, m.Least-added
	}
	return now
}
