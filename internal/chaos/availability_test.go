package chaos

import (
	"cmp"
	"slices"
	"testing"
	"time"
)

// window is a stretch of time.
type window struct{ from, to int64 }

// excuses are when a node may refuse: from a fault of its own that stops it
// until it serves again.
func excuses(faults []*fault, node int, end int64) (all []window) {
	const grace = int64(50 * time.Millisecond) // the fault was made a little before it was noted, or after
	for _, f := range faults {
		if f.node != node || f.impaired == 0 {
			continue
		}
		to := f.served
		if to == 0 {
			to = end
		}
		all = append(all, window{f.impaired - grace, to + grace})
	}
	slices.SortFunc(all, func(a, b window) int { return cmp.Compare(a.from, b.from) })
	// Those that touch are one.
	joined := all[:0]
	for _, w := range all {
		if n := len(joined); n > 0 && w.from <= joined[n-1].to {
			joined[n-1].to = max(joined[n-1].to, w.to)
		} else {
			joined = append(joined, w)
		}
	}
	return joined
}

// excused: the first question was still under way when the node was allowed to
// refuse, and the last was asked before that ended.
func excused(windows []window, m miss) bool {
	return slices.ContainsFunc(windows, func(w window) bool { return w.from <= m.given && m.last <= w.to })
}

// availability finds questions that should have been answered.
func (c *campaign) availability() {
	for _, l := range c.loads {
		windows := append(excuses(c.faults, l.m.id, c.ended), window{c.ended, c.ended + int64(time.Hour)})
		for _, m := range l.misses {
			if !excused(windows, m) && !(m.why == "-CLOCK" && c.outvoted(m)) {
				c.wrong = append(c.wrong, nodeName(m.node)+": had to serve, and "+m.String())
			}
		}
	}
}

// outvoted tells whether the clocks of two other nodes were wrong, or had been
// when ZooKeeper last heard of them: with one more that does not vote they are
// most of the voters, and a node whose clock is right believes them.
func (c *campaign) outvoted(m miss) bool {
	wrong := 0
	for _, other := range c.machines {
		if other.id == m.node {
			continue
		}
		for i, at := range other.clocks {
			until := c.ended
			if i+1 < len(other.clocks) {
				until = other.clocks[i+1].at
			}
			for _, f := range c.faults { // one that leapt back is followed once ZooKeeper confirms it
				if f.node == other.id && f.injected <= until && until <= f.well {
					until = f.well
				}
			}
			const fresh = int64(6 * heartbeat) // a report votes for three, and three rounds count
			if at.offset.Abs() > agreed && at.at < m.last && m.first < until+fresh {
				wrong++
				break
			}
		}
	}
	return wrong >= 2
}

// outage is what a fault cost.
type outage struct {
	answered, missed int
	gap              time.Duration // the longest without an answer
	worst            time.Duration // the latest answer
	recovery         time.Duration // from the end of the fault to the first answer
}

// cost sums up what the clients of a node met from the injection of a fault
// until it was over.
func cost(bins []bin, f *fault) (o outage) {
	from, to := int(f.injected/binWidth), int(max(f.served, f.healed)/binWidth)+1
	run := 0
	for i := from; i < min(to, len(bins)); i++ {
		b := bins[i]
		o.answered += int(b.answered)
		o.missed += int(b.refused + b.failed)
		o.worst = max(o.worst, time.Duration(b.worst))
		if run++; b.answered > 0 {
			run = 0
		}
		o.gap = max(o.gap, time.Duration(int64(run)*binWidth))
	}
	if f.served > f.healed {
		o.recovery = time.Duration(f.served - f.healed)
	}
	return o
}

func TestExcuses(t *testing.T) {
	s := int64(time.Second)
	faults := []*fault{
		{node: 1, impaired: 10 * s, served: 12 * s}, {node: 1, impaired: 12 * s, served: 14 * s},
		{node: 1, injected: 20 * s, served: 25 * s}, {node: 1, impaired: 30 * s}, {node: 2, impaired: 1 * s, served: 90 * s},
	}
	windows := excuses(faults, 1, 50*s)
	for _, row := range []struct {
		name        string
		first, last int64
		want        bool
	}{
		{"before", 9 * s, 9 * s, false},
		{"in it", 10 * s, 11 * s, true},
		{"under way", 9 * s, 11 * s, true},
		{"over two that touch", 11 * s, 13 * s, true},
		{"goes on after", 13 * s, 15 * s, false},
		{"in one that does not excuse", 21 * s, 22 * s, false},
		{"in one that never ended", 31 * s, 49 * s, true},
		{"between", 16 * s, 16 * s, false},
	} {
		given := row.first
		if row.name == "under way" {
			given = 10 * s
		}
		if got := excused(windows, miss{first: row.first, given: given, last: row.last}); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

func TestOutvoted(t *testing.T) {
	s := int64(time.Second)
	c := &campaign{timeline: &timeline{}, ended: 90 * s}
	for i := range 4 {
		c.machines = append(c.machines, &machine{id: i, clocks: []clockAt{{at: 0}}})
	}
	c.machines[1].clocks = []clockAt{{at: 0}, {at: 10 * s, offset: -time.Minute}, {at: 20 * s}}
	c.machines[2].clocks = []clockAt{{at: 0}, {at: 15 * s, offset: time.Minute}, {at: 30 * s}}
	for at, want := range map[int64]bool{9: false, 12: false, 16: true, 22: true, 25: false, 40: false} {
		if got := c.outvoted(miss{node: 0, first: at * s, last: at * s}); got != want {
			t.Errorf("at %d s: %v", at, got)
		}
	}
	if c.outvoted(miss{node: 1, first: 16 * s, last: 16 * s}) {
		t.Error("by one clock, the own does not count")
	}
}

func TestCost(t *testing.T) {
	bins := make([]bin, 100)
	for i := range bins {
		bins[i] = bin{answered: 2, worst: int64(i)}
		if i >= 20 && i < 45 {
			bins[i] = bin{refused: 1, failed: 2}
		}
	}
	at := func(i int64) int64 { return i * binWidth }
	got := cost(bins, &fault{injected: at(10), healed: at(40), served: at(47)})
	want := outage{answered: 26, missed: 75, gap: 250 * time.Millisecond, worst: 47, recovery: 70 * time.Millisecond}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
