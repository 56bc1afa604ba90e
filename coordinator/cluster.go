package coordinator

import (
	"cmp"
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
