package coordinator

import (
	"testing"
	"time"

	"github.com/flaked/flaked/timeguard"
)

// pausable is a machine whose boot clock and wall clock a test sets.
type pausable struct{ boot, wall int64 }

func (p *pausable) Wall() int64 { return p.wall }
func (p *pausable) Mono() int64 { return p.boot }
func (p *pausable) Boot() int64 { return p.boot }

func (p *pausable) pass(d time.Duration) { p.boot, p.wall = p.boot+int64(d), p.wall+int64(d) }

// A pause of the machine is a gap, also if the boot clock has stood still: the wall clock shows it, or the leader does,
// in the same process or in the next one. A boot clock that is fast makes no chain older.
func TestPauseEndsTheChain(t *testing.T) {
	const beat, s = 3 * time.Second, time.Second
	for name, row := range map[string]struct {
		boot, wall, leader time.Duration // what passes by each clock
		want               time.Duration // the age of the chain
	}{
		"no pause":                 {s, s, s, 2 * s},
		"the wall clock is right":  {s, 60 * s, 60 * s, 0},
		"both stand still":         {s, s, 60 * s, 0},
		"the boot clock is fast":   {5 * s, 2 * s, 2 * s, 3 * s},
		"both are fast":            {5 * s, 5 * s, 2 * s, 3*s + time.Millisecond},
		"the leader steps back":    {s, s, -60 * s, s + time.Millisecond},
		"the wall clock goes back": {s, -60 * s, s, s},
	} {
		for _, restarts := range []bool{false, true} {
			clock, leader := &pausable{100e9, 5000e9}, int64(7_000_000)
			e := timeguard.NewElapsed(clock)
			var c Claim
			write := func(last timeguard.Stamped) {
				now := e.Now()
				c.Last = e.Acknowledged(last, timeguard.Stamped{Sent: now, Acked: now, Stamp: leader})
				c.Heard = c.Heard.with(c.Last, 7, beat)
			}
			write(timeguard.Stamped{})
			clock.pass(s)
			leader += s.Milliseconds()
			write(c.Last)
			clock.boot, clock.wall, leader = clock.boot+int64(row.boot), clock.wall+int64(row.wall),
				leader+row.leader.Milliseconds()
			if restarts {
				e = timeguard.NewElapsed(clock)
				c = c.From(e, true)
			}
			write(c.Last)
			if got := c.Heard.Unbroken(e.Now(), beat); got != row.want {
				t.Errorf("%s, in another process %t: the chain is %s old, want %s", name, restarts, got, row.want)
			}
		}
	}
}

// The leader's stamp of a heartbeat shows that it confirms too early. The record is written again, unconfirmed.
func TestStampOfABeatThatConfirmsTooEarly(t *testing.T) {
	for name, row := range map[string]struct {
		confirms bool
		left     int64 // of the confirming time, by the corrected clock
		want     bool
	}{
		"does not confirm": {false, 1, false},
		"in time":          {true, 0, false},
		"too early":        {true, 1, true},
	} {
		hold, v, e, r := planned()
		d := hold.plan(v, e, r)
		d.confirms, d.confirmAt = row.confirms, e.at.Least+row.left
		after := v.stat
		after.Mtime = planNow
		if _, err := hold.afterWrite(d, v, after, e); (err != nil) != row.want ||
			row.want && hold.confirmAt != e.at.Least+planConfirm*1e6 {
			t.Errorf("%s: %v, confirms at %d", name, err, hold.confirmAt)
		}
	}
}
