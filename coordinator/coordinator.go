// Package coordinator keeps a node's worker slot in ZooKeeper. A slot is the record of one worker. Each node writes its
// slot again at every heartbeat, and so extends its lease. All records are in a store.Store. A GET never calls this
// package.
//
// ZooKeeper can lose data, or show older data, without saying so. So a node issues IDs only under a slot that it has
// confirmed: for a whole confirming time ZooKeeper has shown this node's writes and no other holder's. Invariant: the
// ranges of time in which holders of one slot may issue do not overlap.
//
// Three types to read: Slot, the record; holderState, what a process has proved about its slot, and what it may write
// next; Coordinator, which reads and writes by that.
//
// This package is not part of the API of flaked: its exported names may change in any release.
package coordinator

// The files of this package, by what they are for:
//
//   - The records in ZooKeeper: record.go, history.go, cluster.go, slots.go, pair.go, ticket.go and lock.go.
//   - Decisions, without I/O: finding.go says what a slot's record means, holderstate.go what to write over it, and
//     availability.go whether a slot is free. claim.go, chain.go, clocks.go, evidence.go, expiry.go and horizon.go have
//     what they decide by.
//   - What a node does with its slot, in this order: register.go or resume.go, with grant.go, then heartbeat.go, and
//     fence.go or stop.go at the end. After a loss of data in ZooKeeper: loss.go and standins.go.
//   - Other nodes: peer_clocks.go reads their clocks, peerwait.go waits for them, and met.go remembers them.
//   - Operators: operator.go and roster.go. For the other packages of a node: view.go.

import (
	"cmp"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
)

// Ledger keeps a claim on the local disk.
type Ledger interface {
	// Save makes the claim durable before it returns nil, and returns the generation of the local record.
	Save(Claim) (generation uint64, err error)
}

// Config has the dependencies and settings of a Coordinator. Store, Now, Elapsed and Ledger are required.
type Config struct {
	Store store.Store
	// Now is the issuing clock in Unix milliseconds.
	Now func() int64
	// Elapsed measures how much time passes (C31). The Coordinator corrects it by the leader's stamps.
	Elapsed *timeguard.Elapsed
	// Ledger saves a claim before the write that carries it.
	Ledger Ledger
	// Labels are shown to people.
	Labels Labels
	// Followed returns the value of Slot.Followed. nil: the zero value.
	Followed func() Followed
	// Interval is the time from one report to the next; 0 means limits.DefaultHeartbeat.
	Interval time.Duration
	// Nonce returns a new nonce for each grant; nil means 64 random bits.
	Nonce func() string
	// RetryAfter is the pause after a call that was not answered; 0 means 100 ms, negative none.
	RetryAfter time.Duration
	// Trace may be nil.
	Trace Trace
	// Logger may be nil.
	Logger hclog.Logger
}

// Coordinator is one node's side of the protocol. Only one goroutine at a time may use it, apart from Met. No method
// leaves a goroutine behind. A method with a context returns by its deadline, except while the Ledger writes. Deleting
// a ticket may take cleanupTime longer.
type Coordinator struct {
	Config
	// mine is the cluster this node belongs to, set by Join. HighestSlot and Incarnation are the highest that this
	// process or its directory has seen. A holder that restores a lost cluster record writes them there.
	mine Cluster
	// unackedTicketOf is the node that may have a ticket although its creation was not acknowledged. Empty: none.
	unackedTicketOf string
	// holder has the claim of the node, and what the process has proved about the claim's slot. While the node moves to
	// another slot, holder is about the old slot.
	holder *holderState
	// reading is the last comparison of our clock with the leader's; zero if there was none. The ticket of restore does
	// not count, because restore may fail after it. The next heartbeat must still know how far our clock was ahead at
	// the one before.
	reading Reading
	// rtt is the duration of the last heartbeat's write, in milliseconds.
	rtt int64
	// lastWrite is the stat of our last write of a ticket or of a held slot. A write that acquires or ends a slot
	// does not set lastWrite.
	lastWrite store.Stat
	// lastStamped is our last acknowledged write of a slot whose stamp is known.
	lastStamped timeguard.Stamped
	// strayLock is a slot that this node has given up, while its live lock may still be ours. -1: none.
	strayLock int
	// unannounced is a loss that announceLater has kept and no call has announced yet. nil: none.
	unannounced *Loss
	// logged is the loss of the last log line about one.
	logged Loss
	live   liveList
	met    met
	// seenLock is the live lock of ours that EnsureLiveLock has last seen in ZooKeeper, zero for none.
	seenLock lock
	horizon  horizon
}

