package seq

import (
	"context"
	"fmt"
	"slices"

	"github.com/flaked/flaked/internal/core/seq/record"
)

// trusted is the clock that is right in a history. The others may be wrong, all of them at once.
type trusted int

const (
	// bootRight: the boot clocks are right within 2.4 %. Wall clocks step.
	bootRight trusted = iota
	// wallRight: the wall clocks are right. Boot clocks run at any rate, and stand still while a machine does. The clock of
	// ZooKeeper's leader leaps.
	wallRight
	// leaderRight: the clock of ZooKeeper's leader is right. Boot clocks are as above, and too slow if they are wrong. Wall
	// clocks are late by the time for which the machine stood still, until somebody sets them.
	leaderRight
)

func (t trusted) String() string { return [...]string{"boot", "wall", "leader's"}[t] }

// simMachine has the clocks of a node's machine, in ns.
type simMachine struct {
	n      *simNode
	boot   float64 // at the time at, ms
	at     int64
	rate   float64 // of the boot clock
	offset int64   // of the wall clock, ms
	late   int64   // how far the wall clock is late because the machine stood still, ms
	stands bool    // still, while its node does
}

func (n *simNode) newMachine() *simMachine {
	m := &simMachine{n: n, offset: n.h.offset(), at: n.h.now, rate: 1}
	m.start()
	m.setRate()
	return m
}

// start makes the boot clock count anew.
func (m *simMachine) start() {
	m.goOn()
	m.boot = float64(m.n.h.rng.Int64N(100_000)) * 1e6
}

// setRate changes the rate of the boot clock.
func (m *simMachine) setRate() {
	m.goOn()
	h := m.n.h
	switch h.right {
	case bootRight:
		if h.drift {
			m.rate = []float64{0.976, 1, 1.024}[h.rng.IntN(3)]
		}
	case wallRight:
		m.rate = []float64{0.5, 0.85, 1, 1, 1.15, 2}[h.rng.IntN(6)]
	case leaderRight:
		m.rate = []float64{0.5, 0.85, 1}[h.rng.IntN(3)]
	}
}

// goOn lets the boot clock count until now, but for the time for which the machine stood still.
func (m *simMachine) goOn() {
	now, until := m.n.h.now, m.n.pauseTill
	if m.stands {
		if now < until {
			return
		}
		if until == 0 { // somebody has ended that
			until = now
		}
		if m.n.h.right == leaderRight {
			m.late += until - m.at
		}
		m.at, m.stands = until, false
	}
	m.boot += float64(now-m.at) * m.rate * 1e6
	m.at = now
}

func (m *simMachine) Boot() int64 {
	m.goOn()
	return int64(m.boot) + 1
}

func (m *simMachine) Mono() int64 { return m.Boot() }

func (m *simMachine) Wall() int64 {
	m.goOn()
	return (simEpoch + m.n.h.now + m.offset - m.late) * 1e6
}

func (m *simMachine) String() string {
	return fmt.Sprintf("runs at %v, its wall clock is off by %d ms, and late by %d ms", m.rate, m.offset, m.late)
}

// standStill makes a node stand still, alone or with its machine.
func (h *history) standStill(n *simNode, ms int64) {
	n.machine.goOn()
	n.pauseTill = h.now + ms
	if h.right == bootRight || h.rng.IntN(2) == 0 {
		h.note("node %d stands still until %d", n.id, n.pauseTill)
		return
	}
	n.machine.stands = true
	h.note("the machine of node %d stands still until %d", n.id, n.pauseTill)
}

// loseStanding: the only node that knows the sequence time is cut off for minutes, or its machine stands still. Another
// one uses the ceiling up, and is lost with its directory. ZooKeeper is put back to a copy from before. So the skip
// covers that only if the node knows how much time has passed.
func (h *history) loseStanding() {
	h.calm()
	name := h.names[h.rng.IntN(len(h.names))]
	gone, x := h.nodes[0], h.nodes[1]
	r, _, err := h.operator(h.mem.Session()).Show(context.Background(), name)
	if err != nil || r.DeletedAt != 0 || r.Mode != record.Segment || r.HardCeiling > 1000 {
		return
	}
	c := simCopy{h.now, h.mem.Snapshot()}
	h.run(3*h.heartbeat.Milliseconds() + 1000)
	if !slices.Contains(h.able(c.at), x) {
		return
	}
	for _, n := range h.nodes {
		if n != gone && n != x {
			n.cut = true
			n.store.Partition()
		}
	}
	long := 40_000 + h.rng.Int64N(300_000)
	if h.rng.IntN(2) == 0 {
		x.store.Expire()
		h.standStill(x, long)
	} else {
		x.cut = true
		x.store.Partition()
	}
	for end := h.now + long; h.now < end; h.run(1000) {
		h.ask(gone, name, int(r.HardCeiling), false)
	}
	gone.start(false)
	gone.cut = true
	gone.store.Partition()
	h.putBack(c, x)
	x.cut, x.pauseTill = false, 0
	x.store.Heal()
	if h.rng.IntN(2) == 0 {
		x.round() // before its first heartbeat
	}
	for h.now < h.noticeBy+2*h.confirm.Milliseconds() {
		h.run(500)
		h.ask(x, name, int(1+h.rng.Int64N(r.HardCeiling)), false)
	}
	gone.cut = false
	gone.store.Heal()
}
