package coordinator

import (
	"context"
	"errors"

	"github.com/flaked/flaked/internal/core/store"
)

// recordPair has the record of the cluster and that of one slot, as read from ZooKeeper. ZooKeeper may have changed one
// of them before it read the other: a write that was decided by both records must check both versions.
type recordPair struct {
	cl       *Cluster // nil: no record
	clStat   store.Stat
	slot     *Slot // nil: no record
	slotStat store.Stat
}

// checkCluster returns an error if the records are not of the cluster mine.
func (v recordPair) checkCluster(mine Cluster) error {
	switch {
	case v.cl == nil:
		return ErrNoCluster
	case v.cl.UUID != mine.UUID:
		return &OtherClusterError{Found: v.cl.UUID, Ours: mine.UUID}
	}
	return nil
}

// readPair reads the records of the cluster and of a worker in one round trip.
func (c *Coordinator) readPair(ctx context.Context, worker int) (recordPair, error) {
	records, err := c.Store.GetAll(ctx, clusterPath, SlotPath(worker))
	if err != nil {
		return recordPair{}, err
	}
	return parsePair(records)
}

// parsePair returns what the records of the cluster and of a slot show.
func parsePair(records []store.Record) (v recordPair, _ error) {
	if r := records[0]; r.Found {
		cl, err := parseCluster(r.Data)
		if err != nil {
			return recordPair{}, err
		}
		v.cl, v.clStat = &cl, r.Stat
	}
	if r := records[1]; r.Found {
		slot := parseSlot(r.Data)
		v.slot, v.slotStat = &slot, r.Stat
	}
	return v, nil
}

// clusterOp returns the operation that writes the cluster's record, if cl is not what v has, and checks otherwise that
// it has not changed.
func clusterOp(v recordPair, cl Cluster) store.Op {
	if cl != *v.cl {
		return store.SetOp{Path: clusterPath, Data: cl.marshal(), Version: v.clStat.Version}
	}
	return store.CheckOp{Path: clusterPath, Version: v.clStat.Version}
}

// mustReread reports whether a record must be read and written again: it has changed since it was read, or our own
// write of it must not stay (errUnconfirm).
func mustReread(err error) bool {
	return store.Outpaced(err) || errors.Is(err, errUnconfirm)
}
