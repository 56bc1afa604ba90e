package coordinator

import (
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/limits"
)

// Claim is a node's hold on a slot, as its local record has it.
type Claim struct {
	Node   string `json:"node"` // the node's identity, a UUID
	Ticket string `json:"ticket,omitempty"`
	Worker int    `json:"worker"`
	// Term and Nonce are those of the last acknowledged grant; the pending
	// ones are of a grant being written, stored before the write that carries
	// them, so that a lost acknowledgement is recognised as ours.
	Term         int64  `json:"term,omitempty"`
	Nonce        string `json:"nonce,omitempty"`
	PendingTerm  int64  `json:"pending_term,omitempty"`
	PendingNonce string `json:"pending_nonce,omitempty"`
	// Settled: the slot was held through its settling time. Without it H is 0.
	Settled bool `json:"settled,omitempty"`
	// Lo is the tenure's floor, H its lease bound, acknowledged and settled:
	// IDs may be issued for timestamps in between. Unix milliseconds.
	Lo int64 `json:"lo"`
	H  int64 `json:"-"` // in a field of the local record, as M and Generation are
	// Incarnation is that of the cluster when the slot was last written by us and
	// acknowledged.
	Incarnation int64 `json:"incarnation,omitempty"`
	// M is the reserved bound and Generation the write count of the local
	// record, as they were when it was read.
	M          int64  `json:"-"`
	Generation uint64 `json:"-"`
}

// carriedBy tells whether a record carries one of the claim's nonces.
func (c Claim) carriedBy(s Slot) bool {
	return s.Nonce != "" && s.Node == c.Node && (s.Nonce == c.Nonce || s.Nonce == c.PendingNonce)
}

// in is the claim once a write under a cluster's record is acknowledged. Before that
// its incarnation must not grow: a record that another holder settled meanwhile
// would pass for an older copy.
func (c Claim) in(cl Cluster) Claim {
	c.Incarnation = cl.Incarnation
	return c
}

// Finding is what a record in the place of ours means.
type Finding int

const (
	// FoundOurs: the record is ours. Go on.
	FoundOurs Finding = iota
	// FoundFenced: somebody took over. Stop issuing.
	FoundFenced
	// FoundLost: ZooKeeper lost our record. Write it again while the lease
	// lasts.
	FoundLost
)

func (f Finding) String() string { return [...]string{"ours", "fenced", "lost"}[f] }

// JudgeSlot decides what an owner makes of its slot. found is nil where there
// is no record.
//
// Records are ordered by incarnation, then by term. A record of an earlier
// incarnation or a lower term can only be an older copy. A settled record of a later
// incarnation fences, whatever its term: its holder waited for the owner that it was
// kept for, and has issued IDs. An unsettled one of a later incarnation, or of an
// equal term, is of a newcomer that did not know of us and has still to settle. In
// the same incarnation a higher term fences, settled or not.
func JudgeSlot(found *Slot, mine Claim) Finding {
	switch {
	case found == nil:
		return FoundLost
	case mine.carriedBy(*found):
		return FoundOurs
	case found.ReleasedBy != "" && found.Node == mine.Node && found.Term > mine.Term:
		return FoundFenced // by hand, whatever incarnation our last write was to name
	case found.Incarnation > mine.Incarnation && found.Settled:
		return FoundFenced
	case found.Incarnation != mine.Incarnation:
		return FoundLost
	case found.Term > mine.Term:
		return FoundFenced
	case found.Term == mine.Term && found.Settled:
		return FoundFenced
	}
	return FoundLost
}

// JudgeCluster decides the same of the cluster record, for an owner of the cluster
// uuid that knows of an incarnation. A newer cluster gives way to owners of the one
// before only while nobody has settled in it.
func JudgeCluster(found *Cluster, uuid string, incarnation int64) Finding {
	switch {
	case found == nil:
		return FoundLost
	case found.UUID == uuid && found.Incarnation < incarnation:
		return FoundLost // an older copy
	case found.UUID == uuid:
		return FoundOurs
	case found.Settled:
		return FoundFenced
	}
	return FoundLost
}

// NotOursError: the local record's slot is not, or not provably, still this
// node's. It has to register as a new one.
type NotOursError struct {
	Worker int
	Reason string
	// Lost: ZooKeeper has lost the record of it, by JudgeSlot. An owner whose
	// settled lease is still running may put it back.
	Lost bool
}

func (e *NotOursError) Error() string {
	return fmt.Sprintf("coordinator: worker %d is no longer this node's: %s", e.Worker, e.Reason)
}

