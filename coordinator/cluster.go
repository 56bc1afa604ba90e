package coordinator

import (
	"context"
	"errors"
	"fmt"
)

// ErrNoCluster: there is no cluster record here, and none was asked for.
var ErrNoCluster = errors.New("coordinator: no such cluster in this ZooKeeper")

// OtherClusterError: the cluster record is not the one that the local record,
// or this tenure, belongs to.
type OtherClusterError struct{ Found, Ours string }

func (e *OtherClusterError) Error() string {
	return fmt.Sprintf("coordinator: this ZooKeeper holds cluster %s, and this node belongs to %s", e.Found, e.Ours)
}

// ReadCluster reads the cluster record. ErrNoCluster when there is none.
func ReadCluster(ctx context.Context, store Store) (Cluster, error) {
	if err := store.Sync(ctx, clusterPath); err != nil && !errors.Is(err, ErrNoNode) {
		return Cluster{}, err
	}
	data, _, err := store.Get(ctx, clusterPath)
	if errors.Is(err, ErrNoNode) {
		return Cluster{}, ErrNoCluster
	}
	if err != nil {
		return Cluster{}, err
	}
	return parseCluster(data)
}

// CreateCluster makes the cluster record unless there is one, and returns the
// one that is there then.
func CreateCluster(ctx context.Context, store Store, want Cluster) (Cluster, error) {
	if found, err := ReadCluster(ctx, store); !errors.Is(err, ErrNoCluster) {
		return found, err
	}
	if err := store.EnsureRoot(ctx); err != nil {
		return Cluster{}, err
	}
	want.Used = -1
	if _, err := store.Create(ctx, clusterPath, want.marshal(), Persistent); err != nil && !errors.Is(err, ErrExists) {
		return Cluster{}, err
	}
	return ReadCluster(ctx, store)
}

// Thaw ends a freeze of registration early, and frees the slots whose records
// were lost: whoever calls it knows that no owner of one is left. It returns
// the cluster's record as it was, and how many slots it has freed.
func Thaw(ctx context.Context, store Store) (before Cluster, freed int, err error) {
	if before, err = ReadCluster(ctx, store); err != nil {
		return before, 0, err
	}
	entries, err := ReadSlots(ctx, store, before)
	if err != nil {
		return before, 0, err
	}
	for _, e := range entries {
		path := slotPath(e.Worker)
		switch {
		case e.Absent:
			_, err = store.Create(ctx, path, freeSlot().marshal(), Persistent)
		case e.Slot.Lost:
			_, err = store.Set(ctx, path, freeSlot().marshal(), e.Stat.Version)
		default:
			continue
		}
		switch {
		case errors.Is(err, ErrExists), errors.Is(err, ErrBadVersion):
			// Its owner was faster.
		case err != nil:
			return before, freed, err
		default:
			freed++
		}
	}
	return before, freed, updateCluster(ctx, store, func(c *Cluster) bool {
		changed := c.FrozenUntil != 0
		c.FrozenUntil, c.FrozenUsed, c.FrozenBy = 0, 0, ""
		return changed
	})
}

// updateCluster changes the cluster record by versioned write, again when
// somebody else was faster. change says whether there is anything to write.
func updateCluster(ctx context.Context, store Store, change func(*Cluster) bool) error {
	for {
		data, stat, err := store.Get(ctx, clusterPath)
		if err != nil {
			return err
		}
		cl, err := parseCluster(data)
		if err != nil {
			return err
		}
		if !change(&cl) {
			return nil
		}
		if _, err := store.Set(ctx, clusterPath, cl.marshal(), stat.Version); !errors.Is(err, ErrBadVersion) {
			return err
		}
	}
}

// lossTolerance is added to a freeze, and to the bound of a lost slot: how far
// clocks may be apart.
const lossTolerance = 10_000

// freeze is what an owner does that finds ZooKeeper has lost data: it makes
// the cluster record again if that is gone, puts back its own if a newer one
// has taken the place that nobody has settled in, and keeps everybody off the
// slots that were in use for as long as an owner can still live. ErrBadVersion
// when the newer one is settled meanwhile.
func (c *Coordinator) freeze(ctx context.Context, mine Cluster, worker int) error {
	c.remember(worker)
	now := max(c.Now(), c.latest.Mtime)
	frozen := func(cl *Cluster) bool {
		// That it is frozen is not enough: a freeze comes back with older data
		// as well, and ends before the leases that were made since. Owners who
		// notice the same loss within the tolerance write once.
		if cl.FrozenBy == "" && now+mine.LeaseMs <= cl.FrozenUntil && cl.UUID == mine.UUID && cl.Used >= c.used && cl.FrozenUsed >= c.used {
			return false
		}
		used := max(cl.Used, c.used)
		upTo := used
		if cl.UUID == mine.UUID && now < cl.FrozenUntil {
			upTo = max(used, cl.FrozenUsed) // somebody has frozen more by hand
		}
		until := max(cl.FrozenUntil, now+mine.LeaseMs+lossTolerance)
		*cl = mine
		cl.Settled = true // its owners have: that is what we are
		cl.Used, cl.FrozenUsed, cl.FrozenUntil, cl.FrozenBy = used, upTo, until, ""
		return true
	}
	if err := c.Store.EnsureRoot(ctx); err != nil {
		return err
	}
	fenced := false
	err := updateCluster(ctx, c.Store, func(cl *Cluster) bool {
		fenced = JudgeCluster(cl, mine.UUID) == FoundFenced
		return !fenced && frozen(cl)
	})
	if fenced {
		return fmt.Errorf("%w: another cluster has settled in the place of ours", ErrBadVersion)
	}
	if !errors.Is(err, ErrNoNode) {
		return err
	}
	again := mine
	again.Used, again.FrozenUntil = -1, 0
	frozen(&again)
	_, err = c.Store.Create(ctx, clusterPath, again.marshal(), Persistent)
	if errors.Is(err, ErrExists) {
		return c.freeze(ctx, mine, worker) // another owner was faster
	}
	return err
}
