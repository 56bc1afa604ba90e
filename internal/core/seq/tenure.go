package seq

import (
	"time"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/store"
)

// Tenure is the holding of a worker by the node. An Issuer takes positions only while the node has one.
type Tenure interface {
	// Slot returns what each write that takes positions in a session must check, and how long the node must wait
	// before it takes any.
	Slot(session int64) Slot
	// Cluster returns the cluster that the node has joined, and false while the node holds no worker.
	Cluster() (ClusterInfo, bool)
	// ReleasesAtStop reports whether the node gives its worker up when it stops, so that no later process goes on with
	// it.
	ReleasesAtStop() bool
	// ReportLoss says that ZooKeeper has lost data: found says what shows it. Unless the incarnation of the cluster
	// is above known already, the node raises it. Then it wakes the Issuer. ReportLoss must not block.
	ReportLoss(known int64, found string)
}

// Slot is the record of the node's worker.
type Slot struct {
	// Path is that of the record, "" if the node holds no worker. Version is its version at the last heartbeat that
	// ZooKeeper acknowledged.
	Path    string
	Version int32
	// Incarnation is that of /cluster as the node had read it before that heartbeat.
	Incarnation int64
	// Wait is the time until the node may take positions: until its worker is confirmed, and coordinator.Chain is long
	// enough. 0: now. An owner may renew its lease before: see allows.
	Wait time.Duration
}

// check returns the operation without which no positions are taken. It fails if ZooKeeper's data is older than the
// node's last heartbeat.
func (s Slot) check() store.Op { return store.CheckOp{Path: s.Path, Version: s.Version} }

// isConfirmed reports whether the node's worker allows it to take positions (S11). After a loss of data
// roundIO.unconfirmed demands more.
//
//mutant:s11-no-wait-after-a-gap -> func (s Slot) isConfirmed() bool { return s.Path != "" }
func (s Slot) isConfirmed() bool { return s.Path != "" && s.Wait == 0 }

// allows reports whether the node may make a write now. An owner may renew its lease before it may take positions, if
// that changes nothing else (O7).
func (s Slot) allows(w mode.Write) bool {
	//mutant:o7-takes-unconfirmed -> return s.isConfirmed() || s.Path != "" && w.Renews
	return s.isConfirmed() || s.Path != "" && w.Renews && w.Block.Len() == 0 && w.Record.Owner != ""
}

// ClusterInfo has the facts about a cluster that sequences need.
type ClusterInfo struct {
	UUID string
	// ConfirmTime is the time in which a node that holds a worker notices that ZooKeeper has lost data.
	ConfirmTime time.Duration
	// Nodes is the number of nodes of the cluster that are connected, as far as the node knows.
	Nodes int
	// Self is the identity of the node. Resumed: this process goes on with the identity of its state directory, where
	// it found Journal as the last count of the journal.
	Self    string
	Resumed bool
	Journal uint64
}