// JudgeResume decides whether a starting node still holds the slot of its
// local record: nil if it does.
func JudgeResume(found *Slot, mine Claim) error {
	no := func(format string, a ...any) error {
		return &NotOursError{mine.Worker, fmt.Sprintf(format, a...), JudgeSlot(found, mine) == FoundLost}
	}
	switch {
	case found == nil:
		return no("ZooKeeper has no record of it")
	case found.Released && mine.Nonce == "":
		return no("it was never taken: the write that should have done so did not arrive")
	case found.Released:
		return no("it was released")
	case !mine.carriedBy(*found):
		return no("it is held by node %s (%s) at term %d, ours was %d", found.Node, found.Name, found.Term, mine.Term)
	case found.Generation > mine.Generation:
		return no("the state file is an old copy: ZooKeeper has seen its generation %d, this is %d", found.Generation, mine.Generation)
	}
	return nil
}

// Availability is whether a slot can be taken.
type Availability int

const (
	Free     Availability = iota
	Cooling               // released, but its bound is still ahead
	Live                  // its holder is connected
	Stopped               // its holder stopped and keeps it until its bound
	Detached              // its holder is not connected and keeps it until its bound
)

// cooldown is how far ahead a released slot's bound may be for it to be taken:
// its next holder waits for it.
const cooldown = limits.Cooldown

// graceMs is how long after its bound a slot is left to its holder, in ms. After a
// loss of data a former holder goes by the leader's clock (see doubt.go), which
// may be set back, or be another leader's: by less than this it does no harm.
func (c Cluster) graceMs() int64 { return min(clocksAgree, c.LeaseMs/limits.GraceParts) }

// JudgeFree decides whether a slot can be taken, by our clock and by the
// leader's: the earlier of the two counts, so that a clock that is ahead frees
// nothing.
func (c Cluster) JudgeFree(s Slot, live bool, now, leaderNow int64) Availability {
	now = min(now, leaderNow)
	switch {
	case live:
		return Live
	case s.Term < 0:
		return Detached // unreadable: nobody knows until when
	case s.givenUp() && s.H <= now+cooldown.Milliseconds():
		return Free
	case !s.givenUp() && s.H+c.graceMs() <= now:
		return Free
	case s.Released:
		return Cooling
	case s.Stopped:
		return Stopped
	}
	return Detached
}

// givenUp reports whether a slot was released, and nobody can be using it. Where it was
// taken from its holder that may still run, by a clock that is behind.
func (s Slot) givenUp() bool { return s.Released && (s.ReleasedBy == "" || s.Lowered) }

// FullError: every slot is held.
type FullError struct {
	Slots                           int
	Live, Detached, Stopped, Cooled int
	// NextFree is when the next slot's bound passes, in Unix milliseconds; 0
	// when all holders are live.
	NextFree int64
	now      int64
	grace    int64 // Cluster.graceMs
}

func (e *FullError) Error() string {
	next := "all are in use; a layout with more worker bits, or fewer nodes, is needed"
	if e.NextFree > 0 {
		next = fmt.Sprintf("the next one frees in %s", (time.Duration(e.NextFree-e.now) * time.Millisecond).Round(time.Second))
	}
	return fmt.Sprintf("coordinator: all %d worker slots are held (%d live, %d detached, %d stopped, %d cooling): %s",
		e.Slots, e.Live, e.Detached, e.Stopped, e.Cooled, next)
}

func (e *FullError) add(a Availability, h int64) {
	switch a {
	case Live:
		e.Live++
		return
	case Cooling:
		e.Cooled++
		h -= cooldown.Milliseconds()
	case Stopped:
		e.Stopped++
	case Detached:
		e.Detached++
	}
	if h > 0 && a != Cooling {
		h += e.grace
	}
	if h > 0 && (e.NextFree == 0 || h < e.NextFree) {
		e.NextFree = h
	}
}

// FrozenError: ZooKeeper lost data and the slots are kept for owners that may hold
// them; or somebody has frozen them by hand, who is named then.
type FrozenError struct {
	Until int64
	By    string
}

func (e *FrozenError) Error() string {
	until := time.UnixMilli(e.Until).UTC().Format(time.RFC3339)
	if e.By != "" {
		return fmt.Sprintf("coordinator: registration is frozen until %s, by %s", until, e.By)
	}
	return fmt.Sprintf("coordinator: ZooKeeper lost data, so registration is frozen until %s, while owners of the slots come back", until)
}
