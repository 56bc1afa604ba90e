package timeguard

import "testing"

type twoClocks struct{ mono, boot, looks int64 }

func (c *twoClocks) Wall() int64 { return 0 }
func (c *twoClocks) Mono() int64 { return c.mono }
func (c *twoClocks) Boot() int64 { c.looks++; return c.boot }

// The coarse clock goes on with the monotonic one, and notices a suspend when it looks again.
func TestCoarseBoot(t *testing.T) {
	c := &twoClocks{mono: 5, boot: 100}
	b := NewCoarseBoot(c)
	pass := func(mono, boot, want, looks int64) {
		t.Helper()
		c.mono, c.boot = c.mono+mono, c.boot+boot
		if got := b.Now(); got != want || c.looks != looks {
			t.Errorf("%d after %d looks, want %d after %d", got, c.looks, want, looks)
		}
	}
	pass(10, 10, 110, 1)
	pass(10, 1000, 120, 1) // suspended for 990 ns, seen later
	pass(int64(coarseFor), int64(coarseFor), 1110+int64(coarseFor), 2)
}
