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

// Thaw ends a freeze of registration early for some workers, or for all of them if
// workers is empty, and frees those of them whose records were lost. The caller has
// to know that no owner of one of them is left. Thaw returns the cluster's record as
// it was, and how many slots it has freed.
func Thaw(ctx context.Context, store Store, workers WorkerSet) (before Cluster, freed int, err error) {
	if before, err = ReadCluster(ctx, store); err != nil {
		return before, 0, err
	}
	entries, err := ReadSlots(ctx, store, before)
	if err != nil {
		return before, 0, err
	}
	for _, e := range entries {
		if workers != "" && !workers.Has(e.Worker) {
			continue
		}
		done, err := freeLost(ctx, store, e)
		if err != nil {
			return before, freed, err
		}
		if done {
			freed++
		}
	}
	return before, freed, updateCluster(ctx, store, func(cl *Cluster) bool {
		was := *cl
		if workers != "" && was.FrozenUntil != 0 {
			cl.Open = cl.Open.Union(workers)
		}
		if workers == "" || cl.Open == AllWorkers(cl.Slots) {
			cl.FrozenUntil, cl.Open, cl.FrozenBy = 0, "", ""
		}
		return *cl != was
	})
}

// freeLost frees a slot whose record was lost. It reports whether there was
// anything to do: its owner may be faster.
func freeLost(ctx context.Context, store Store, e Entry) (bool, error) {
	path, err := slotPath(e.Worker), error(nil)
	switch {
	case e.Absent:
		_, err = store.Create(ctx, path, freeSlot().marshal(), Persistent)
	case e.Slot.Lost:
		_, err = store.Set(ctx, path, freeSlot().marshal(), e.Stat.Version)
	default:
		return false, nil
	}
	if errors.Is(err, ErrExists) || errors.Is(err, ErrBadVersion) {
		return false, nil
	}
	return err == nil, err
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

// freeze is what an owner does that finds that ZooKeeper has lost data: it makes
// the cluster record again if that is gone, puts back its own if a newer one
// has taken the place that nobody has settled in, and keeps everybody off all slots
// for as long as an owner can still live. It returns the record as it is then.
// ErrBadVersion when the newer one is settled meanwhile.
func (c *Coordinator) freeze(ctx context.Context, claim Claim) (Cluster, error) {
	c.remember(claim.Worker)
	now := max(c.Now(), c.latest.Mtime)
	mine := c.mine
	mine.Used, mine.Incarnation = c.used, claim.Incarnation
	if err := c.Store.EnsureRoot(ctx); err != nil {
		return Cluster{}, err
	}
	fenced, next := false, Cluster{}
	err := updateCluster(ctx, c.Store, func(cl *Cluster) bool {
		was := *cl
		if fenced = JudgeCluster(cl, mine.UUID, mine.Incarnation) == FoundFenced; fenced {
			return false
		}
		*cl = frozenAfterLoss(was, mine, now)
		next = *cl
		return *cl != was
	})
	if fenced {
		return Cluster{}, fmt.Errorf("%w: another cluster has settled in the place of ours", ErrBadVersion)
	}
	if !errors.Is(err, ErrNoNode) {
		return next, err
	}
	next = frozenAfterLoss(Cluster{Used: -1}, mine, now)
	_, err = c.Store.Create(ctx, clusterPath, next.marshal(), Persistent)
	if errors.Is(err, ErrExists) {
		return c.freeze(ctx, claim) // another owner was faster
	}
	return next, err
}

// unnoticed tells whether an owner that finds data lost is the first to: nobody has
// put back the cluster in a later incarnation. Then it freezes registration even if
// its own lease has run out. Later it would keep newcomers off for nothing.
func (c *Coordinator) unnoticed(found *Cluster, claim Claim) bool {
	return found == nil || found.UUID != c.mine.UUID || found.Incarnation <= claim.Incarnation
}

// PutBack makes the cluster record again that ZooKeeper has lost, frozen, for a node
// that knows it from its state directory and has no lease. The claim's ticket is
// drawn, to read the leader's clock by.
func (c *Coordinator) PutBack(ctx context.Context, claim *Claim) (Cluster, error) {
	if _, err := c.readClock(ctx, claim); err != nil {
		return Cluster{}, err
	}
	known := *claim
	known.Incarnation = c.mine.Incarnation
	return c.freeze(ctx, known)
}

// frozenAfterLoss returns the cluster record that an owner writes over the one that
// it found when it noticed a loss of data. mine is the cluster as the owner knows it.
//
// All slots are frozen, those that the owner knows nothing of as well: it may have
// been cut off while the cluster grew. A later incarnation whose freeze still runs
// is of an owner that noticed before us: what an operator has opened since stays
// open. That freeze may end before ours must, since a freeze comes back with older
// data, too. Owners who notice the same loss within lossTolerance write once.
func frozenAfterLoss(found, mine Cluster, now int64) Cluster {
	next := mine
	next.Settled = true // by its owners, of whom we are one
	next.Used = max(found.Used, mine.Used)
	until := now + mine.LeaseMs
	if found.UUID == mine.UUID && found.Incarnation > mine.Incarnation && now < found.FrozenUntil {
		next.Incarnation, next.FrozenUntil = found.Incarnation, found.FrozenUntil
		next.Open, next.FrozenBy = found.Open, found.FrozenBy
		if next.FrozenUntil < until {
			next.FrozenUntil = until + lossTolerance
		}
		return next
	}
	next.Incarnation = max(now, found.Incarnation+1, mine.Incarnation+1)
	next.FrozenUntil = max(found.FrozenUntil, until+lossTolerance)
	next.Open, next.FrozenBy = "", ""
	return next
}
