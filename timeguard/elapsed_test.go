package timeguard

import (
	"testing"
	"time"
)

// threeClocks is a machine whose clocks tests set. The leader's clock is of another machine.
type threeClocks struct{ boot, wall, leader time.Duration }

func (c *threeClocks) Wall() int64 { return int64(c.wall) }
func (c *threeClocks) Mono() int64 { return int64(c.boot) }
func (c *threeClocks) Boot() int64 { return int64(c.boot) }

func (c *threeClocks) pass(boot, wall, leader time.Duration) {
	c.boot, c.wall, c.leader = c.boot+boot, c.wall+wall, c.leader+leader
}

func TestElapsed(t *testing.T) {
	const s = time.Second
	for _, test := range []struct {
		name        string
		boot, wall  time.Duration
		least, most time.Duration
	}{
		{"all clocks agree", 3 * s, 3 * s, 3 * s, 3 * s},
		{"the boot clock stood still", 0, 60 * s, 0, 60 * s},
		{"the boot clock is slow", 8500 * time.Millisecond, 10 * s, 8500 * time.Millisecond, 10 * s},
		{"the boot clock is fast", 12 * s, 10 * s, 10 * s, 12 * s},
		{"the wall clock was set back", 3 * s, -3600 * s, 0, 3 * s},
		{"the wall clock leapt ahead", 3 * s, 3600 * s, 3 * s, 3600 * s},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &threeClocks{100 * s, 5000 * s, 0}
			e := NewElapsed(c)
			c.pass(test.boot, test.wall, 0)
			m := e.Now()
			c.pass(s, s, s) // a step counts once
			if least, most := m.Least-int64(100*s), m.Most-int64(100*s); least != int64(test.least) || most != int64(test.most) {
				t.Errorf("at least %s, at most %s; want %s, %s", time.Duration(least), time.Duration(most), test.least, test.most)
			}
			if e.AtLeast()-m.Least != int64(s) || e.AtMost()-m.Most != int64(s) {
				t.Errorf("a second later: %s, %s", time.Duration(e.AtLeast()-m.Least), time.Duration(e.AtMost()-m.Most))
			}
			other := NewElapsed(c)
			other.Continue(m)
			if other.Now() != e.Now() {
				t.Errorf("another process: %+v, want %+v", other.Now(), e.Now())
			}
		})
	}
}

func TestElapsedByTheLeader(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, test := range []struct {
		name               string
		boot, wall, leader time.Duration // between the first write and the second one
		slow               time.Duration // how long the first write takes, half of it before the leader stamps it
		least, most        time.Duration
	}{
		{"all clocks agree", 3 * s, 3 * s, 3 * s, 100 * ms, 3100 * ms, 3100 * ms},
		{"both clocks stood still", 0, 0, 60 * s, 0, 0, 60*s - ms},
		{"both clocks are fast", 12 * s, 12 * s, 10 * s, 0, 10*s + ms, 12 * s},
		{"both are slow, within the time of a write", 8 * s, 8 * s, 9 * s, 2 * s, 10 * s, 10 * s},
		{"another leader, whose clock is behind", 3 * s, 3 * s, -60 * s, 0, ms, 3 * s},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &threeClocks{100 * s, 5000 * s, 7000 * s}
			e := NewElapsed(c)
			first := Stamped{Sent: e.Now()}
			c.pass(test.slow/2, test.slow/2, test.slow/2)
			first.Stamp = c.leader.Milliseconds()
			c.pass(test.slow/2, test.slow/2, test.slow/2)
			first.Acked = e.Now()
			first = e.Acknowledged(Stamped{}, first)
			c.pass(test.boot, test.wall, test.leader)
			now := e.Now()
			second := e.Acknowledged(first, Stamped{now, now, c.leader.Milliseconds()})
			if second.Acked != e.Now() {
				t.Fatalf("the write has %+v, and the clocks read %+v", second.Acked, e.Now())
			}
			least, most := e.AtLeast()-first.Sent.Least, e.AtMost()-first.Sent.Most
			if least != int64(test.least) || most != int64(test.most) {
				t.Fatalf("at least %s, at most %s; want %s, %s", time.Duration(least), time.Duration(most), test.least, test.most)
			}
		})
	}
}

