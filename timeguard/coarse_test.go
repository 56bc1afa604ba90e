package timeguard

import (
	"testing"
	"time"
)

// coarseClocks is a machine that counts how often its boot clock is read.
type coarseClocks struct {
	threeClocks
	mono  time.Duration
	looks int
}

func (c *coarseClocks) Mono() int64 { return int64(c.mono) }
func (c *coarseClocks) Boot() int64 { c.looks++; return c.threeClocks.Boot() }

// A coarse clock goes on with a quick one. By the wall clock, it is never late after the machine stood still. By the
// monotonic one, it notices that when it looks again.
func TestCoarse(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, test := range []struct {
		name             string
		boot, wall, mono time.Duration
		byMono, byWall   time.Duration // what they count
		looks            int           // of both together
	}{
		{"a millisecond", ms, ms, ms, ms, ms, 0},
		{"a second", s, s, s, s, s, 2},
		{"the machine was suspended", 10 * s, 10 * s, ms, ms, 10 * s, 1},
		{"the machine was paused", ms, 10 * s, ms, ms, 10 * s, 1},
		{"the wall clock was set back", ms, -10 * s, ms, ms, ms, 1},
		{"suspended, and the wall clock does not show it", 10 * s, ms, ms, ms, ms, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &coarseClocks{threeClocks{100 * s, 5000 * s, 0}, 7 * s, 0}
			e := NewElapsed(c)
			byMono, byWall, began := e.ByMono(), e.ByWall(), e.AtMost()
			c.pass(test.boot, test.wall, 0)
			c.mono += test.mono
			c.looks = 0
			m, w := time.Duration(byMono.AtMost()-began), time.Duration(byWall.AtMost()-began)
			if m != test.byMono || w != test.byWall || c.looks != test.looks {
				t.Errorf("%s and %s after %d looks; want %s and %s after %d", m, w, c.looks, test.byMono, test.byWall,
					test.looks)
			}
			late := e.AtMost() - began
			c.pass(20*ms, 20*ms, 0)
			c.mono += 20 * ms
			m, w = time.Duration(byMono.AtMost()-began), time.Duration(byWall.AtMost()-began)
			if want := time.Duration(late) + 20*ms; m != want || w != want {
				t.Errorf("20 ms later: %s and %s, want %s", m, w, want)
			}
		})
	}
}
