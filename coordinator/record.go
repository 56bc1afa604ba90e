package coordinator

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// The paths of the records below the cluster's root. Times in records are Unix milliseconds.
const (
	clusterPath = "/cluster"
	ticketsPath = "/tickets"
	workersPath = "/workers"
	livePath    = "/live"
	// ticketPrefix is followed by the ten digits that ZooKeeper appends.
	ticketPrefix = ticketsPath + "/n-"
)

// SlotPath returns the path of a worker's record.
func SlotPath(worker int) string { return fmt.Sprintf("%s/%04d", workersPath, worker) }
func lockPath(worker int) string { return fmt.Sprintf("%s/%04d", livePath, worker) }

// Cluster is the record that all nodes of a cluster share, at /cluster. After it was created, only HighestSlot,
// InUse, Incarnation, Horizon and the freeze change. In JSON, InUse is called confirmed.
type Cluster struct {
	UUID string `json:"uuid"`
	// Layout is the layout of an ID, with its epoch, in the canonical form of worker.Layout.
	Layout string `json:"layout"`
	// Slots is the number of workers that the cluster uses: those of the layout, but at most 65,536.
	Slots      int   `json:"slots"`
	Datacenter int64 `json:"datacenter"`
	// LeaseMs is the longest lease. A confirmed node may serve for so long without ZooKeeper, and its slot is kept for
	// so long after it vanished.
	LeaseMs int64 `json:"lease_ms"`
	// ConfirmMs is the time that a new holder of a slot waits for an earlier holder that ZooKeeper may have lost.
	ConfirmMs int64 `json:"confirm_ms"`
	// OnRollback is the rollback policy of all nodes, in the canonical form of timeguard.RollbackPolicy. Empty: Leaf's
	// rule.
	OnRollback string `json:"on_rollback,omitempty"`
	// BorrowMs is how far ahead of the clock a burst may issue IDs.
	BorrowMs int64 `json:"borrow_ms,omitempty"`
	// SequenceStart is where the sequence begins in a tick, and SegmentStart the segment that a tick begins in, in the
	// words of worker.SequenceStart and worker.SegmentStart. Empty: random and zero.
	SequenceStart string `json:"sequence_start,omitempty"`
	SegmentStart  string `json:"segment_start,omitempty"`
	// HighestSlot is the highest slot that has ever had a record, -1 at first. If a slot up to HighestSlot has no
	// record, ZooKeeper has lost it, and the slot is not free.
	HighestSlot int `json:"highest_slot"`
	// InUse: a node has confirmed a worker under this record. Until then the record gives way to holders of the cluster
	// that was here before.
	InUse bool `json:"confirmed"`
	// Incarnation counts the losses of data that nodes have noticed. 0 at first. It orders the records of slots and of
	// named sequences, whose own counters begin again after a loss.
	Incarnation int64 `json:"incarnation,omitempty"`
	// Horizon is the latest lease bound that a holder may write, Unix ms. A stand-in may have a later one.
	Horizon int64 `json:"horizon"`
	// Until FrozenUntil no slot is granted or confirmed.
	FrozenUntil int64 `json:"frozen_until,omitempty"`
	// FrozenBy is the operator who froze registration. Empty: a holder did, because ZooKeeper had lost data.
	FrozenBy string `json:"frozen_by,omitempty"`
}

// Frozen reports whether registration is frozen at now, Unix ms.
func (c Cluster) Frozen(now int64) bool { return now < c.FrozenUntil }

// ConfirmTime returns the cluster's confirming time (C10) plus BorrowMs (C27). A new holder of a slot waits for it
// after its write. In this time a holder that ZooKeeper has lost can come back. It is 0 for a store in memory.
func (c Cluster) ConfirmTime() time.Duration {
	//mutant:c10-no-confirming by sim -> if true {
	if c.ConfirmMs == 0 {
		return 0
	}
	//mutant:c27-lost-holder-has-not-borrowed by sim:borrow -> return time.Duration(c.ConfirmMs) * time.Millisecond
	return time.Duration(c.ConfirmMs+c.BorrowMs) * time.Millisecond
}

func (c Cluster) marshal() []byte { return store.Marshal(c) }

// maxPlausibleSlots bounds the highest slot of a record that is damaged. A node makes lists of that length.
const maxPlausibleSlots = 1 << 24

// parseCluster parses the cluster's record. It refuses a record without the highest slot, which would pass for a
// cluster whose workers were never held. A record of a newer release may say that it needs nodes which know more than
// this one does.
func parseCluster(b []byte) (Cluster, error) {
	var r struct {
		Cluster
		Highest *int   `json:"highest_slot"`
		Needs   string `json:"needs"`
	}
	if err := json.Unmarshal(b, &r); err != nil || r.UUID == "" || r.Slots < 1 {
		return Cluster{}, fmt.Errorf("%s: %w: %.80q", clusterPath, ErrDamaged, b)
	}
	if r.Needs != "" {
		return Cluster{}, fmt.Errorf("the cluster needs nodes that know %q, which this version of flaked "+
			"does not. Upgrade it", r.Needs)
	}
	if r.Highest == nil {
		return Cluster{}, fmt.Errorf("another release of flaked wrote %s. Use that release, or another cluster "+
			"name: %.80q", clusterPath, b)
	}
	if r.Cluster.HighestSlot = *r.Highest; r.HighestSlot < -1 || r.HighestSlot >= min(r.Slots, maxPlausibleSlots) {
		return Cluster{}, fmt.Errorf("%s: %w: %.80q", clusterPath, ErrDamaged, b)
	}
	return r.Cluster, nil
}

