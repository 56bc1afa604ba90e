package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// ClockError says why this machine's clock must not be used for IDs: it is wrong, or too far
// behind what may have been issued already.
type ClockError struct{ Reason string }

func (e *ClockError) Error() string { return e.Reason }

// attempt is what a node knows while it tries to acquire a slot.
type attempt struct {
	// usable: the hold has a claim to resume. Otherwise it has the identity of the node that registers.
	usable bool
	// cached: the claim is confirmed, so the node may also start without ZooKeeper while the
	// lease runs.
	cached bool
	// moved: the state directory was last used with another ZooKeeper. The claim may be
	// resumed only if this ZooKeeper has its record, and nothing is put back here.
	moved bool
}

// newcomer makes the node one without a slot, with a new identity.
func (n *Node) newcomer() attempt {
	n.hold = n.coord.Enlist(n.cfg.Identity(), "")
	return attempt{}
}

// joinTime bounds how long a node that can start without ZooKeeper tries to reach it.
const joinTime = 1500 * time.Millisecond

// acquire acquires a slot: the slot of the state directory, or a new one. It returns nil once
// the node holds a tenure. If ZooKeeper is needed and does not answer, acquire retries, and
// gives up when it could not read the cluster record for timeout (0: never). Failures of
// later calls do not count: a slow ZooKeeper must not end a start.
func (n *Node) acquire(ctx context.Context, a attempt, timeout time.Duration) error {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 100*time.Millisecond, 3*time.Second
	var said Cause
	n.keeper.heard = n.mono()
	for {
		began := n.mono()
		n.releaseOwed(ctx) // this node may wait for a worker that it still has to release
		err := n.tryAcquire(ctx, &a)
		if err == nil || ctx.Err() != nil {
			return err
		}
		var replaced *coordinator.OtherClusterError
		if errors.As(err, &replaced) && !a.usable {
			// Holders have put their cluster back while this node created a new one.
			n.log.Warn("another cluster record replaced this node's while it registered, joining that cluster", "error", err)
		} else {
			cause := n.causeOfWait(err, n.keeper.heard > began)
			if cause == "" {
				return err
			}
			if timeout > 0 && errors.Is(err, store.ErrUnreachable) && n.mono() > n.keeper.heard+int64(timeout) {
				return fmt.Errorf("ZooKeeper did not answer within %s, and this node cannot start without it: %w", timeout, err)
			}
			if said != cause {
				n.log.Warn("waiting for a worker: the state directory has no valid lease to start from", "cause", cause, "error", err)
				said = cause
			}
			n.refuse(Starting, cause)
		}
		if err := n.pause(ctx, wait.NextBackOff()); err != nil {
			return err
		}
	}
}

// causeOfWait returns the cause for which a start waits after err, and retries. It is "" if err
// ends the start. heard means that ZooKeeper answered since the attempt began.
func (n *Node) causeOfWait(err error, heard bool) Cause {
	switch {
	case errors.Is(err, store.ErrUnreachable) && heard:
		return CauseZooKeeperSlow
	case errors.Is(err, store.ErrUnreachable):
		return CauseZooKeeperUnreachable
	}
	return ""
}

