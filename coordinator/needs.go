package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/flaked/flaked/zkstore"
)

// NeedsSequences is Cluster.Needs of a cluster that has named sequences. A node that does not know
// them would notice a loss of ZooKeeper's data and not raise the epoch of the sequences.
const NeedsSequences = "sequences"

// neededRecord is the cluster's record with Needs. Its highest slot has another name than usual, because
// versions of flaked that do not know Needs refuse a record without highest_slot.
type neededRecord struct {
	Cluster
	Usual   *int `json:"highest_slot,omitempty"`
	Highest *int `json:"highest_worker,omitempty"`
}

func (c Cluster) marshal() []byte {
	if c.Needs == "" {
		return mustMarshal(c)
	}
	return mustMarshal(neededRecord{Cluster: c, Highest: &c.HighestSlot})
}

// parseCluster parses the cluster's record. It refuses a record without the highest slot: an older
// release, which had other names, would pass for a cluster whose workers were never held.
func parseCluster(b []byte) (Cluster, error) {
	var r neededRecord
	if err := json.Unmarshal(b, &r); err != nil || r.UUID == "" || r.Slots < 1 {
		return Cluster{}, fmt.Errorf("%s is not a cluster record of flaked: %.80q", clusterPath, b)
	}
	highest := r.Usual
	switch r.Needs {
	case "":
	case NeedsSequences:
		highest = r.Highest
	default:
		return Cluster{}, fmt.Errorf("the cluster needs nodes that know %q, which this version of flaked does not. Upgrade it", r.Needs)
	}
	if highest == nil {
		return Cluster{}, fmt.Errorf("another release of flaked wrote %s. Use that release, or another cluster name: %.80q", clusterPath, b)
	}
	r.Cluster.HighestSlot = *highest
	return r.Cluster, nil
}

// UnfitError: nodes of a version without named sequences run in the cluster.
type UnfitError struct{ Nodes []Entry }

func (e *UnfitError) Error() string {
	return fmt.Sprintf("%d workers are held by nodes of a version without named sequences", len(e.Nodes))
}

// RequireSequences makes sure that only nodes which know named sequences run in the cluster, now and later.
// A write of a sequence together with the operation that it returns fails with zkstore.ErrBadVersion if that
// may no longer be so. The error is an *UnfitError if other nodes run.
//
// The cluster's record is marked first, and the slots are read after that. A node that cannot read the mark
// can confirm a slot only by a transaction which checks that the record has not changed. So either its slot
// is seen here, or the node is refused.
func RequireSequences(ctx context.Context, store zkstore.Store, now int64) (zkstore.Op, error) {
	for {
		cl, stat, err := clusterWithStat(ctx, store)
		if err != nil {
			return nil, err
		}
		marks := cl.Needs == ""
		if marks {
			if err := unfitNodes(ctx, store, cl, now); err != nil {
				return nil, err
			}
			cl.Needs = NeedsSequences
			if stat, err = store.Set(ctx, clusterPath, cl.marshal(), stat.Version); errors.Is(err, zkstore.ErrBadVersion) {
				continue
			} else if err != nil {
				return nil, err
			}
		}
		if err := unfitNodes(ctx, store, cl, now); err != nil {
			if marks {
				err = errors.Join(err, setNeeds(ctx, store, ""))
			}
			return nil, err
		}
		return zkstore.CheckOp{Path: clusterPath, Version: stat.Version}, nil
	}
}

// CheckSequences returns an *UnfitError if nodes run that do not know named sequences. It writes nothing.
func CheckSequences(ctx context.Context, store zkstore.Store, now int64) error {
	cl, err := ReadCluster(ctx, store)
	if err != nil {
		return err
	}
	return unfitNodes(ctx, store, cl, now)
}

func clusterWithStat(ctx context.Context, store zkstore.Store) (Cluster, zkstore.Stat, error) {
	if err := store.Sync(ctx, "/"); err != nil && !errors.Is(err, zkstore.ErrNoNode) {
		return Cluster{}, zkstore.Stat{}, err
	}
	data, stat, err := store.Get(ctx, clusterPath)
	if errors.Is(err, zkstore.ErrNoNode) {
		err = ErrNoCluster
	}
	if err != nil {
		return Cluster{}, stat, err
	}
	cl, err := parseCluster(data)
	return cl, stat, err
}

// setNeeds writes Cluster.Needs, unless it is there already.
func setNeeds(ctx context.Context, store zkstore.Store, needs string) error {
	_, err := updateCluster(ctx, store, func(cl *Cluster) bool {
		changed := cl.Needs != needs
		cl.Needs = needs
		return changed
	})
	return err
}

// unfitNodes returns an *UnfitError if nodes without named sequences run.
func unfitNodes(ctx context.Context, store zkstore.Store, cl Cluster, now int64) error {
	slots, err := ReadSlots(ctx, store, cl)
	if err != nil {
		return err
	}
	var unfit []Entry
	for _, e := range slots {
		if e.Runs(now) && e.Slot.Changes == 0 {
			unfit = append(unfit, e)
		}
	}
	if len(unfit) > 0 {
		return &UnfitError{unfit}
	}
	return nil
}

// freshHeartbeats is the age of a slot's record, in heartbeats, up to which its holder counts as running.
const freshHeartbeats = 5

// Runs reports whether the slot's holder runs, as far as ZooKeeper shows: it has a session, or has reported
// a short time ago and has not stopped since. now is Unix ms.
func (e Entry) Runs(now int64) bool {
	if e.Live {
		return true
	}
	fresh := freshHeartbeats * max(e.Slot.HeartbeatMs, DefaultHeartbeat.Milliseconds())
	return e.Holds() && now-e.Stat.Mtime < fresh
}

// Holds reports whether the slot's last holder may run: it has not stopped cleanly. An operator who
// released the slot has not stopped its holder.
func (e Entry) Holds() bool {
	return e.Slot.Node != "" && !e.Slot.Stopped && (!e.Slot.Released || e.Slot.ReleasedBy != "")
}
