package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flaked/flaked/internal/limits"
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
// ZooKeeper has then.
func CreateCluster(ctx context.Context, store zkstore.Store, want Cluster) (Cluster, error) {
	if found, err := ReadCluster(ctx, store); !errors.Is(err, ErrNoCluster) {
		return found, err
	}
	if err := ensureRoot(ctx, store); err != nil {
		return Cluster{}, err
	}
	want.HighestSlot = -1
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

// lossTolerance is how far clocks may be apart, in milliseconds. It is added to the end of a
// freeze and to the lease bound of a lost slot.
const lossTolerance = int64(limits.ClocksApart / time.Millisecond)

// freeze freezes registration after a loss of data, and returns the cluster's record.
// found says what shows the loss.
//
// It recreates the record if it is missing. It replaces the record of a newer cluster if no
// node has confirmed there. The freeze ends when no holder can hold a lease any more, also by
// the leader's clock. The error is zkstore.ErrBadVersion if a node has confirmed in the newer
// cluster meanwhile.
func (c *Coordinator) freeze(ctx context.Context, claim Claim, found string) (Cluster, error) {
	c.Logger.Error("ZooKeeper has lost data; freezing registration", "worker", claim.Worker, "found", found)
	return c.freezeFromNow(ctx, claim)
}

// owedFreeze is a freeze that a node must write although it has lost its own slot: holders that
// are cut off need it.
type owedFreeze struct {
	claim Claim
	found string // what shows the loss
}

// FreezeOwed writes the freeze that this node owes. A node owes none once its lease has expired,
// once a freeze has been written since, or once another cluster has replaced its own and
// confirmed. The node must not Join another cluster before.
func (c *Coordinator) FreezeOwed(ctx context.Context) error {
	if c.owed == nil || !c.owed.claim.leased(c.Now()) {
		c.owed = nil
		return nil
	}
	cl, err := ReadCluster(ctx, c.Store)
	if err != nil && !errors.Is(err, ErrNoCluster) {
		return err
	}
	if err != nil || cl.Incarnation <= c.owed.claim.Incarnation {
		_, err = c.freeze(ctx, c.owed.claim, c.owed.found)
	}
	if err != nil && !errors.Is(err, zkstore.ErrBadVersion) {
		return err
	}
	c.owed = nil
	return nil
}

// OweNoFreeze drops the freeze that this node owes. It is for a node whose state directory was
// last used with another ZooKeeper: this one may never have had the node's record.
func (c *Coordinator) OweNoFreeze() { c.owed = nil }

// freezeFromNow does the same as freeze, without the log message.
func (c *Coordinator) freezeFromNow(ctx context.Context, claim Claim) (Cluster, error) {
	c.raiseHighestSlot(claim.Worker)
	mine := c.mine
	mine.HighestSlot, mine.Incarnation, mine.Confirmed = c.highestSlot, claim.Incarnation, claim.leased(c.Now())
	for now := max(c.Now(), c.latest.Mtime); ; {
		next, stamp, err := c.writeFreeze(ctx, mine, now)
		if err != nil || next.FrozenUntil >= stamp+mine.LeaseMs {
			return next, err
		}
		now = stamp // our clock is behind
	}
}

// writeFreeze writes the freeze, as of now, into the cluster record. It writes nothing if the
// record has a freeze that is long enough. stamp is the leader's time of the last write of
// the record.
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
		return Cluster{}, 0, fmt.Errorf("%w: another cluster has replaced this node's and confirmed", zkstore.ErrBadVersion)
	}
	if !errors.Is(err, zkstore.ErrNoNode) {
		return next, stat.Mtime, err
	}
	made := frozenAfterLoss(Cluster{HighestSlot: -1}, mine, now)
	_, err = c.Store.Create(ctx, clusterPath, made.marshal(), zkstore.Persistent)
	if errors.Is(err, zkstore.ErrNoNode) {
		err = ensureRoot(ctx, c.Store)
	}
	if err != nil && !errors.Is(err, zkstore.ErrExists) {
		return Cluster{}, 0, err
	}
	return c.writeFreeze(ctx, mine, now) // read what is there now
}

// mustFreeze reports whether a holder that has noticed a loss of data must freeze
// registration. It must while its lease runs. Otherwise it must if it is the first to
// notice, so that the cluster has no later incarnation. A claim that never confirmed does not
// recreate its cluster, nor put it in the place of another.
func (c *Coordinator) mustFreeze(found *Cluster, claim Claim) bool {
	switch {
	case claim.leased(c.Now()):
		return true
	case found == nil || found.UUID != c.mine.UUID:
		return claim.Confirmed
	}
	return found.Incarnation <= claim.Incarnation
}

// PutBack recreates, frozen, the cluster record that ZooKeeper has lost. It is for a node
// that knows the cluster from its state directory and has no lease.
func (c *Coordinator) PutBack(ctx context.Context, claim Claim) (Cluster, error) {
	claim.Incarnation = c.mine.Incarnation
	cl, err := c.freeze(ctx, claim, "ZooKeeper has lost the cluster record")
	if err == nil {
		c.replaceAllLost(ctx, cl)
	}
	return cl, err
}

// frozenAfterLoss returns the cluster record that a holder writes after a loss of data. found
// is the record in ZooKeeper, mine the cluster as the holder knows it.
//
// All slots are frozen, because the cluster may have grown while the holder was cut off. If
// found has a later incarnation and its freeze still runs, another holder noticed the loss
// before us. Then the freeze is only made longer if it would end too early. It may, because older data can bring back an older
// freeze. Holders that notice the same loss within lossTolerance write only once.
func frozenAfterLoss(found, mine Cluster, now int64) Cluster {
	next := mine
	next.Confirmed = mine.Confirmed || found.UUID == mine.UUID && found.Confirmed
	next.HighestSlot = max(found.HighestSlot, mine.HighestSlot)
	until := now + mine.LeaseMs
	if found.UUID == mine.UUID && found.Incarnation > mine.Incarnation && now < found.FrozenUntil {
		next.Incarnation, next.FrozenUntil = found.Incarnation, found.FrozenUntil
		next.FrozenBy = found.FrozenBy
		if next.FrozenUntil < until {
			next.FrozenUntil = until + lossTolerance
		}
		return next
	}
	next.Incarnation = max(now, found.Incarnation+1, mine.Incarnation+1)
	next.FrozenUntil = max(found.FrozenUntil, until+lossTolerance)
	next.FrozenBy = ""
	return next
}
