package pulse

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The next moment is a multiple of every, and at most every away.
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
	if apart := (*Grid)(nil).Apart(time.Second); apart != time.Second {
		t.Errorf("work without a grid is %s apart, want 1s", apart)
	}
}

// Work that began a quarter of its time late is due again at the next moment.
func TestLateWorkIsDueAgain(t *testing.T) {
	var now int64
	g := New(func() int64 { return now })
	every := 2 * time.Second
	began := g.origin + int64(every+every/4)
	now = began
	if now += int64(g.Until(every)); now-began < int64(g.Apart(every)) {
		t.Errorf("not due %s after the last beginning", time.Duration(now-began))
	}
}
