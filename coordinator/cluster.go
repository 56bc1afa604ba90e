package coordinator

import (
	"context"
	"errors"
	"fmt"
	"github.com/flaked/flaked/internal/zkstore"
)

// ErrNoCluster: this ZooKeeper has no cluster record.
var ErrNoCluster = errors.New("cluster not found in this ZooKeeper")

// OtherClusterError: the cluster record is not that of the cluster that this node belongs
// to.
type OtherClusterError struct{ Found, Ours string }

func (e *OtherClusterError) Error() string {
	return fmt.Sprintf("this ZooKeeper holds cluster %s, but this node belongs to cluster %s", e.Found, e.Ours)
}

// ReadCluster reads the cluster record after a sync. It returns ErrNoCluster if there is
// none.
func ReadCluster(ctx context.Context, store zkstore.Store) (Cluster, error) {
	if err := store.Sync(ctx, clusterPath); err != nil && !errors.Is(err, zkstore.ErrNoNode) {
		return Cluster{}, err
	}
	return PeekCluster(ctx, store)
}

// PeekCluster reads the cluster record without a sync. The server may lag behind. It takes
// one round trip, ReadCluster takes two.
func PeekCluster(ctx context.Context, store zkstore.Store) (Cluster, error) {
	data, _, err := store.Get(ctx, clusterPath)
	if errors.Is(err, zkstore.ErrNoNode) {
		return Cluster{}, ErrNoCluster
	}
	if err != nil {
		return Cluster{}, err
	}
	return parseCluster(data)
}

// ensureRoot creates the parents of the cluster's records if they are missing.
func ensureRoot(ctx context.Context, store zkstore.Store) error {
	return store.EnsureRoot(ctx, ticketsPath, workersPath, livePath)
}

// CreateCluster creates the cluster record if there is none, and returns the record that
// ZooKeeper has then. now is our clock, Unix ms.
func CreateCluster(ctx context.Context, store zkstore.Store, want Cluster, now int64) (Cluster, error) {
	if found, err := ReadCluster(ctx, store); !errors.Is(err, ErrNoCluster) {
		return found, err
	}
	if err := ensureRoot(ctx, store); err != nil {
		return Cluster{}, err
	}
	want.HighestSlot, want.Horizon = -1, want.nextHorizon(now)
	if _, err := store.Create(ctx, clusterPath, want.marshal(), zkstore.Persistent); err != nil && !errors.Is(err, zkstore.ErrExists) {
		return Cluster{}, err
	}
	return ReadCluster(ctx, store)
}

// updateCluster changes the cluster record by a versioned write, and tries again if another
// write was faster. change returns false if there is nothing to write. updateCluster
// returns the stat of the record as it is then.
func updateCluster(ctx context.Context, store zkstore.Store, change func(*Cluster) bool) (zkstore.Stat, error) {
	for {
		data, stat, err := store.Get(ctx, clusterPath)
		if err != nil {
			return zkstore.Stat{}, err
		}
		cl, err := parseCluster(data)
		if err != nil || !change(&cl) {
			return stat, err
		}
		if stat, err = store.Set(ctx, clusterPath, cl.marshal(), stat.Version); !errors.Is(err, zkstore.ErrBadVersion) {
			return stat, err
		}
	}
}
