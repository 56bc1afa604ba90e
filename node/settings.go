package node

import (
	"fmt"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/limits"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// defaultLease is the longest lease of a cluster that a node makes.
const defaultLease = 24 * time.Hour

// maxSlots bounds how many of a layout's workers a cluster uses. Each is a
// record in ZooKeeper that stays, and nodes without a state directory go through
// all of them before one is used again: 65,536 are some 30 MB of ZooKeeper's
// memory, the four million of uid-generator would be two gigabytes.
const maxSlots = 1 << 16

// Slots is how many workers a cluster of this layout has.
func Slots(l worker.Layout) int { return min(l.Workers(), maxSlots) }

// Settings are what the user wants of the cluster. Those that are nil are
// taken from the cluster record, or from the defaults where a node makes one.
type Settings struct {
	Layout     *worker.Layout
	Datacenter *int64
	// Lease is W, the longest lease; Settle the settling time.
	Lease, Settle *time.Duration
	// OnRollback is what a node does whose clock goes back: where a node makes
	// the cluster and its layout has a rollback field, that is used by default.
	OnRollback *timeguard.RollbackPolicy
	// Borrow is how far ahead of the clock a burst may make IDs.
	Borrow *time.Duration
}

// Record is the record of a new cluster with these settings: the defaults where
// there are none, which for the settling time depend on the slowest heartbeat.
func (s Settings) Record(uuid string, heartbeat time.Duration) (coordinator.Cluster, error) {
	layout, datacenter, lease, settle := worker.Leaf(), int64(0), defaultLease, limits.DefaultConfirm(heartbeat)
	if s.Layout != nil {
		layout = *s.Layout
	}
	if s.Datacenter != nil {
		datacenter = *s.Datacenter
	}
	if s.Lease != nil {
		lease = *s.Lease
	}
	if s.Settle != nil {
		settle = *s.Settle
	}
	cl, err := newCluster(uuid, layout, datacenter, lease, settle)
	if err != nil {
		return cl, err
	}
	switch {
	case s.OnRollback != nil:
		cl.OnRollback = s.OnRollback.String()
	case layout.RollbackBits > 0:
		cl.OnRollback = timeguard.CountRollbacks.String()
	}
	if s.Borrow != nil {
		if *s.Borrow%time.Millisecond != 0 {
			return cl, &RangeError{Setting: SettingBorrow, Problem: fmt.Sprintf("borrowing %s is not a whole number of milliseconds", *s.Borrow)}
		}
		cl.BorrowMs = s.Borrow.Milliseconds()
	}
	_, err = readRules(cl)
	return cl, err
}

func newCluster(uuid string, layout worker.Layout, datacenter int64, lease, settle time.Duration) (coordinator.Cluster, error) {
	if _, err := layout.Encode(worker.Fields{Datacenter: datacenter}); err != nil {
		return coordinator.Cluster{}, err
	}
	if lease < time.Second {
		return coordinator.Cluster{}, fmt.Errorf("node: a lease of %s: at least 1s", lease)
	}
	if settle != 0 && settle < limits.MinConfirm || settle > time.Hour {
		return coordinator.Cluster{}, fmt.Errorf("node: a settling time of %s: it must be %s to 1h", settle, limits.MinConfirm)
	}
	return coordinator.Cluster{
		UUID: uuid, Layout: layout.String(), Slots: Slots(layout), Datacenter: datacenter,
		LeaseMs: lease.Milliseconds(), SettleMs: settle.Milliseconds(), Used: -1,
	}, nil
}

// Agree returns a *DiffersError for what in a cluster is not as it was asked for.
func (s Settings) Agree(cl coordinator.Cluster) error {
	switch {
	case s.Layout != nil && s.Layout.String() != cl.Layout:
		return &DiffersError{SettingLayout, s.Layout, cl.Layout}
	case s.Datacenter != nil && *s.Datacenter != cl.Datacenter:
		return &DiffersError{SettingDatacenter, *s.Datacenter, cl.Datacenter}
	case s.Lease != nil && s.Lease.Milliseconds() != cl.LeaseMs:
		return &DiffersError{SettingLease, *s.Lease, ms(cl.LeaseMs)}
	case s.Settle != nil && s.Settle.Milliseconds() != cl.SettleMs:
		return &DiffersError{SettingSettle, *s.Settle, ms(cl.SettleMs)}
	case s.OnRollback != nil && s.OnRollback.String() != OnRollback(cl):
		return &DiffersError{SettingOnRollback, s.OnRollback, OnRollback(cl)}
	case s.Borrow != nil && s.Borrow.Milliseconds() != cl.BorrowMs:
		return &DiffersError{SettingBorrow, *s.Borrow, ms(cl.BorrowMs)}
	}
	return nil
}

// OnRollback is a cluster's rollback policy as it is written.
func OnRollback(cl coordinator.Cluster) string {
	if cl.OnRollback == "" {
		return timeguard.RollbackPolicy{}.String()
	}
	return cl.OnRollback
}
