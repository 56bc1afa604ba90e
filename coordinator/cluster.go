package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// ErrNoCluster: this ZooKeeper has no cluster record.
var ErrNoCluster = errors.New("cluster not found in this ZooKeeper")

// ErrDamaged: the cluster record cannot be read.
var ErrDamaged = errors.New("not a cluster record of flaked")

// OtherClusterError: the cluster record is not that of the cluster that this node belongs to.
type OtherClusterError struct{ Found, Ours string }

func (e *OtherClusterError) Error() string {
	return fmt.Sprintf("this ZooKeeper holds cluster %s, but this node belongs to cluster %s", e.Found, e.Ours)
}

// ReadCluster reads the cluster record after a sync. It returns ErrNoCluster if there is none.
func ReadCluster(ctx context.Context, st store.Store) (Cluster, error) {
	if err := st.Sync(ctx, clusterPath); err != nil && !errors.Is(err, store.ErrNoNode) {
		return Cluster{}, err
	}
	return PeekCluster(ctx, st)
}

// PeekCluster reads the cluster record without a sync. The server may lag behind. It takes one round trip, ReadCluster
// takes two.
func PeekCluster(ctx context.Context, st store.Store) (Cluster, error) {
	cl, _, err := findCluster(ctx, st)
	if err != nil || cl == nil {
		return Cluster{}, cmp.Or(err, ErrNoCluster)
	}
	return *cl, nil
}

// findCluster reads the cluster record without a sync. It returns nil if there is none.
func findCluster(ctx context.Context, st store.Store) (*Cluster, store.Stat, error) {
	data, stat, err := st.Get(ctx, clusterPath)
	if errors.Is(err, store.ErrNoNode) {
		return nil, stat, nil
	}
	if err != nil {
		return nil, stat, err
	}
	cl, err := parseCluster(data)
	return &cl, stat, err
}

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

// ensureRoot creates the parents of the cluster's records if they are missing.
func ensureRoot(ctx context.Context, st store.Store) error {
	return st.EnsureRoot(ctx, ticketsPath, workersPath, livePath)
}

// create creates a record, and its parents if ZooKeeper has lost them.
func create(ctx context.Context, st store.Store, path string, data []byte, mode store.Kind) error {
	_, err := st.Create(ctx, path, data, mode)
	if errors.Is(err, store.ErrNoNode) {
		if err = ensureRoot(ctx, st); err == nil {
			_, err = st.Create(ctx, path, data, mode)
		}
	}
	return err
}

// CreateCluster creates the cluster record if there is none, and returns the record that ZooKeeper has then. now is our
// clock, Unix ms.
func CreateCluster(ctx context.Context, st store.Store, want Cluster, now int64) (Cluster, error) {
	if found, err := ReadCluster(ctx, st); !errors.Is(err, ErrNoCluster) {
		return found, err
	}
	if err := ensureRoot(ctx, st); err != nil {
		return Cluster{}, err
	}
	want.HighestSlot, want.Horizon = -1, want.nextHorizon(now)
	_, err := st.Create(ctx, clusterPath, want.marshal(), store.Persistent)
	if err != nil && !errors.Is(err, store.ErrExists) {
		return Cluster{}, err
	}
	return ReadCluster(ctx, st)
}

// updateCluster changes the cluster record by a versioned write, and tries again if another write was faster. change
// returns false if there is nothing to write.
func updateCluster(ctx context.Context, st store.Store, change func(*Cluster) bool) error {
	for {
		cl, stat, err := findCluster(ctx, st)
		if err == nil && cl == nil {
			err = ErrNoCluster
		}
		if err != nil || !change(cl) {
			return err
		}
		if _, err = st.Set(ctx, clusterPath, cl.marshal(), stat.Version); !mustReread(err) {
			return err
		}
	}
}

// clusterOp returns the operation that writes the cluster's record, if cl is not what v has, and checks otherwise that
// it has not changed.
func clusterOp(v recorded, cl Cluster) store.Op {
	if cl != *v.cl {
		return store.SetOp{Path: clusterPath, Data: cl.marshal(), Version: v.clStat.Version}
	}
	return store.CheckOp{Path: clusterPath, Version: v.clStat.Version}
}

