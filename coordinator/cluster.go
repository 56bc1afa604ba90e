package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/limits"
	"github.com/flaked/flaked/zkstore"
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
func ReadCluster(ctx context.Context, store zkstore.Store) (Cluster, error) {
	if err := store.Sync(ctx, clusterPath); err != nil && !errors.Is(err, zkstore.ErrNoNode) {
		return Cluster{}, err
	}
	return PeekCluster(ctx, store)
}

// PeekCluster does that as the server has it that is asked, which may lag behind the
// others. It takes one round trip, and ReadCluster two.
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

// ensureRoot makes the parents of the cluster's records where they are missing.
func ensureRoot(ctx context.Context, store zkstore.Store) error {
	return store.EnsureRoot(ctx, ticketsPath, workersPath, livePath)
}

// CreateCluster makes the cluster record unless there is one, and returns the
// one that is there then.
func CreateCluster(ctx context.Context, store zkstore.Store, want Cluster) (Cluster, error) {
	if found, err := ReadCluster(ctx, store); !errors.Is(err, ErrNoCluster) {
		return found, err
	}
	if err := ensureRoot(ctx, store); err != nil {
		return Cluster{}, err
	}
	want.Used = -1
	if _, err := store.Create(ctx, clusterPath, want.marshal(), zkstore.Persistent); err != nil && !errors.Is(err, zkstore.ErrExists) {
		return Cluster{}, err
	}
	return ReadCluster(ctx, store)
}

// updateCluster changes the cluster record by versioned write, again when
// somebody else was faster. change says whether there is anything to write. It
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

// lossTolerance is added to a freeze, and to the bound of a lost slot: how far
// clocks may be apart, in milliseconds.
const lossTolerance = int64(limits.ClocksApart / time.Millisecond)

// freeze freezes registration after a loss of data, and returns the cluster's record.
// found says what shows the loss.
//
// It recreates the record if it is missing, and replaces a newer cluster's that nobody
// has settled in. The freeze ends when no owner can hold a lease any more, by the
// leader's clock too. The error is zkstore.ErrBadVersion if somebody has settled in the
// newer cluster meanwhile.
func (c *Coordinator) freeze(ctx context.Context, claim Claim, found string) (Cluster, error) {
	c.Logger.Error("ZooKeeper has lost data; freezing registration", "worker", claim.Worker, "found", found)
	return c.freezeFromNow(ctx, claim)
}

// freezeFromNow is freeze for a loss that has been logged.
func (c *Coordinator) freezeFromNow(ctx context.Context, claim Claim) (Cluster, error) {
	c.remember(claim.Worker)
	mine := c.mine
	mine.Used, mine.Incarnation, mine.Settled = c.used, claim.Incarnation, claim.leased(c.Now())
	for now := max(c.Now(), c.latest.Mtime); ; {
		next, stamp, err := c.writeFreeze(ctx, mine, now)
		if err != nil || next.FrozenUntil >= stamp+mine.LeaseMs {
			return next, err
		}
		now = stamp // our clock is behind
	}
}

// writeFreeze has the cluster record be frozen, as of now. stamp is when the leader
// wrote that record: long ago, if another owner's freeze was long enough.
func (c *Coordinator) writeFreeze(ctx context.Context, mine Cluster, now int64) (next Cluster, stamp int64, err error) {
	fenced := false
	stat, err := updateCluster(ctx, c.Store, func(cl *Cluster) bool {
		if fenced = JudgeCluster(cl, mine.UUID, mine.Incarnation) == FoundFenced; fenced {
			return false
		}
		next = frozenAfterLoss(*cl, mine, now)
		changed := next != *cl
		*cl = next
		return changed
	})
	if fenced {
		return Cluster{}, 0, fmt.Errorf("%w: another cluster has settled in the place of ours", zkstore.ErrBadVersion)
	}
	if !errors.Is(err, zkstore.ErrNoNode) {
		return next, stat.Mtime, err
	}
	made := frozenAfterLoss(Cluster{Used: -1}, mine, now)
	_, err = c.Store.Create(ctx, clusterPath, made.marshal(), zkstore.Persistent)
	if errors.Is(err, zkstore.ErrNoNode) {
		err = ensureRoot(ctx, c.Store)
	}
	if err != nil && !errors.Is(err, zkstore.ErrExists) {
		return Cluster{}, 0, err
	}
	return c.writeFreeze(ctx, mine, now) // ours, another owner's who was faster, or still none
}

// mustFreeze tells whether an owner that finds data lost has to freeze registration:
// while its lease runs, and else if it is the first to notice, so that the cluster is
// in no later incarnation. A claim that has never settled does not put its cluster in
// the place of another, or of none.
func (c *Coordinator) mustFreeze(found *Cluster, claim Claim) bool {
	switch {
	case claim.leased(c.Now()):
		return true
	case found == nil || found.UUID != c.mine.UUID:
		return claim.Settled
	}
	return found.Incarnation <= claim.Incarnation
}

// PutBack makes the cluster record again that ZooKeeper has lost, frozen, for a node
// that knows it from its state directory and has no lease.
func (c *Coordinator) PutBack(ctx context.Context, claim Claim) (Cluster, error) {
	claim.Incarnation = c.mine.Incarnation
	cl, err := c.freeze(ctx, claim, "ZooKeeper has lost the cluster record")
	if err == nil {
		c.replaceAllLost(ctx, cl)
	}
	return cl, err
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
	next.Settled = mine.Settled || found.UUID == mine.UUID && found.Settled
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
