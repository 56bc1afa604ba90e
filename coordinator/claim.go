package coordinator

import (
	"time"

	"github.com/flaked/flaked/timeguard"
)

// Owner says which node holds which worker. It stays the same while the node holds the slot.
type Owner struct {
	Node string `json:"node"` // the node's identity, a UUID
	// Worker is 0, too, while the claim has no slot: Nonce and PendingNonce are empty then.
	Worker int `json:"worker"`
}

// Claim is the part of a node's local record about its slot: the owner, the grant, and the bounds.
type Claim struct {
	Owner
	Ticket string `json:"ticket,omitempty"`
	// Term and Nonce are of the last acknowledged grant; while Nonce is empty, Term is the one that was found. The
	// pending ones are of a grant that is being written. They are saved before that write, so that the node recognises
	// the record as its own if the acknowledgement is lost.
	Term         int64  `json:"term,omitempty"`
	Nonce        string `json:"nonce,omitempty"`
	PendingTerm  int64  `json:"pending_term,omitempty"`
	PendingNonce string `json:"pending_nonce,omitempty"`
	// EverConfirmed: a process of this node has held the slot through its confirming time. If not, LeaseUntil is 0.
	EverConfirmed bool `json:"confirmed,omitempty"`
	// Floor is the first timestamp of this tenure, LeaseUntil its acknowledged and confirmed lease bound. IDs may have
	// timestamps from Floor to LeaseUntil - 1. Unix milliseconds.
	Floor      int64 `json:"floor"`
	LeaseUntil int64 `json:"-"` // not in the JSON: localcache.Record has fields for this, ReservedUntil and Generation
	// Incarnation is the cluster's incarnation at our last acknowledged write of the slot. It must not grow before that
	// is acknowledged: else a record that another holder has confirmed meanwhile would pass for an older copy.
	Incarnation int64 `json:"incarnation,omitempty"`
	// ReservedUntil is the reserved bound of the local record, as it was when that was read or the slot was
	// acquired. The node keeps the present one.
	ReservedUntil int64 `json:"-"`
	// Generation is the write count of the local record, as of the last heartbeat or grant.
	Generation uint64 `json:"-"`
	// Chain is that of our heartbeats. In the local record it may be a little older.
	Chain Chain `json:"-"`
	// Last is our last acknowledged write of the slot. A later process goes on from there.
	Last timeguard.Stamped `json:"-"`
	// BootEnd is the reading of the boot clock, in ns, at which the lease ends. Unlike the wall clock, the boot clock
	// cannot be set back. 0: not known.
	BootEnd int64 `json:"-"`
}

// carriedBy reports whether a record carries one of the claim's nonces.
func (c Claim) carriedBy(s Slot) bool {
	//mutant:c9-ours-whatever-the-nonce by sim -> return s.Nonce != "" && s.Node == c.Node
	return s.Nonce != "" && s.Node == c.Node && (s.Nonce == c.Nonce || s.Nonce == c.PendingNonce)
}

// Leased reports whether the claim's confirmed lease still runs: by the issuing clock, now in Unix ms, and by the boot
// clock in ns. While it runs no other node can take the slot.
func (c Claim) Leased(now, boot int64) bool {
	return c.EverConfirmed && now < c.LeaseUntil && !c.endedByBoot(boot)
}

// endedByBoot reports whether the lease has ended by the boot clock. AtMost would not do: a wall clock that leaps ahead
// must not end a lease before ZooKeeper and the peers agree with the leap. The issuing clock follows the wall clock
// then. The leader's clock is asked as well (see evidence.hasPassed).
func (c Claim) endedByBoot(boot int64) bool { return c.BootEnd != 0 && boot >= c.BootEnd }

// knownBound returns the lease bound that the holder of the claim knew. The record's own may be of an unacknowledged
// write, or of an older copy.
func (c Claim) knownBound(found Slot) int64 {
	if c.EverConfirmed {
		return c.LeaseUntil
	}
	return found.LeaseUntil
}

// bootEndOf returns the reading of the boot clock, ns, at which a lease up to bound, Unix ms, ends. The issuing clock
// reads now, and the boot clock boot.
func bootEndOf(bound, now, boot int64) int64 { return boot + (bound-now)*int64(time.Millisecond) }

// Rebased returns the claim of an earlier process by the clocks of this one. If the machine was started again since,
// no clock shows a chain, nor the end of the lease.
func (c Claim) Rebased(e *timeguard.Elapsed, sameBoot bool) Claim {
	was := c.Last.Acked
	if !sameBoot || was == (timeguard.Moment{}) {
		c.Chain, c.BootEnd, c.Last = brokenAt(c.Chain.Version), 0, timeguard.Stamped{}
		return c
	}
	now := e.Rebase(was, true)
	least, most := now.Least-was.Least, now.Most-was.Most
	if c.Chain.runs() {
		c.Chain.Began, c.Chain.Sent = c.Chain.Began+least, c.Chain.Sent+most
	}
	c.Last.Sent.Least, c.Last.Sent.Most, c.Last.Acked = c.Last.Sent.Least+least, c.Last.Sent.Most+most, now
	return c
}
