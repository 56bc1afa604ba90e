package coordinator

import (
	"fmt"
	"slices"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
)

// NotOursError: this node cannot prove that it still holds the slot of its local record. It must register as a new
// node.
type NotOursError struct {
	Worker int
	Reason string
	// Lost: ZooKeeper has lost the slot's record, by slotFinding. A holder whose confirmed lease still runs may put it
	// back.
	Lost bool
}

func (e *NotOursError) Error() string {
	return fmt.Sprintf("this node no longer holds worker %d: %s", e.Worker, e.Reason)
}

// mayResume returns nil if a starting node still holds the slot of its local record (C15), else a *NotOursError.
func mayResume(found *Slot, mine Claim) error {
	no := func(format string, a ...any) error {
		return &NotOursError{mine.Worker, fmt.Sprintf(format, a...), slotFinding(found, mine) == FoundLost}
	}
	switch {
	case found == nil:
		return no("ZooKeeper has no record of the worker")
	case found.Released && mine.Nonce == "":
		return no("this node never acquired the worker: its write did not reach ZooKeeper")
	case found.Released:
		return no("the worker was released")
	case !mine.carriedBy(*found):
		return no("%s", found.heldAt(mine.Term))
	//mutant:c15-old-copy-resumed by sim -> case false:
	case found.Generation > mine.Generation:
		return no("the state file is an old copy: ZooKeeper has seen generation %d, the file has generation %d",
			found.Generation, mine.Generation)
	}
	return nil
}

// Availability says whether a slot can be taken, and if not, why.
type Availability int

const (
	Free         Availability = iota
	Releasing                 // released, but its lease bound is too far ahead
	Live                      // its holder is connected
	Stopped                   // its holder has stopped, and keeps it until the lease bound
	Disconnected              // its holder is not connected, and keeps it until the lease bound
)

// cooldown is how far ahead the lease bound of a released slot may be when it is taken. Its next holder waits for that
// bound.
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
	case s.givenUp() && s.LeaseUntil <= now+cooldown.Milliseconds():
		return Free
	case !s.givenUp() && s.LeaseUntil+c.graceMs() <= now:
		return Free
	case s.Released:
		return Releasing
	case s.Stopped:
		return Stopped
	}
	return Disconnected
}

// givenUp reports whether a slot was released and its last holder uses it no more (C30). After Operator.ForceRelease
// the holder may still run, by a clock that is behind.
//
//mutant:c30-forced-release-frees-at-once by TestTakeAway -> func (s Slot) givenUp() bool { return s.Released }
func (s Slot) givenUp() bool { return s.Released && s.ReleasedBy == "" }

// FullError: every slot is held.
type FullError struct {
	Slots                                  int
	Live, Disconnected, Stopped, Releasing int
	// NextFree is when the next slot becomes free, Unix milliseconds; 0 if all holders are live.
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

// Finding is the meaning, for a holder, of the record that it finds.
type Finding int

const (
	// FoundOurs: the record is ours. Go on.
	FoundOurs Finding = iota
	// FoundFenced: another node has taken over. Stop issuing.
	FoundFenced
	// FoundLost: ZooKeeper lost our record. Write it again while the lease runs.
	FoundLost
	// FoundCloned: the record is ours, and another process has written it. Stop issuing, and write nothing.
	FoundCloned
)

// ClusterFinding returns the meaning of the cluster's record for a holder of the cluster uuid that knows an incarnation
// of it. A newer cluster in its place gives way to that holder while no node has confirmed in it.
func ClusterFinding(found *Cluster, uuid string, incarnation int64) Finding {
	switch {
	case found == nil:
		return FoundLost
	case found.UUID == uuid && found.Incarnation < incarnation:
		return FoundLost // an older copy
	case found.UUID == uuid:
		return FoundOurs
	case found.InUse:
		return FoundFenced
	}
	return FoundLost
}

// slotFinding says what the record found in a slot means for its holder (C19). found is nil if there is none.
//
// It compares incarnations first. A record of an earlier incarnation is an older copy: a loss. One of a later
// incarnation fences if it is confirmed, because its holder has waited for the earlier one and has issued IDs since. If
// it is not confirmed, a new node that did not know of the holder has written it: a loss. In the same incarnation a
// higher term fences, an equal term fences if it is confirmed, and a lower term is an older copy. A release of our
// record by an operator fences in every incarnation.
func slotFinding(found *Slot, mine Claim) Finding {
	switch {
	case found == nil:
		return FoundLost
	case mine.carriedBy(*found):
		return FoundOurs
	case found.ReleasedBy != "" && found.Node == mine.Node && found.Term > mine.Term:
		return FoundFenced // an operator released it; no incarnation changes that (C30)
	case found.Incarnation > mine.Incarnation && found.Confirmed:
		return FoundFenced
	case found.Incarnation != mine.Incarnation:
		return FoundLost
	case found.Term > mine.Term:
		return FoundFenced
	// Scenario: A has term 5, and is cut off. ZooKeeper gets data back from before that. B acquires the slot, also with
	// term 5, confirms, and issues. Nobody has noticed the loss, so the incarnations are equal.
	//mutant:c19-confirmed-equal-term-overwritten by sim -> case false:
	case found.Term == mine.Term && found.Confirmed:
		return FoundFenced
	}
	return FoundLost
}

// heldAt says for people who holds the slot.
func (s Slot) heldAt(ours int64) string {
	return fmt.Sprintf("node %s (%s) holds the worker at term %d, ours was %d", s.Node, s.Name, s.Term, ours)
}

// wasLost reports whether another node's record of our slot proves that ZooKeeper had lost our confirmed one. A
// rightful next holder has a later first term and our tenure in its history, and began when our lease had expired by
// its own clock, unless the slot was given up. Nothing that happens to a clock later can make a rightful holder look
// like a loss.
//
// The history has dropped our entry if it is full and has only later holders: their terms are above ours, and they
// began above our floor. Holders from before us began below it, since no holder begins below the one before.
func (c Claim) wasLost(found Slot) bool {
	switch {
	case !c.EverConfirmed || found.Term < 1 || found.Incarnation != c.Incarnation:
		return false
	case found.Node == c.Node: // an operator does not lower the bound of the slot that he releases
		return found.ReleasedBy != "" && found.LeaseUntil < c.LeaseUntil
	}
	if found.FromTerm > 0 && found.FromTerm <= c.Term {
		return true
	}
	past := found.History
	if len(past) == maxHistory && past[0].Term > c.Term && past[0].Granted >= c.Floor {
		return false
	}
	for _, p := range slices.Backward(past) {
		if p.Node == c.Node {
			ended := p.Ended == EndedReleased || p.Ended == EndedTaken
			return !ended && found.Granted > 0 && found.Granted < c.LeaseUntil
		}
	}
	return true
}
