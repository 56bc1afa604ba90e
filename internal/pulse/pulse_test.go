package pulse

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever the moment, the next one is a multiple of every, and as near as can be.
func TestUntil(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := rapid.Int64Range(0, 1<<50).Draw(t, "now")
		g := New(func() int64 { return now })
		now += rapid.Int64Range(0, 1<<50).Draw(t, "later")
		every := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "every"))
		left := g.Until(every)
		if left <= 0 || left > every {
			t.Fatalf("%s until the next moment, of %s", left, every)
		}
		if (now+int64(left)-g.origin)%int64(every) != 0 {
			t.Fatalf("%s after now is no multiple of %s", left, every)
		}
	})
}

// Work that happens every second, every 2 s and every 3 s shares its moments.
func TestWorkSharesMoments(t *testing.T) {
	var now int64
	g := New(func() int64 { return now })
	wakes := map[int64]bool{}
	for _, every := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second} {
		for now = 0; now < int64(time.Minute); {
			now += int64(g.Until(every))
			wakes[now] = true
			now += int64(time.Millisecond) // the work
		}
	}
	if len(wakes) > 63 {
		t.Errorf("woke up %d times in a minute, want once a second and thrice at the end", len(wakes))
	}
}

func TestNoGrid(t *testing.T) {
	if left := (*Grid)(nil).Until(time.Second); left != time.Second {
		t.Errorf("%s without a grid, want 1s", left)
	}
}