// mustReread reports whether a record must be read and written again: it has changed since it was read, or our own write
// of it must not stay (errUnconfirm).
func mustReread(err error) bool {
	return store.Outpaced(err) || errors.Is(err, errUnconfirm)
}

// horizon has the values of Cluster.Horizon that a node has read or written, in Unix ms. No node writes a lease bound
// above the cluster's horizon (C23). So a freeze until the horizon outlasts the lease of each disconnected holder, even
// if the holder's clock is ahead.
//
// When the horizon was raised, the node waits for the confirming time before its own lease may reach the new value.
// By then all connected nodes have read the new value, and would freeze registration until then. A lease that is not
// confirmed yet may reach the new value at once.
//
// Scenario: A's clock is far ahead. A raises the horizon, writes a lease up to it, and is cut off. ZooKeeper loses both
// writes. B has not read the raise, and freezes registration until the horizon that it knows. A's lease outlasts that.
type horizon struct {
	known  int64 // the highest that was read or written
	usable int64 // the own lease may reach it
	next   int64 // becomes usable; not above usable: none does
	since  int64 // when next was read, ns of AtLeast
}

// saw returns the horizon after v was read or written at now, ns of AtLeast. The first one that a process reads
// counts at once.
func (h horizon) saw(v, now int64) horizon {
	if v <= h.known {
		return h
	}
	h.known = v
	switch {
	case h.usable == 0:
		h.usable = v
	case h.next <= h.usable:
		h.next, h.since = v, now
	}
	return h
}

// at returns the horizon at now, ns of AtLeast. confirm is the cluster's confirming time.
func (h horizon) at(now int64, confirm time.Duration) horizon {
	//mutant:c23-horizon-counts-at-once by TestHorizon -> if h.next > h.usable {
	if h.next > h.usable && now-h.since >= int64(confirm) {
		h.usable = h.next
		if h.known > h.next {
			h.next, h.since = h.known, now
		}
	}
	return h
}

// horizonSlackMs is the least distance, in ms, of a lease bound below the horizon. A node that would come closer raises
// the horizon. The distance is the time until a raise counts: the confirming time, and a heartbeat of a quarter of it.
func (c Cluster) horizonSlackMs() int64 { return c.ConfirmTime().Milliseconds() * 5 / 4 }

// nextHorizon returns the horizon that a node writes at now, Unix ms. It lasts for a while, so that the cluster's
// record changes rarely. A freeze until then also covers what others have raised while its writer was cut off, by other
// clocks.
func (c Cluster) nextHorizon(now int64) int64 {
	return max(c.Horizon, c.lastLease(now)+c.LeaseMs/64+2*c.horizonSlackMs())
}

// lastLease returns the latest lease bound that a node can have written at now, Unix ms by any clock in use.
func (c Cluster) lastLease(now int64) int64 { return now + c.LeaseMs + clocksApart }

// lastBound returns the latest lease bound that any holder can have at now: that of a lease from now, or the horizon.
func (c Cluster) lastBound(now int64) int64 { return max(c.Horizon, c.lastLease(now)) }

// FreezeEnd returns the end of a freeze of registration after a loss that shows at now, Unix ms by any clock in use. No
// holder can have a lease then.
func (c Cluster) FreezeEnd(now int64) int64 {
	//mutant:c21-freeze-ends-early by TestFreezeEnd -> return c.lastBound(now) - 60_000
	return c.lastBound(now)
}

// Freeze returns the record with a higher horizon, and with registration frozen because of a loss that shows at now. It
// shortens no freeze.
func (c Cluster) Freeze(now int64) Cluster {
	c.Horizon = c.nextHorizon(now)
	c.FrozenUntil = max(c.FrozenUntil, c.FreezeEnd(now))
	return c
}

// withHorizon returns the cluster's record with a higher horizon, if a lease from now, Unix ms, comes too close to it.
// now is not of a clock that is ahead. A lease of 0 means that the clock is not trusted.
func (c Cluster) withHorizon(now int64, lease time.Duration) Cluster {
	if lease > 0 && now+lease.Milliseconds() > c.Horizon-c.horizonSlackMs() {
		c.Horizon = c.nextHorizon(now)
	}
	return c
}
