package seq

import (
	"context"
	"slices"
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/testkit/memcluster"
)

// trusted is the clock that is right in a history. The others may be wrong, all of them at once.
type trusted int

const (
	// bootRight: the boot clocks are right within 2.4 %. Wall clocks step.
	bootRight trusted = iota
	// wallRight: the wall clocks are right. Boot clocks run at any rate, and stand still while a machine does. The
	// clock of ZooKeeper's leader leaps.
	wallRight
	// leaderRight: the clock of ZooKeeper's leader is right. Boot clocks are as above, and too slow if they are wrong.
	// Wall clocks are late by the time for which the machine stood still, until somebody sets them.
	leaderRight
)

func (t trusted) String() string { return [...]string{"boot", "wall", "leader's"}[t] }

// newMachine returns the machine of a node.
func (h *history) newMachine() *memcluster.Machine {
	m := h.Machine()
	m.SetSkew(h.offset())
	h.boots(m)
	h.setRate(m)
	return m
}

// boots makes the boot clock of a machine count anew.
func (h *history) boots(m *memcluster.Machine) { m.SetBoot(1 + h.rng.Int64N(100_000)*1e6) }

// setRate changes the rate of the boot clock of a machine.
func (h *history) setRate(m *memcluster.Machine) {
	rates := []int64{1000}
	switch {
	case h.right == bootRight && h.drift:
		rates = []int64{976, 1000, 1024}
	case h.right == wallRight:
		rates = []int64{500, 850, 1000, 1000, 1150, 2000}
	case h.right == leaderRight:
		rates = []int64{500, 850, 1000}
	}
	m.SetRates(rates[h.rng.IntN(len(rates))], 1000)
}

// goesOn ends a standstill of a node and of its machine.
func (n *simNode) goesOn() {
	n.pauseTill = 0
	n.machine.Wake()
}

// standStill makes a node stand still, alone or with its machine. If no clock of the machine shows that, an owner could
// answer once more before its first heartbeat: nobody promises the order of an ordered sequence then (limit 11).
func (h *history) standStill(n *simNode, ms int64) {
	n.pauseTill = h.now + ms
	if h.right == bootRight || h.rng.IntN(2) == 0 || h.right == leaderRight && n.is.issuer.owns() {
		h.note("node %d stands still until %d", n.id, n.pauseTill)
		return
	}
	n.machine.Pause(time.Duration(ms)*time.Millisecond, h.right == leaderRight)
	h.note("the machine of node %d stands still until %d", n.id, n.pauseTill)
}

// loseStanding: the only node that knows the sequence time is cut off for minutes, or its machine stands still. Another
// one uses the ceiling up, and is lost with its directory. ZooKeeper is put back to a copy from before. So the skip
// covers that only if the node knows how much time has passed.
func (h *history) loseStanding() {
	h.calm()
	name := h.names[h.rng.IntN(len(h.names))]
	gone, x := h.nodes[0], h.nodes[1]
	r, _, err := h.operator(h.Mem.Session()).Find(context.Background(), name)
	if err != nil || r.DeletedAt != 0 || r.Mode != record.Segment || r.HardCeiling > 1000 {
		return
	}
	c := simCopy{h.now, h.Mem.Snapshot()}
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
	x.cut = false
	x.goesOn()
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
