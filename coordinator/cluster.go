package coordinator

import (
	"context"
	"errors"
	"fmt"

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
	data, _, err := st.Get(ctx, clusterPath)
	if errors.Is(err, store.ErrNoNode) {
		return Cluster{}, ErrNoCluster
	}
	if err != nil {
		return Cluster{}, err
	}
	return parseCluster(data)
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
// returns false if there is nothing to write. updateCluster returns the stat of the record as it is then.
func updateCluster(ctx context.Context, st store.Store, change func(*Cluster) bool) (store.Stat, error) {
	for {
		data, stat, err := st.Get(ctx, clusterPath)
		if err != nil {
			return store.Stat{}, err
		}
		cl, err := parseCluster(data)
		if err != nil || !change(&cl) {
			return stat, err
		}
		if stat, err = st.Set(ctx, clusterPath, cl.marshal(), stat.Version); !errors.Is(err, store.ErrBadVersion) {
			return stat, err
		}
	}
}
