package node

import (
	"errors"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
)

// untilExtend decides when the reserved bound is extended next. A campaign found nodes that
// refused until the next round, after a disk had stalled and after a leap of the clock.
func TestNextExtensionIsDueInTime(t *testing.T) {
	const reserve = 3 * time.Second
	for _, row := range []struct {
		name   string
		stored bool
		left   time.Duration // to the bound
		lease  time.Duration // to its end
		failed bool
		floor  time.Duration // to the floor, 0: not waiting
		want   time.Duration
	}{
		{"in time", true, reserve, time.Minute, false, 0, time.Second},
		{"a little late", true, 2*time.Second + 1, time.Minute, false, 0, time.Second},
		{"storing took long", true, time.Second, time.Minute, false, 0, 0},
		{"the clock leapt beyond it", true, -time.Hour, time.Minute, false, 0, 0},
		{"the lease ends there", true, time.Second, time.Second, false, 0, time.Second},
		{"the lease has ended", true, -time.Second, -time.Second, false, 0, time.Second},
		{"nothing to store", false, -time.Second, time.Minute, false, 0, time.Second},
		{"the disk failed", false, time.Second, time.Minute, true, 0, retryDisk},
		{"waiting for the floor", false, 0, time.Minute, false, 300 * time.Millisecond, 300 * time.Millisecond},
		{"waiting for long", false, 0, time.Minute, false, 5 * time.Second, time.Second},
		{"at the floor", false, 0, time.Minute, false, -time.Second, time.Millisecond},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := starting(t, func(c *Config) { c.Reserve, c.Clock = reserve, still{} })
			now := n.now()
			n.reservedUntil = now + row.left.Milliseconds()
			n.changeClaim(func(c *coordinator.Claim) { c.LeaseUntil = now + row.lease.Milliseconds() })
			if row.failed {
				n.disk.err = errors.New("failed")
			}
			if row.floor != 0 {
				n.refuse(Waiting, CauseBelowFloor)
				n.tenure = &tenure{floor: now + row.floor.Milliseconds()}
			}
			if got := n.untilExtend(row.stored); got != row.want {
				t.Errorf("%s, want %s", got, row.want)
			}
		})
	}
}

// still is a timeguard.Clock that stands still.
type still struct{}

func (still) Wall() int64 { return 1_800_000_000_000_000_000 }
func (still) Mono() int64 { return 1 }
func (still) Boot() int64 { return 1 }

// A clock that was behind is set right, by more than the reserved bound is ahead of it.
// ZooKeeper confirms the leap. No request must be refused because of it.
func TestConfirmedLeapRefusesNoRequest(t *testing.T) {
	r := newRig(t)
	r.Step(-4 * time.Second)
	n := r.start().untilReady()
	before := n.next().Tick
	r.Step(4 * time.Second)
	for deadline := time.Now().Add(10 * time.Second); n.next().Tick < before+3900; { // next fails on refusal
		if time.Now().After(deadline) {
			t.Fatal("the leap is not followed")
		}
	}
}

// A lease that has nearly ended keeps the reserved bound below the lease bound. Once a
// heartbeat has moved the lease bound on, the reserved bound must follow at once. A campaign
// found a node that refused until the next round after a SIGSTOP of 59 s.
func TestReservedBoundFollowsTheLease(t *testing.T) {
	for _, row := range []struct {
		name string
		// bound and lease are the time left until the reserved bound and the lease bound.
		bound, lease time.Duration
		want         bool
	}{
		{"the lease had nearly ended", 600 * time.Millisecond, time.Minute, true},
		{"in time", 2500 * time.Millisecond, time.Minute, false},
		{"it still ends there", 600 * time.Millisecond, 600 * time.Millisecond, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := starting(t, func(c *Config) { c.Reserve, c.Clock = 3*time.Second, still{} })
			n.keeper.coord.Recall(coordinator.Claim{LeaseUntil: n.now() + row.lease.Milliseconds()})
			n.reservedUntil = n.now() + row.bound.Milliseconds()
			n.keeper.publish()
			if got := len(n.wakeDisk) == 1; got != row.want {
				t.Errorf("the bound is pushed: %v", got)
			}
		})
	}
}
