package coordinator

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// The records below the cluster's root. Instants are Unix milliseconds.
const (
	clusterPath = "/cluster"
	ticketsPath = "/tickets"
	workersPath = "/workers"
	livePath    = "/live"
	// ticketPrefix is followed by the ten digits that ZooKeeper appends.
	ticketPrefix = ticketsPath + "/n-"
)

func slotPath(worker int) string { return fmt.Sprintf("%s/%04d", workersPath, worker) }
func lockPath(worker int) string { return fmt.Sprintf("%s/%04d", livePath, worker) }

// Cluster is what all nodes of a cluster share, at /cluster. It is made once;
// after that only Used, Settled, Incarnation and the freeze change.
type Cluster struct {
	UUID string `json:"uuid"`
	// Layout is the split of an ID's bits, epoch included, in the canonical
	// form of worker.Layout.
	Layout string `json:"layout"`
	// Slots is how many workers the layout has.
	Slots      int   `json:"slots"`
	Datacenter int64 `json:"datacenter"`
	// LeaseMs is W, the longest lease: how long a settled node may live
	// without ZooKeeper, and how long its slot is kept when it vanishes.
	LeaseMs int64 `json:"lease_ms"`
	// SettleMs is how long a new holder waits for an owner that ZooKeeper may
	// have forgotten.
	SettleMs int64 `json:"settle_ms"`
	// OnRollback is what a node does whose clock goes back, in the canonical
	// form of timeguard.RollbackPolicy; empty is Leaf's rule.
	OnRollback string `json:"on_rollback,omitempty"`
	// BorrowMs is how far ahead of the clock a burst may make IDs.
	BorrowMs int64 `json:"borrow_ms,omitempty"`
	// Used is the highest slot that has ever had a record, -1 at first. Slots
	// up to it that have none were lost, and are not free.
	Used int `json:"used"`
	// Settled: a node has settled under this record. Until then it gives way
	// to owners of the cluster that was here before.
	Settled bool `json:"settled"`
	// Incarnation grows each time an owner notices that ZooKeeper lost data: it is
	// when that was, Unix ms, or one more than the last. 0 at first. It orders the
	// records of slots, whose terms begin again at 1 in a slot that was lost.
	Incarnation int64 `json:"incarnation,omitempty"`
	// Until FrozenUntil no slot is handed out or settled on, but those of Open:
	// ZooKeeper has lost data.
	FrozenUntil int64     `json:"frozen_until,omitempty"`
	Open        WorkerSet `json:"open,omitempty"`
	// FrozenBy is the operator who froze it; empty where an owner did that found
	// data lost.
	FrozenBy string `json:"frozen_by,omitempty"`
}

// Frozen reports whether registration on a slot is frozen at a moment.
func (c Cluster) Frozen(worker int, now int64) bool {
	return now < c.FrozenUntil && !c.Open.Has(worker)
}

// AllFrozen reports whether that goes for every slot.
func (c Cluster) AllFrozen(now int64) bool { return now < c.FrozenUntil && c.Open == "" }

// Labels say who a node is to people. They are never identity: names and
// addresses move and collide.
type Labels struct {
	Name    string `json:"name,omitempty"`
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Address string `json:"address,omitempty"` // where it serves, comma-separated
	Admin   string `json:"admin,omitempty"`   // where its admin HTTP is
	Version string `json:"version,omitempty"`
}

