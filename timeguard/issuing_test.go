package timeguard

import (
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// fakeClock is three clocks that the test moves.
type fakeClock struct{ wall, mono, boot int64 }

func (c *fakeClock) Wall() int64 { return c.wall }
func (c *fakeClock) Mono() int64 { return c.mono }
func (c *fakeClock) Boot() int64 { return c.boot }

// pass lets time pass on all three clocks.
func (c *fakeClock) pass(d time.Duration) {
	c.wall += int64(d)
	c.mono += int64(d)
	c.boot += int64(d)
}

func (c *fakeClock) step(d time.Duration) { c.wall += int64(d) }

func newFake() *fakeClock {
	return &fakeClock{wall: 1_800_000_000_000_000_000, mono: 12345, boot: 99999}
}

func TestIssuingFollowsStepsButNotLeaps(t *testing.T) {
	rows := []struct {
		name    string
		step    time.Duration
		suspend time.Duration
		follows bool
	}{
		{"nothing", 0, 0, true},
		{"forward within tolerance", time.Second, 0, true},
		{"forward beyond", time.Second + time.Millisecond, 0, false},
		{"a year ahead", 365 * 24 * time.Hour, 0, false},
		{"back 3 ms", -3 * time.Millisecond, 0, true},
		{"back an hour", -time.Hour, 0, true},
		{"an hour of suspend", 0, time.Hour, true},
		{"suspend and a leap", time.Hour, time.Hour, false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			clock := newFake()
			c := NewIssuing(clock)
			clock.pass(time.Millisecond)
			before := c.Now()
			clock.wall += int64(r.step + r.suspend)
			clock.boot += int64(r.suspend)
			clock.pass(time.Millisecond)
			want, ahead := clock.wall, time.Duration(0)
			if !r.follows { // but the time in suspend has passed
				want, ahead = before+int64(time.Millisecond+r.suspend), r.step
			}
			if got := c.Now(); got != want {
				t.Errorf("%s off", time.Duration(got-want))
			}
			if got := c.UnfollowedLeap(); got != ahead {
				t.Errorf("ahead %s, want %s", got, ahead)
			}
		})
	}
}

// The issuing clock follows short suspends with the wall clock, because they are no leaps.
// It must not count them again in the next long suspend.
func TestIssuingFollowsASuspendOnce(t *testing.T) {
	clock := newFake()
	c := NewIssuing(clock)
	c.SetCoast(2 * time.Second)
	for _, d := range []time.Duration{700 * time.Millisecond, 900 * time.Millisecond, time.Hour} {
		clock.wall += int64(d)
		clock.boot += int64(d)
		clock.pass(time.Millisecond)
		if got := c.Now(); got != clock.wall || c.UnfollowedLeap() != 0 || c.CoastingBy() != 0 {
			t.Errorf("after %s: %s off, ahead %s, lead %s", d, time.Duration(got-clock.wall), c.UnfollowedLeap(), c.CoastingBy())
		}
	}
}

func TestIssuingConfirm(t *testing.T) {
	clock := newFake()
	c := NewIssuing(clock)
	clock.step(time.Hour)
	clock.pass(time.Millisecond)
	if c.UnfollowedLeap() != time.Hour {
		t.Fatalf("ahead %s", c.UnfollowedLeap())
	}
	c.Confirm(2 * time.Hour) // not the same leap
	if c.Now() == clock.wall {
		t.Fatal("followed a leap that nobody confirmed")
	}
	c.Confirm(time.Hour)
	if c.Now() != clock.wall || c.UnfollowedLeap() != 0 {
		t.Fatalf("%s behind after confirmation", time.Duration(clock.wall-c.Now()))
	}
	c.Confirm(0)
	if c.Now() != clock.wall {
		t.Fatal("confirming nothing changed the clock")
	}
}

func TestLeapThatGoesBackIsDropped(t *testing.T) {
	clock := newFake()
	c := NewIssuing(clock)
	clock.step(time.Hour)
	clock.pass(time.Minute)
	if c.UnfollowedLeap() == 0 {
		t.Fatal("leap not seen")
	}
	clock.step(-time.Hour)
	clock.pass(time.Millisecond)
	if c.UnfollowedLeap() != 0 || c.Now() != clock.wall {
		t.Fatalf("ahead %s, off %s", c.UnfollowedLeap(), time.Duration(c.Now()-clock.wall))
	}
}

// A clock that may coast does not go back with the wall clock. It goes slower until the
// wall clock has caught up, and then follows it again.
func TestIssuingCoasts(t *testing.T) {
	clock := newFake()
	c := NewIssuing(clock)
	c.SetCoast(2 * time.Second)
	clock.pass(time.Second)
	before := c.Now()
	clock.step(-time.Second)
	clock.pass(100 * time.Millisecond)
	if got, want := time.Duration(c.Now()-before), 90*time.Millisecond; got != want {
		t.Errorf("went on by %s in 100ms, want %s", got, want)
	}
	if got, want := c.CoastingBy(), 990*time.Millisecond; got != want {
		t.Errorf("%s ahead, want %s", got, want)
	}
	clock.pass(9900 * time.Millisecond)
	if got := c.Now(); got != clock.wall || c.CoastingBy() != 0 {
		t.Errorf("off by %s after ten times the step, lead %s", time.Duration(got-clock.wall), c.CoastingBy())
	}
}

// However the wall clock steps, the issuing clock is never ahead of it by more than the coast limit, and gets ahead of
// monotonic time by the tolerance at most. It goes back only after a step beyond the limit, and then to the wall clock.
func TestIssuingStaysWithinBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := newFake()
		c := NewIssuing(clock)
		limit := time.Duration(rapid.Int64Range(0, int64(4*time.Second)).Draw(t, "limit"))
		c.SetCoast(limit)
		last := c.Now()
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			elapsed := time.Duration(rapid.Int64Range(int64(sampleEvery), int64(2*time.Second)).Draw(t, "pass"))
			clock.pass(elapsed)
			clock.step(time.Duration(rapid.Int64Range(-int64(3*time.Second), int64(3*time.Second)).Draw(t, "step")))
			now := c.Now()
			if time.Duration(now-clock.wall) > limit {
				t.Fatalf("%s ahead of the wall clock", time.Duration(now-clock.wall))
			}
			if time.Duration(now-last) > elapsed+LeapTolerance {
				t.Fatalf("leapt %s in %s", time.Duration(now-last), elapsed)
			}
			if now < last && now != clock.wall {
				t.Fatalf("went back by %s, and not to the wall clock", time.Duration(last-now))
			}
			if now < last && time.Duration(last+int64(elapsed)-now) <= limit {
				t.Fatalf("went back by %s in %s", time.Duration(last-now), elapsed)
			}
			last = now
		}
	})
}

func TestIssuingConcurrently(t *testing.T) {
	c := NewIssuing(System())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20_000 {
				if off := time.Duration(c.Now() - time.Now().UnixNano()).Abs(); off > time.Second {
					t.Errorf("off by %s", off)
					return
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkIssuingNow(b *testing.B) {
	c := NewIssuing(System())
	var sum int64
	for b.Loop() {
		sum += c.Now()
	}
	_ = sum
}