// begin returns the first attempt, made from the local record in the state directory.
//
// A record that does not match this machine and file was copied or moved. The original may
// be started as well, even without ZooKeeper, while this node holds the slot. So such a
// record is never resumed, and the node registers as a new one.
func (n *Node) begin() (attempt, error) {
	loaded := n.cfg.Cache.Load()
	rec, err := DecodeRecord(loaded.Record)
	if err != nil {
		return attempt{}, err
	}
	var unfit error
	if rec.ClusterName == n.cfg.Cluster { // even if the record is not resumed
		unfit = n.adoptCluster(rec.Cluster)
	}
	newcomer, moved := n.newcomer(), rec.ZooKeeper != "" && rec.ZooKeeper != n.cfg.ZooKeeper && !n.cfg.ZooKeeperReplaced
	newcomer.moved = moved
	n.mu.Lock()
	n.store.address = rec.ZooKeeper
	if n.cfg.ZooKeeperReplaced {
		n.store.address = n.cfg.ZooKeeper
	}
	n.mu.Unlock()
	switch {
	case loaded.Status == localcache.StatusCorrupt:
		n.log.Warn("ignored the damaged state file, registering as a new node", "reason", loaded.Reason)
		return newcomer, nil
	case loaded.Status != localcache.StatusRecord:
		return newcomer, nil
	case rec.ClusterName != n.cfg.Cluster:
		return attempt{}, &OtherClusterError{Ours: fmt.Sprintf("%q", rec.ClusterName), Found: fmt.Sprintf("%q", n.cfg.Cluster)}
	case len(loaded.Changed) > 0:
		n.log.Warn("the state directory was copied or moved here, registering as a new node", "changed", loaded.Changed, "old_worker", rec.Claim.Worker)
		return newcomer, nil
	case loaded.Damaged:
		n.log.Warn("one copy in the state file is damaged, continuing from the other", "reason", loaded.Reason)
	}
	if rec.Boot == "" || rec.Boot != n.cfg.BootID {
		rec.Claim.Heard.Began, rec.Claim.Heard.Sent, rec.Claim.Ends = 0, 0, 0 // by another clock
	}
	if loaded.Damaged {
		n.startSlack = limits.BoundSlack // its ReservedUntil was raised by this
		rec.Claim.Generation++           // the block that is lost may have been the newer one
	}
	if unfit == nil {
		_, unfit = n.fits(n.cluster)
	}
	if unfit != nil {
		return attempt{}, unfit
	}
	n.adopt(rec)
	n.hold = n.coord.Recall(rec.Claim)
	if moved {
		n.log.Warn("the state directory was last used with another ZooKeeper, resuming only if this one has the worker's record", "last_zookeeper", rec.ZooKeeper, "zookeeper", n.cfg.ZooKeeper)
	}
	return attempt{usable: true, cached: rec.Claim.Confirmed && !moved, moved: moved}, nil
}

// checkStart returns a *ClockError if the clock is behind floor (Unix ms) by more than a start
// waits for. A predecessor may have issued everything below floor.
func (n *Node) checkStart(floor int64) error {
	patience := limits.MaxStartWait + n.startSlack
	wait := timeguard.StartWait(n.now(), floor)
	if wait > patience {
		return &ClockError{fmt.Sprintf("the clock is %s behind what this worker may have issued. A start waits %s at most. Set the clock right, or remove the state directory to start with a new worker", wait, patience)}
	}
	return nil
}

// move is what a start does next.
type move int

const (
	moveOver     move = iota // the attempt is over: with an error, or with a tenure
	moveResume               // resume the claim
	moveAlone                // start from the state directory alone
	moveRefuse               // this is another ZooKeeper, which has not the record
	moveAnew                 // register with a new identity: the old one held a slot, and is over
	moveRegister             // register with the present identity
)

// afterJoin returns what follows when the cluster's record was read. lost: ZooKeeper has lost the cluster. leased: the lease of the
// claim runs.
func (a attempt) afterJoin(lost bool, err error, leased bool) move {
	switch {
	case a.cached && leased && (lost || errors.Is(err, store.ErrUnreachable)):
		return moveAlone
	case err != nil:
		return moveOver
	case a.usable:
		return moveResume
	}
	return moveRegister
}

// afterResume returns what follows an attempt to resume. held: the claim's grant was acknowledged.
func (a attempt) afterResume(err error, leased, held bool) move {
	var notOurs *coordinator.NotOursError
	switch ours := !errors.As(err, &notOurs); {
	case a.cached && leased && errors.Is(err, store.ErrUnreachable):
		return moveAlone
	case ours:
		return moveOver
	case notOurs.Lost && a.moved:
		return moveRefuse
	case notOurs.Lost && a.cached && leased:
		return moveAlone
	case held:
		return moveAnew
	}
	return moveRegister
}

func (n *Node) tryAcquire(ctx context.Context, a *attempt) error {
	n.turns.keep.Store(n.mono())
	looking := n.cfg.CallTimeout
	if a.cached && n.leased() {
		looking = min(looking, joinTime)
	}
	joinCtx, cancel := context.WithTimeout(ctx, looking)
	defer cancel()
	// A loss that this node has found is of its old cluster, so it comes before joining another.
	n.passLoss()
	if err := n.coord.Settle(joinCtx); err != nil {
		return err
	}
	lost, err := n.joinCluster(joinCtx, a)
	next := a.afterJoin(lost, err, n.leased())
	// Looking through a thousand slots of a slow ensemble takes long.
	ctx, over := context.WithTimeout(ctx, 6*n.cfg.CallTimeout)
	defer over()
	var notOurs *coordinator.NotOursError
	if next == moveResume {
		err = n.resume(ctx)
		next = a.afterResume(err, n.leased(), n.hold.Held().Nonce != "")
		if lost = errors.As(err, &notOurs) && notOurs.Lost; notOurs != nil && a.moved {
			n.coord.Forgive()
		}
	}
	switch next {
	case moveOver:
		return err
	case moveAlone:
		return n.startFromCache(lost)
	case moveRefuse:
		return n.otherZooKeeper()
	case moveAnew:
		n.giveUp(a, notOurs)
	}
	a.usable = false
	return n.register(ctx, a)
}