// New returns a Coordinator. node.New has validated what is in cfg. New does no I/O.
func New(cfg Config) *Coordinator {
	cfg.Interval = cmp.Or(cfg.Interval, limits.DefaultHeartbeat)
	cfg.RetryAfter = cmp.Or(cfg.RetryAfter, 100*time.Millisecond)
	if cfg.Nonce == nil {
		cfg.Nonce = store.Nonce
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	return &Coordinator{Config: cfg, holder: new(newHolderState(Claim{})), strayLock: -1, mine: Cluster{HighestSlot: -1}}
}

// Join sets the cluster that this node belongs to. The node compares what it finds in ZooKeeper with cl, and restores
// cl if ZooKeeper has lost it.
func (c *Coordinator) Join(cl Cluster) {
	joined := cl
	if cl.UUID == c.mine.UUID {
		joined.HighestSlot, joined.Incarnation = c.mine.HighestSlot, c.mine.Incarnation
	} else {
		c.unannounced, c.horizon = nil, horizon{}
	}
	c.mine = joined
	c.met.join(cl)
	c.noteCluster(cl)
}

// noteCluster notes what the cluster's record says of the incarnation, the horizon and the highest slot.
func (c *Coordinator) noteCluster(cl Cluster) {
	if cl.UUID != c.mine.UUID {
		return
	}
	c.mine.HighestSlot = max(c.mine.HighestSlot, cl.HighestSlot)
	c.horizon = c.horizon.saw(cl.Horizon, c.Elapsed.AtLeast())
	if cl.Incarnation > c.mine.Incarnation {
		c.mine.Incarnation = cl.Incarnation
		c.holder.beginIncarnation()
	}
}

// Recall sets the claim of the node: that of its state directory, or that of a new node, which has an identity and no
// slot. The holderState begins anew.
func (c *Coordinator) Recall(claim Claim) {
	c.holder = new(newHolderState(claim))
	if claim.Last.Stamp != 0 {
		c.lastStamped = claim.Last
	}
}

// Claim returns what the local record must say of the slot that the node holds.
func (c *Coordinator) Claim() Claim { return c.holder.Claim }

// Pending reports whether a grant was saved whose outcome is not known.
func (c *Coordinator) Pending() bool { return c.holder.PendingNonce != "" }

// ConfirmAt returns the earliest time at which the slot may be confirmed, ns of AtLeast.
func (c *Coordinator) ConfirmAt() int64 { return c.holder.confirmAt }

// GoAlone makes the process go on from the state directory, without ZooKeeper (C16). reserved is the reserved bound
// there, which the process before may have reached, Unix ms, and generation the write count of the record: ZooKeeper's
// must not be higher. The floor is saved when a lease had run out (C26), and may be above what was reserved before.
func (c *Coordinator) GoAlone(reserved int64, generation uint64) {
	c.holder.becomeAlone(reserved, generation)
}

// Unconfirm saves the claim without its lease: another cluster has taken the place of the claim's.
func (c *Coordinator) Unconfirm() error {
	c.holder.noteUnleased()
	return c.Save()
}

// Save saves the claim again, after an attempt to get another slot has saved another one.
func (c *Coordinator) Save() error {
	_, err := c.Ledger.Save(c.holder.Claim)
	return err
}

// Trace gets the steps of the protocol, each before it takes effect for clients: see docs/testing.md. about has
// names and values in turn. nil: nobody wants them. A Trace must return soon.
type Trace func(step string, about ...any)

// Step passes a step on.
func (t Trace) Step(step string, about ...any) {
	if t != nil {
		t(step, about...)
	}
}
