package localcache

import (
	"math"
	"reflect"
	"slices"
	"time"
)

// MSlack is how far the M of one block may be ahead of the other's, and so by
// how much the M of a block found alone is raised. The window by which a node
// reserves time ahead must be shorter.
const MSlack = 10 * time.Second

// Record is what a node remembers of itself: who it is, which slot it holds and
// how far it may have issued. Times are Unix milliseconds, durations
// milliseconds. A caller owns its Record and saves it whole.
//
// The package reads M, H, Released and Generation; the rest it only keeps.
type Record struct {
	// ClusterName is the label the cluster goes by. Never compared.
	ClusterName string `json:"cluster_name,omitempty"`
	// ClusterUUID is the cluster's identity: a record of another is not ours.
	ClusterUUID string `json:"cluster_uuid,omitempty"`
	// EpochMs is the custom epoch of the cluster's IDs, Unix ms.
	EpochMs int64 `json:"epoch_ms"`
	// Layout names how the bits of the cluster's IDs are shared out.
	Layout string `json:"layout,omitempty"`
	// DatacenterID is the cluster's datacenter field; 0 where the layout has none.
	DatacenterID int `json:"datacenter_id,omitempty"`
	// LeaseMaxMs is W, the longest lease of the cluster, ms.
	LeaseMaxMs int64 `json:"lease_max_ms,omitempty"`
	// SettleMs is the cluster's settling time, ms.
	SettleMs int64 `json:"settle_ms,omitempty"`
	// OnRollback and BorrowMs are the cluster's rollback policy and how far ahead
	// of the clock IDs may be made, ms.
	OnRollback string `json:"on_rollback,omitempty"`
	BorrowMs   int64  `json:"borrow_ms,omitempty"`
	// Used is the highest worker slot ever seen granted in the cluster.
	Used int `json:"used,omitempty"`

	// Node is the UUID of this node: its identity.
	Node string `json:"node,omitempty"`
	// Ticket is the name of the node's registration below /tickets.
	Ticket string `json:"ticket,omitempty"`
	// Worker is the slot held, 0 and up.
	Worker int `json:"worker"`
	// Incarnation is that of the cluster when the slot was last written: it grows
	// each time an owner notices that ZooKeeper lost data.
	Incarnation int64 `json:"incarnation,omitempty"`
	// ZooKeeper is where the cluster's records are: servers and chroot.
	ZooKeeper string `json:"zookeeper,omitempty"`
	// Term is the slot's fencing counter at the acknowledged grant.
	Term int64 `json:"term,omitempty"`
	// Nonce is the random number of the acknowledged grant.
	Nonce string `json:"nonce,omitempty"`
	// PendingTerm and PendingNonce are those of a grant being written. They are
	// saved before the write that carries them, so that a write whose
	// acknowledgement was lost is recognised as ours.
	PendingTerm  int64  `json:"pending_term,omitempty"`
	PendingNonce string `json:"pending_nonce,omitempty"`

	// Settled: the grant outlived the settling time. An unsettled record may
	// not start without ZooKeeper.
	Settled bool `json:"settled,omitempty"`
	// Stopped: the last run ended cleanly and M is exact, not ahead.
	Stopped bool `json:"stopped,omitempty"`
	// Released: the holding was given up on purpose; nothing in the record may
	// be resumed. Set by Invalidate.
	Released bool `json:"released,omitempty"`

	// Lo is the floor: no ID of this tenure has a timestamp below it. Unix ms.
	Lo int64 `json:"lo"`
	// M is the reserved bound: no ID of this holding has a timestamp >= M. Unix ms.
	M int64 `json:"m"`
	// H is the acknowledged lease bound: no ID of this slot up to this term has
	// a timestamp >= H. Unix ms.
	H int64 `json:"h"`
	// ServedMs is how long this node has served, over restarts, ms. It sets the
	// length of its leases.
	ServedMs int64 `json:"served_ms,omitempty"`
	// Rotations are the times at which fresh slots were taken after the clock
	// went back, Unix ms. The caller keeps the list short: see ErrTooLarge.
	Rotations []int64 `json:"rotations,omitempty"`

	// Generation counts the writes of this file, failed ones too. Set by Save,
	// ignored in what is saved.
	Generation uint64 `json:"-"`
	// Fingerprint says which file on which machine the record was written to.
	// Set by Save, ignored in what is saved.
	Fingerprint Fingerprint `json:"fingerprint"`
}

// clone shares nothing with r, and has one spelling for "no rotations".
func (r Record) clone() Record {
	if len(r.Rotations) == 0 {
		r.Rotations = nil
	}
	r.Rotations = slices.Clone(r.Rotations)
	return r
}

// follows reports whether old may be left beside r in the other block: whether
// old, found alone with its M raised by MSlack, is a safe stand-in for r. Only
// what moves every second may differ, upwards, and M by MSlack at most. See the
// argument in cache.go.
func (r Record) follows(old Record) bool {
	if r.M < old.M || r.M > raise(old.M) || r.H < old.H {
		return false
	}
	return reflect.DeepEqual(r.withoutRoutine(), old.withoutRoutine())
}

// withoutRoutine clears the fields that an older block may be behind in without
// harm. An older H or ServedMs only shortens what the node may do. All else is
// kept: an old Settled or Stopped would claim what no longer holds, an old Used
// would have granted slots pass for fresh ones, an old nonce loses the slot.
func (r Record) withoutRoutine() Record {
	r = r.clone()
	r.M, r.H, r.ServedMs, r.Generation = 0, 0, 0, 0
	return r
}

// raise adds MSlack to a bound, and stops at the end of time.
func raise(m int64) int64 {
	slack := MSlack.Milliseconds()
	if m > math.MaxInt64-slack {
		return math.MaxInt64
	}
	return m + slack
}
