package coordinator

import (
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
)

// Availability says whether a slot can be taken, and if not, why.
type Availability int

const (
	Free         Availability = iota
	Releasing                 // released, but its lease bound is too far ahead
	Live                      // its holder is connected
	Stopped                   // its holder has stopped, and keeps it until the lease bound
	Disconnected              // its holder is not connected, and keeps it until the lease bound
)

// cooldown bounds the wait for a released slot: it may be taken when its lease bound is less than cooldown ahead. Its
// next holder waits for that bound.
const cooldown = limits.Cooldown

// graceMs returns how long a slot stays with its holder after the lease bound, in ms (C7, C26). After a loss of data an
// earlier holder goes by the leader's clock (see expiry). That clock may be set back, or another leader's clock may
// be behind: less than this does no harm.
func (c Cluster) graceMs() int64 { return min(clocksAgree, c.LeaseMs/limits.GraceParts) }

// Availability returns whether a slot can be taken (C7). now is our clock, leaderNow the leader's, Unix ms. The earlier
// one counts, so that a clock that is ahead frees no slot.
func (c Cluster) Availability(s Slot, live bool, now, leaderNow int64) Availability {
	//mutant:c7-free-by-one-clock by TestAvailability -> _ = leaderNow
	now = min(now, leaderNow)
	switch {
	case live:
		return Live
	case s.Term < 0:
		return Disconnected // unreadable: its lease bound is not known
	case s.vacated() && s.LeaseUntil <= now+cooldown.Milliseconds():
		return Free
	case !s.vacated() && s.LeaseUntil+c.graceMs() <= now:
		return Free
	case s.Released:
		return Releasing
	case s.Stopped:
		return Stopped
	}
	return Disconnected
}

// vacated reports whether a slot was released and its last holder uses it no more (C30). After Operator.ForceRelease
// the holder may still run, by a clock that is behind.
//
//mutant:c30-forced-release-frees-at-once by TestTakeAway -> func (s Slot) vacated() bool { return s.Released }
func (s Slot) vacated() bool { return s.Released && s.ReleasedBy == "" }

// FullError: every slot is held.
type FullError struct {
	Slots                                  int
	Live, Disconnected, Stopped, Releasing int
	// NextFree is the earliest time at which a slot becomes free, Unix milliseconds. It is 0 if no such time is known:
	// each slot has a live holder, or its record cannot be read.
	NextFree int64
	now      int64
	grace    int64 // Cluster.graceMs
}

func (e *FullError) Error() string {
	next := "No lease is about to expire. Create a cluster with more worker bits, or run fewer nodes"
	if e.NextFree > 0 {
		in := time.Duration(e.NextFree-e.now) * time.Millisecond
		next = fmt.Sprintf("The next one is free in %s", in.Round(time.Second))
	}
	return fmt.Sprintf("all %d workers are held (%d live, %d disconnected, %d stopped, %d releasing). %s",
		e.Slots, e.Live, e.Disconnected, e.Stopped, e.Releasing, next)
}

// add counts a slot that is not free, with its lease bound.
func (e *FullError) add(a Availability, bound int64) {
	switch a {
	case Live:
		e.Live++
		return
	case Releasing:
		e.Releasing++
		bound -= cooldown.Milliseconds()
	case Stopped:
		e.Stopped++
	case Disconnected:
		e.Disconnected++
	}
	if bound > 0 && a != Releasing {
		bound += e.grace
	}
	if bound > 0 && (e.NextFree == 0 || bound < e.NextFree) {
		e.NextFree = bound
	}
}

// FrozenError: registration is frozen until Until, Unix ms. Either ZooKeeper lost data, and the slots are kept for
// their holders, or the operator By has frozen it.
type FrozenError struct {
	Until int64
	By    string
}

func (e *FrozenError) Error() string {
	until := time.UnixMilli(e.Until).UTC().Format(time.RFC3339)
	if e.By != "" {
		return fmt.Sprintf("registration is frozen until %s by operator %s", until, e.By)
	}
	return fmt.Sprintf("registration is frozen until %s because ZooKeeper lost data: "+
		"earlier holders of workers may come back", until)
}
