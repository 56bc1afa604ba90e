package campaign

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"cmp"
	"slices"
	"strings"
	"testing"
	"time"
)

// window is a time interval.
type window struct{ from, to int64 }

// excuses returns the windows in which a node may refuse, in order and without overlap. A window
// lasts from a fault of the node that stops it until the node serves again. With forLease it
// lasts until the node has a lease again. end is the end of a window whose fault never ended.
func excuses(faults []*fault, node int, end int64, forLease bool) (all []window) {
	const grace = int64(50 * time.Millisecond) // between making a fault and recording it
	for _, f := range faults {
		if f.node != node || f.impaired == 0 {
			continue
		}
		to := f.served
		if forLease {
			to = max(to, f.leased)
		}
		if to == 0 {
			to = end
		}
		all = append(all, window{f.impaired - grace, to + grace})
	}
	return join(all)
}

// join sorts windows, and joins those that touch or overlap.
func join(all []window) []window {
	slices.SortFunc(all, func(a, b window) int { return cmp.Compare(a.from, b.from) })
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

// underWay is the longest time between a request and a fault that hits it, on a machine that was
// never late.
const underWay = 200 * time.Millisecond

// excused reports whether one of the windows covers all requests of the miss. The first request
// may have been sent up to underWay, and the lateness of the machine, before the window. The
// last one must have been sent before the end of the window.
func excused(windows []window, m harness.Miss, late func(from, to int64) time.Duration) bool {
	return slices.ContainsFunc(windows, func(w window) bool {
		return w.from <= m.Given && m.Last <= w.to &&
			(w.from <= m.First || w.from-m.First <= int64(underWay+late(m.First, w.from)))
	})
}

// lapsed reports whether the refusal is one of a node whose lease has ended.
func lapsed(m harness.Miss) bool {
	return slices.ContainsFunc([]string{"-FENCED ", "-NOTREADY starting", "-NOTREADY confirming"},
		func(begin string) bool {
			return strings.HasPrefix(m.Text, begin)
		})
}

// stoodStill reports whether the node refused while the disk or the clock of the campaign's own
// machine stood still. The nodes and the ZooKeeper servers share that disk. So the machine must have
// been late by more than half of reserve in the time before the refusal, or during it. The text of the
// refusal does not tell: a process of two workers may give the reason of the one that waits.
func stoodStill(m harness.Miss, late func(from, to int64) time.Duration) bool {
	return late(m.First-int64(reserve), m.Last) > reserve/2
}

// availability records a finding for each miss that has no excuse.
func (c *campaign) availability() {
	tracks := c.tracks()
	for _, l := range c.loads {
		over := window{c.ended, c.ended + int64(time.Hour)}
		windows, longer := append(excuses(c.faults, l.Node.ID, c.ended, false), over),
			append(excuses(c.faults, l.Node.ID, c.ended, true), over)
		for _, m := range l.Misses {
			switch {
			case excused(windows, m, c.late), lapsed(m) && excused(longer, m, c.late), stoodStill(m, c.late):
			case strings.HasPrefix(m.Text, "-CLOCK most voters say that this node's clock is wrong") &&
				c.outvoted(tracks, m.Node, m.First, m.First) && c.outvoted(tracks, m.Node, m.Last, m.Last):
			default:
				c.wrong = append(c.wrong, nodeName(m.Node)+": had to serve, and "+m.String())
			}
		}
	}
}

// outvoted reports whether most of the voters that a node heard may have had wrong clocks. The
// node then believes that its own clock is wrong.
//
// Voters are ZooKeeper's leader, whose clock is right, and the other nodes. A node without a
// fault votes, and its clock is right. For nodes with a fault outvoted assumes the worst case:
// the node hears those with a wrong clock and does not hear the others. So the node may be
// outvoted by two wrong clocks if all other nodes have faults, and by three if one has none.
func (c *campaign) outvoted(tracks [][]showing, node int, from, to int64) bool {
	// A report counts for three heartbeats, and a node refuses after three rounds.
	const fresh = int64(6 * slowest)
	right, wrong := 1, 0
	for other, t := range tracks {
		if other == node {
			continue
		}
		low, high := shown(t, from-fresh, to)
		switch {
		case max(low.Abs(), high.Abs()) > agreed:
			wrong++
		case !c.amiss(other, from-fresh, to):
			right++
		}
	}
	return wrong > right
}

// amiss reports whether the node or ZooKeeper had a fault at any time between from and to.
func (c *campaign) amiss(node int, from, to int64) bool {
	return c.anyFault(func(f *fault) bool { return (f.node < 0 || f.node == node) && f.touches(from, to) })
}

func TestExcusesCoverOnlyOwnFaults(t *testing.T) {
	s := int64(time.Second)
	faults := []*fault{
		{node: 1, impaired: 10 * s, served: 12 * s}, {node: 1, impaired: 12 * s, served: 14 * s},
		{node: 1, injected: 20 * s, served: 25 * s}, {node: 1, impaired: 26 * s, served: 27 * s, leased: 29 * s},
		{node: 1, impaired: 30 * s}, {node: 2, impaired: 1 * s, served: 90 * s},
	}
	windows, longer := excuses(faults, 1, 50*s, false), excuses(faults, 1, 50*s, true)
	never := func(int64, int64) time.Duration { return 0 }
	for _, row := range []struct {
		name        string
		first, last int64
		want        bool
	}{
		{"before", 9 * s, 9 * s, false},
		{"in it", 10 * s, 11 * s, true},
		{"under way", 10*s - s/5, 11 * s, true},
		{"under way for long", 9 * s, 11 * s, false},
		{"over two that touch", 11 * s, 13 * s, true},
		{"goes on after", 13 * s, 15 * s, false},
		{"in one that does not excuse", 21 * s, 22 * s, false},
		{"in one that never ended", 31 * s, 49 * s, true},
		{"between", 16 * s, 16 * s, false},
		{"when its lease may have ended", 28 * s, 28 * s, false},
	} {
		given := row.first
		if strings.HasPrefix(row.name, "under way") {
			given = 10 * s
		}
		if got := excused(windows, harness.Miss{First: row.first, Given: given, Last: row.last}, never); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
	if !excused(longer, harness.Miss{First: 28 * s, Given: 28 * s, Last: 28 * s}, never) {
		t.Error("its lease had ended")
	}
	if late := func(int64, int64) time.Duration { return time.Second }; !excused(windows,
		harness.Miss{First: 9 * s, Given: 10 * s, Last: 11 * s}, late) {
		t.Error("under way for long on a machine that was late")
	}
	for text, want := range map[string]bool{
		"-FENCED this node lost its worker": true, "-NOTREADY confirming reason=x": true,
		"-NOTREADY starting reason=x":                      true,
		"-NOTREADY refusing reason=reserved-bound-reached": false, "-CLOCK the clock is behind": false, "": false,
	} {
		if lapsed((harness.Miss{Text: text})) != want {
			t.Errorf("%q", text)
		}
	}
}

// The machine must be late in the time that the reserved bound lasts, or during the refusal.
func TestSuspendedRefusalNeedsLateMachine(t *testing.T) {
	const s = int64(time.Second)
	for at, want := range map[int64]bool{6 * s: false, 8 * s: true, 11 * s: true, 13 * s: false} {
		for by, enough := range map[time.Duration]bool{5 * time.Second: true, time.Second: false} {
			late := func(from, to int64) time.Duration {
				if from <= at && at <= to {
					return by
				}
				return 0
			}
			if got := stoodStill((harness.Miss{First: 10 * s, Last: 12 * s}), late); got != (want && enough) {
				t.Errorf("late by %s at %s: %v", by, time.Duration(at), got)
			}
		}
	}
}

func TestOutvotedNeedsMostClocksWrong(t *testing.T) {
	s := int64(time.Second)
	const year = 365 * 24 * time.Hour
	right := []clockAt{{at: 0}}
	back := []clockAt{{at: 0}, {at: 10 * s, offset: -time.Minute}, {at: 20 * s, exact: true}}
	later := []clockAt{{at: 0}, {at: 15 * s, offset: -time.Hour}, {at: 30 * s, exact: true}}
	leapt := []clockAt{{at: 0}, {at: 10 * s, offset: year}, {at: 30 * s}}
	busy := func(nodes ...int) (faults []*fault) {
		for _, n := range nodes {
			faults = append(faults, &fault{node: n, kind: &kind{}, injected: 5 * s, well: 35 * s})
		}
		return faults
	}
	for _, row := range []struct {
		name   string
		clocks [][]clockAt // of the other four
		faults []*fault
		want   map[int64]bool
	}{
		{"two, and the others are silent", [][]clockAt{back, later, right, right}, busy(1, 2, 3, 4),
			map[int64]bool{9: false, 12: false, 16: true, 22: true, 27: false}},
		{"two, and one is heard", [][]clockAt{back, later, right, right}, busy(1, 2, 3), map[int64]bool{16: false}},
		{"two, and ZooKeeper is away", [][]clockAt{back, later, right, right}, busy(1, 2, -1),
			map[int64]bool{16: true}},
		{"three, and one is heard", [][]clockAt{back, later, back, right}, busy(1, 2, 3), map[int64]bool{16: true}},
		{"a leap that is not followed", [][]clockAt{back, leapt, right, right}, busy(1, 2, 3, 4),
			map[int64]bool{16: false}},
	} {
		c := &campaign{timeline: &timeline{}}
		c.faults = row.faults
		tracks := [][]showing{track(back)} // node 0, whose own clock does not vote
		for _, clocks := range row.clocks {
			tracks = append(tracks, track(clocks))
		}
		for at, want := range row.want {
			if got := c.outvoted(tracks, 0, at*s, at*s); got != want {
				t.Errorf("%s, at %d s: %v", row.name, at, got)
			}
		}
	}
}