// Slot is one worker slot's record, at /workers/NNNN. It is never deleted.
type Slot struct {
	// Node is the holder's identity, a UUID; empty on a slot never held.
	Node   string `json:"node,omitempty"`
	Ticket string `json:"ticket,omitempty"`
	// Term grows by one at every change of hands and every start of the
	// holder; Nonce is a fresh random number for each.
	Term  int64  `json:"term"`
	Nonce string `json:"nonce,omitempty"`
	// H is the lease bound: no ID of this slot up to this term has a timestamp
	// at or after it.
	H       int64 `json:"h"`
	Settled bool  `json:"settled"`
	// Stopped: the holder stopped cleanly, having issued nothing at or after
	// StoppedM.
	Stopped  bool  `json:"stopped,omitempty"`
	StoppedM int64 `json:"stopped_m,omitempty"`
	// Released: the holder gave the slot back.
	Released bool `json:"released,omitempty"`
	// Incarnation is that of the cluster when the holder last wrote here.
	Incarnation int64 `json:"incarnation,omitempty"`
	// Lost marks a record made in place of one that ZooKeeper lost.
	Lost bool `json:"lost,omitempty"`

	// Reached is the latest that the holder's issuing clock has reported while
	// it was trusted, for who lowers H by hand. Reported is what it read at the
	// last write, for the peers to compare theirs with.
	Reached  int64 `json:"reached,omitempty"`
	Reported int64 `json:"reported,omitempty"`
	// Generation is that of the holder's local record then.
	Generation  uint64 `json:"generation,omitempty"`
	HeartbeatMs int64  `json:"heartbeat_ms,omitempty"`
	// RTTMs is how long the write before this one took: the error of Reported
	// against the Mtime of the record.
	RTTMs int64  `json:"rtt_ms,omitempty"`
	State string `json:"state,omitempty"`
	// ClockWrong: the holder does not trust its clock, and neither should peers.
	ClockWrong bool `json:"clock_wrong,omitempty"`
	// Process is the same in the records of nodes that share a process: their
	// clock is one.
	Process string `json:"process,omitempty"`
	Labels

	// ReleasedBy is who took the slot from its holder by hand. Lowered: they knew that
	// the holder does not run, and have lowered H.
	ReleasedBy string `json:"released_by,omitempty"`
	Lowered    bool   `json:"lowered,omitempty"`

	// For people, and nothing is decided by it: the first term of the holder
	// and when it was granted, 0 where that is not known; and the holders before.
	FromTerm int64   `json:"from_term,omitempty"`
	Granted  int64   `json:"granted,omitempty"`
	History  History `json:"history,omitzero"`
	// AheadMs is how far the clock of a holder whom the slot was taken from was
	// ahead of the leader's when it was last heard of.
	AheadMs int64 `json:"ahead_ms,omitempty"`
}

// freeSlot is a slot that nobody has held.
func freeSlot() Slot { return Slot{Released: true} }

func (c Cluster) marshal() []byte { return mustMarshal(c) }
func (s Slot) marshal() []byte    { return mustMarshal(s) }

func mustMarshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain structs of strings and numbers: cannot happen
	}
	return b
}

func parseCluster(b []byte) (Cluster, error) {
	var c Cluster
	if err := json.Unmarshal(b, &c); err != nil || c.UUID == "" || c.Slots < 1 {
		return Cluster{}, fmt.Errorf("coordinator: %s is not a cluster record of flaked: %.80q", clusterPath, b)
	}
	return c, nil
}

// parseSlot reads a slot. One that cannot be read has Term -1: it says nothing
// of its holder, so nobody may take it, and its owner puts it right. The same
// goes for one that leaves out what every record says, as {} and null do: it
// must not pass for a slot whose bound has passed.
func parseSlot(b []byte) Slot {
	var s Slot
	err := json.Unmarshal(b, &s)
	neverHeld := s.Term == 0 && s.Nonce == "" && (s.Released && s.H == 0 || s.Lost && s.H > 0)
	held := s.Term > 0 && s.Node != "" && s.Nonce != "" && s.H > 0
	if err != nil || !neverHeld && !held {
		return Slot{Term: -1}
	}
	return s
}

// ticketNumber is the number ZooKeeper gave a ticket, from the right: ten
// digits, or a minus sign and nine or ten: what %010d makes of an int32.
func ticketNumber(name string) (int64, error) {
	name = path.Base(name)
	digits := len(name)
	for digits > 0 && name[digits-1] >= '0' && name[digits-1] <= '9' {
		digits--
	}
	s := name[digits:]
	negative := strings.HasSuffix(name[:digits], "--")
	if digits == 0 || len(s) != 10 && !(negative && len(s) == 9) {
		return 0, fmt.Errorf("coordinator: %q is not a ticket", name)
	}
	if negative {
		s = "-" + s
	}
	return strconv.ParseInt(s, 10, 64)
}

// firstSlot is where a ticket begins to look: its number modulo the slots.
func firstSlot(ticket int64, slots int) int {
	return int(((ticket % int64(slots)) + int64(slots)) % int64(slots))
}