// A machine that stands still twice has missed both times, the second one also if it is shorter.
func TestElapsedOfTwoPauses(t *testing.T) {
	c := &threeClocks{}
	e := NewElapsed(c)
	var last Stamped
	for _, pause := range []time.Duration{0, time.Minute, time.Second} {
		c.pass(time.Second, time.Second, time.Second+pause)
		now := e.Now()
		last = e.Acknowledged(last, Stamped{now, now, c.leader.Milliseconds()})
	}
	if got, want := time.Duration(e.AtMost()), 64*time.Second-2*time.Millisecond; got != want {
		t.Errorf("at most %s have passed, want %s", got, want)
	}
}

// What a reader has seen of a step stays, although the clock steps back soon.
func TestElapsedOverStepsThatWereRead(t *testing.T) {
	const s, h = time.Second, time.Hour
	for _, test := range []struct {
		name  string
		steps [3]time.Duration // of the wall clock: before the first reading, between the two, and between looks
	}{
		{"ahead and back", [3]time.Duration{h, -h, 0}},
		{"back and ahead", [3]time.Duration{-h, h, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &threeClocks{100 * s, 5000 * s, 0}
			e := NewElapsed(c)
			c.pass(s, s+test.steps[0], s)
			first := e.Now()
			c.pass(s, s, s)
			_ = e.Now()
			c.pass(s, s+test.steps[1], s)
			second := e.Now()
			if most := time.Duration(second.Most - first.Most); most < 2*s {
				t.Errorf("at most %s have passed, but 2s have", most)
			}
			if least := time.Duration(second.Least - first.Least); least > 2*s {
				t.Errorf("at least %s have passed, but 2s have", least)
			}
		})
	}
}

// A moment of an earlier process is as long ago as the clocks of the machine say, and the leader as the earlier process
// has asked it.
func TestElapsedOfAnEarlierProcess(t *testing.T) {
	const s = time.Second
	for _, test := range []struct {
		name        string
		boot, wall  time.Duration // since then
		sameBoot    bool
		missed      time.Duration // the earlier process has heard of it since, by the leader
		continues   bool
		least, most time.Duration
	}{
		{"all clocks agree", 10 * s, 10 * s, true, 0, false, 10 * s, 10 * s},
		{"the boot clock stood still", 10 * s, 70 * s, true, 0, false, 10 * s, 70 * s},
		{"the wall clock was set back", 10 * s, -3600 * s, true, 0, false, 0, 10 * s},
		{"the machine was started again", -90 * s, 30 * s, false, 0, false, 0, 30 * s},
		{"the boot clock counts anew, and nothing says so", -90 * s, 30 * s, true, 0, false, 0, 30 * s},
		{"the leader has shown a pause", 10 * s, 10 * s, true, 50 * s, true, 10 * s, 60 * s},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &threeClocks{100 * s, 5000 * s, 0}
			before := NewElapsed(c)
			before.correct(int64(7*s), int64(7*s)) // the scales of two processes differ
			m := before.Now()
			before.correct(int64(test.missed), 0)
			last := before.Now()
			c.pass(test.boot, test.wall, 0)
			e := NewElapsed(c)
			if test.continues {
				e.Continue(last)
			}
			then, now := e.Rebase(m, test.sameBoot), e.Now()
			least, most := time.Duration(now.Least-then.Least), time.Duration(now.Most-then.Most)
			if least != test.least || most != test.most {
				t.Errorf("at least %s, at most %s; want %s, %s", least, most, test.least, test.most)
			}
		})
	}
}

// A wall clock that steps back takes nothing off AtLeast that was read a second before.
func TestStepBackForgetsASecondAtMost(t *testing.T) {
	c := &threeClocks{100 * time.Second, 5000 * time.Second, 0}
	e := NewElapsed(c)
	c.pass(10*time.Second, 10*time.Second, 0)
	before := e.AtLeast()
	c.pass(time.Second/2, time.Second/2, 0)
	e.AtLeast()
	c.pass(0, -time.Hour, 0)
	if now := e.AtLeast(); now < before {
		t.Errorf("AtLeast went back by %s", time.Duration(before-now))
	}
}