// Labels describe a node to people. Nothing is decided by them, because names and addresses move and collide.
type Labels struct {
	Name    string `json:"name,omitempty"`
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Address string `json:"address,omitempty"` // of its listeners, comma-separated
	Admin   string `json:"admin,omitempty"`   // of its admin server: HOST:PORT for HTTP, or https://HOST:PORT
	Version string `json:"version,omitempty"`
}

// Slot is one worker slot's record, at /workers/NNNN. It is never deleted. In JSON, StandsIn is called lost, and Phase
// state.
type Slot struct {
	// Node is the holder's identity, a UUID; empty if the slot was never held.
	Node   string `json:"node,omitempty"`
	Ticket string `json:"ticket,omitempty"`
	// Term grows by one with every new holder, every start of the holder, and a release by an operator. It may grow by
	// more when the record is restored. Nonce is a new random number for each term.
	Term  int64  `json:"term"`
	Nonce string `json:"nonce,omitempty"`
	// LeaseUntil is the lease bound. IDs of this slot up to this term have earlier timestamps.
	LeaseUntil int64 `json:"lease_until"`
	Confirmed  bool  `json:"confirmed"`
	// Stopped: the holder has stopped cleanly, and issued no ID at or after StoppedAt.
	Stopped   bool  `json:"stopped,omitempty"`
	StoppedAt int64 `json:"stopped_at,omitempty"`
	// Released: nobody holds the slot. Its holder gave it back, an operator took it (ReleasedBy), or nobody ever held
	// it.
	Released bool `json:"released,omitempty"`
	// Incarnation is that of the cluster when the holder last wrote here.
	Incarnation int64 `json:"incarnation,omitempty"`
	// StandsIn: the record stands in for one that ZooKeeper lost. It keeps the slot for the holder of that.
	StandsIn bool `json:"lost,omitempty"`

	// ReportedClock is the time on the holder's issuing clock when the record was written. Peers compare their clocks
	// with it.
	ReportedClock int64 `json:"reported_clock,omitempty"`
	// Generation is the write count of the holder's local record at that time.
	Generation  uint64 `json:"generation,omitempty"`
	HeartbeatMs int64  `json:"heartbeat_ms,omitempty"`
	// RTTMs is the duration of the write before this one. It bounds the uncertainty of ReportedClock against the
	// record's Mtime.
	RTTMs int64  `json:"rtt_ms,omitempty"`
	Phase string `json:"state,omitempty"`
	// ClockWrong: the holder does not trust its clock, so peers must not compare with it.
	ClockWrong bool `json:"clock_wrong,omitempty"`
	Followed
	Labels

	// ReleasedBy is the operator who took the slot from its holder.
	ReleasedBy string `json:"released_by,omitempty"`

	// The first term of the holder, when it was granted (0: not known), and the earlier holders. Claim.wasLost decides
	// by these. Operators see Granted.
	FromTerm int64   `json:"from_term,omitempty"`
	Granted  int64   `json:"granted,omitempty"`
	History  History `json:"history,omitempty"`
}

// Followed says what a process has read of named sequences in its present session.
type Followed struct {
	// Last is the last change that the process has followed, with all before. nil: it serves no named sequences.
	Last *Change `json:"followed,omitempty"`
	// Compares: the process knows records, and has not compared all of them. Compared is the incarnation in which it
	// has, and has restored what it knew better. If neither is set, it knows none.
	Compares bool   `json:"compares,omitempty"`
	Compared *int64 `json:"compared,omitempty"`
	// Takes: the process may take values of named sequences. A node that has just started goes by it: see PeersSeen.
	Takes bool `json:"takes,omitempty"`
}

// Change is a change of named sequences: its number, as counted in an incarnation of the cluster. The zero value comes
// before the first one.
type Change struct {
	Number      int64 `json:"change,omitempty"`
	Incarnation int64 `json:"incarnation,omitempty"`
}

// hasCompared reports whether the process has compared all records that it knows, in this incarnation, or knows none.
func (f Followed) hasCompared(incarnation int64) bool {
	if f.Compared != nil {
		return *f.Compared == incarnation
	}
	return !f.Compares
}

// freeSlot returns the record of a slot that was never held.
func freeSlot() Slot { return Slot{Released: true} }

func (s Slot) marshal() []byte { return store.Marshal(s) }

// parseSlot parses a slot's record. A record that cannot be parsed, or lacks a field that every record has, gets Term
// -1. Nobody may take such a slot, and its holder writes it again. Without that rule {} would pass for a slot whose
// lease bound has passed.
func parseSlot(b []byte) Slot {
	var s Slot
	err := json.Unmarshal(b, &s)
	neverHeld := s.Term == 0 && s.Nonce == "" && (s.Released && s.LeaseUntil == 0 || s.StandsIn && s.LeaseUntil > 0)
	held := s.Term > 0 && s.Node != "" && s.Nonce != "" && s.LeaseUntil > 0
	if err != nil || !neverHeld && !held {
		return Slot{Term: -1}
	}
	return s
}

// ticketNumber returns the number that ZooKeeper appended to a ticket's name with %010d: ten digits, or a minus sign
// and nine or ten digits.
func ticketNumber(name string) (int64, error) {
	name = path.Base(name)
	digits := len(name)
	for digits > 0 && name[digits-1] >= '0' && name[digits-1] <= '9' {
		digits--
	}
	s := name[digits:]
	negative := strings.HasSuffix(name[:digits], "--")
	if digits == 0 || len(s) != 10 && !(negative && len(s) == 9) {
		return 0, fmt.Errorf("%q is not a ticket", name)
	}
	if negative {
		s = "-" + s
	}
	return strconv.ParseInt(s, 10, 64)
}

// firstSlot returns the first slot that the holder of a ticket tries: the ticket's number modulo the number of slots.
func firstSlot(ticket int64, slots int) int {
	return int(((ticket % int64(slots)) + int64(slots)) % int64(slots))
}