// giveUp ends an identity that held a slot, and makes the node a newcomer.
func (n *Node) giveUp(a *attempt, why *coordinator.NotOursError) {
	if why.Lost {
		n.cfg.WakeSequences()
	}
	n.log.Warn("registering as a new node", "reason", why.Reason, "worker", why.Worker)
	n.forget()
	moved := a.moved
	*a = n.newcomer()
	a.moved = moved
	n.mu.Lock()
	n.served, n.rotations = 0, nil
	n.mu.Unlock()
}

// leased reports whether the claim's lease runs.
func (n *Node) leased() bool { return n.hold.Held().Leased(n.now(), n.cfg.Clock.Boot()) }

// startFromCache starts from the local record alone: ZooKeeper does not answer, or it has lost
// the record of this node or its cluster (lost).
func (n *Node) startFromCache(lost bool) error {
	s := n.peek()
	n.hold.GoAlone(s.reservedUntil, s.generation)
	claim := n.hold.Held()
	n.log.Warn("starting from the state directory alone, the clock is unverified", "cause", TroubleFromCache,
		"worker", claim.Worker, "term", claim.Term,
		"lease_left_s", ms(claim.LeaseUntil-n.now()).Round(time.Second).Seconds(), "record_missing", lost)
	return n.beginTenure()
}

func (n *Node) resume(ctx context.Context) error {
	reserved := n.peek().reservedUntil
	check := func(own coordinator.Reading, peers []coordinator.Reading) error {
		if err := n.checkClock(own, peers); err != nil {
			return err
		}
		return n.checkStart(reserved)
	}
	grant, err := n.hold.Resume(ctx, n.lease(), check)
	if err != nil {
		return err
	}
	return n.granted(grant, "resumed")
}

func (n *Node) register(ctx context.Context, a *attempt) error {
	cl := n.peek().cluster // as joinCluster has just read it
	grant, err := n.hold.Register(ctx, cl, n.lease(), n.checkClock)
	if err != nil {
		a.usable = n.hold.Pending() // the slot may have been written all the same: the next attempt resumes it if so
		return err
	}
	return n.granted(grant, "registered")
}

// granted begins to hold a slot whose write was acknowledged. how is the log message.
func (n *Node) granted(g coordinator.Grant, how string) error {
	n.mu.Lock()
	n.store.address = n.cfg.ZooKeeper // it has the record
	n.mu.Unlock()
	n.keeper.lastWait = g.Wait
	claim := n.hold.Held()
	n.log.Info(how, "worker", claim.Worker, "term", claim.Term, "node", claim.Node, "confirm_time_s", g.Wait.Seconds())
	return n.beginTenure()
}

// beginTenure creates the tenure of the hold. The tenure issues nothing until publish has put it into
// serving.
func (n *Node) beginTenure() error {
	claim := n.hold.Held()
	if err := n.checkStart(claim.Floor); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	gen, err := worker.NewGenerator(worker.GeneratorConfig{
		Layout: n.layout, Datacenter: n.cluster.Datacenter, Worker: int64(claim.Worker),
		Floor: n.layout.CeilTick(claim.Floor), Clock: n.clock, Rollback: n.onRollback,
		CountRollbacks: n.onRollback.Counts(), Borrow: n.borrow,
		SequenceStart: n.sequenceStart, SegmentStart: n.segmentStart, Rand: n.cfg.Rand, Counts: &n.meter.worker,
	})
	if err != nil {
		return err
	}
	n.claim, n.confirmed, n.alone = claim, n.hold.IsConfirmed(), n.hold.Alone()
	n.held = &tenure{node: claim.Node, worker: claim.Worker, floor: claim.Floor, gen: gen, counts: n.onRollback.Counts()}
	return nil
}

// lease returns how far ahead of the clock the next write pushes the lease bound. It is 0 while
// the clock counts as wrong: the bound stays where it is.
func (n *Node) lease() time.Duration {
	s := n.peek()
	if s.skew.wrong {
		return 0
	}
	return timeguard.Lease(ms(s.cluster.LeaseMs), s.served)
}

// pause waits for d, or until ZooKeeper is reached again. If the context ends first, pause
// returns its error.
func (n *Node) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-n.cfg.Reconnected:
	case <-timer.C:
	}
	return nil
}
