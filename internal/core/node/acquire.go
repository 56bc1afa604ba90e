package node

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/localcache"
)

// mayGoAlone reports whether the node may start without ZooKeeper now.
func (k *keeper) mayGoAlone(a *attempt) bool { return a.mayStartAlone && k.leased() }

// firstAttempt returns the first attempt, made from the local record in the state directory. It returns an error if the
// start must not go on.
func (k *keeper) firstAttempt() (attempt, error) {
	loaded := k.cfg.Cache.Load()
	rec, err := DecodeRecord(loaded.Record)
	if err != nil {
		return attempt{}, err
	}
	// unfit ends the start only if the claim can be resumed. A new node goes by the cluster's record in ZooKeeper.
	var unfit error
	// Adopt the cluster even if the claim is not resumed: this node must not create a new cluster in the place of one
	// that ZooKeeper has lost.
	if rec.ClusterName == k.cfg.Cluster && rec.Cluster.UUID != "" {
		var r rules
		if r, unfit = k.cfg.rulesForNode(rec.Cluster); unfit == nil {
			k.adopt(rec.Cluster, r)
		}
	}
	//mutant:c17-any-zookeeper by sim -> otherZK := false
	otherZK := rec.ZooKeeper != "" && rec.ZooKeeper != k.cfg.ZooKeeper && !k.cfg.ZooKeeperReplaced
	k.mu.Lock()
	k.reports.address = rec.ZooKeeper
	if k.cfg.ZooKeeperReplaced {
		k.reports.address = k.cfg.ZooKeeper
	}
	k.mu.Unlock()
	if loaded.Status == localcache.StatusRecord && rec.ClusterName != k.cfg.Cluster {
		return attempt{}, &StateOfOtherClusterError{Ours: strconv.Quote(rec.ClusterName),
			Found: strconv.Quote(k.cfg.Cluster)}
	}
	if !k.resumable(loaded, rec) {
		k.becomeNewcomer()
		return attempt{otherZK: otherZK}, nil
	}
	if unfit == nil {
		_, unfit = k.cfg.rulesIfFits(k.view.Load().Cluster)
	}
	if unfit != nil {
		return attempt{}, unfit
	}
	if otherZK {
		k.log.Warn("the state directory was last used with another ZooKeeper, resuming only if this one has the "+
			"worker's record",
			"last_zookeeper", rec.ZooKeeper, "zookeeper", k.cfg.ZooKeeper)
	}
	k.recall(loaded, rec)
	return attempt{usable: true, mayStartAlone: rec.Claim.EverConfirmed && !otherZK, otherZK: otherZK}, nil
}

// resumable reports whether the state directory has a claim to resume.
//
// A record that does not match this machine and file was copied or moved. The original may
// be started as well, even without ZooKeeper, while this node holds the slot. So such a
// record is never resumed, and the node registers as a new one (C18).
func (k *keeper) resumable(loaded localcache.Loaded, rec LocalRecord) bool {
	switch {
	case loaded.Status == localcache.StatusCorrupt:
		k.log.Warn("ignored the damaged state file, registering as a new node", "reason", loaded.Reason)
		return false
	case loaded.Status != localcache.StatusRecord:
		return false
	//mutant:c18-no-fingerprint by sim -> case false:
	case len(loaded.Changed) > 0:
		k.log.Warn("the state directory was copied or moved here, registering as a new node",
			"changed", loaded.Changed, "old_worker", rec.Claim.Worker)
		return false
	case loaded.Damaged:
		k.log.Warn("one copy in the state file is damaged, continuing from the other", "reason", loaded.Reason)
	}
	return true
}

// recall makes the claim of a local record the node's own.
func (k *keeper) recall(loaded localcache.Loaded, rec LocalRecord) {
	claim := rec.Claim.Rebased(k.elapsed, rec.Boot != "" && rec.Boot == k.cfg.BootID)
	if loaded.Damaged {
		k.startSlack = limits.BoundSlack // its ReservedUntil was raised by this
		claim.Generation++               // the block that is lost may have been the newer one
	}
	k.coord.Recall(claim)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.view.Store(k.coord.View())
	k.reservedUntil, k.generation = claim.ReservedUntil, claim.Generation
	k.served, k.rotations = ms(rec.ServedMs), rec.Rotations
	k.resumed, k.journal = true, rec.Journal
}

// becomeNewcomer makes the node one without a slot, with a new identity.
func (k *keeper) becomeNewcomer() {
	k.coord.Recall(coordinator.Claim{Owner: coordinator.Owner{Node: k.cfg.Identity()}})
	k.mu.Lock()
	k.view.Store(k.coord.View())
	k.reservedUntil, k.resumed = 0, false
	k.mu.Unlock()
}

// acquire acquires a slot: the slot of the state directory, or a new one. It returns nil once the node holds a tenure.
// If ZooKeeper is needed and does not answer, acquire retries, and gives up when it could not read the cluster record
// for timeout (0: never). Failures of later calls do not count: a slow ZooKeeper must not end a start. A clone of this
// process on a worker that was left does: see releaseOld.
func (k *keeper) acquire(ctx context.Context, a attempt, timeout time.Duration) error {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 100*time.Millisecond, 3*time.Second
	a.answered = k.monotonic()
	for {
		began := k.monotonic()
		if err := k.releaseOld(ctx); err != nil { // this node may wait for a worker that it still has to release
			k.forget()
			return err
		}
		err := k.tryAcquire(ctx, &a)
		if err == nil || ctx.Err() != nil {
			return err
		}
		cause := a.causeOfWait(err, began)
		var replaced *coordinator.OtherClusterError
		switch {
		case errors.As(err, &replaced) && !a.usable && !k.belongs():
			// Holders have restored their cluster while this node created a new one.
			k.log.Warn("another cluster record replaced this node's while it registered, joining that cluster",
				"error", err)
		case cause == "":
			return err
		case timeout > 0 && k.monotonic() > a.answered+int64(timeout):
			return fmt.Errorf("ZooKeeper did not answer within %s, and this node cannot start without it: %w",
				timeout, err)
		default:
			if k.refusal.Load().Cause != cause {
				k.log.Warn("waiting for a worker: the state directory has no valid lease to start from",
					"cause", cause, "error", err)
			}
			k.refuse(Starting, cause)
		}
		if err := k.sleep(ctx, wait.NextBackOff(), nil); err != nil {
			return err
		}
	}
}

// joinTime bounds how long a node that can start without ZooKeeper tries to reach it.
const joinTime = 1500 * time.Millisecond

// tryAcquire makes one attempt to get a tenure.
func (k *keeper) tryAcquire(ctx context.Context, a *attempt) error {
	k.turns.keep.Store(k.monotonic())
	looking := k.cfg.RoundTimeout
	if k.mayGoAlone(a) {
		looking = min(looking, joinTime)
	}
	joinCtx, cancel := context.WithTimeout(ctx, looking)
	defer cancel()
	// A loss that this node has found is of its old cluster, so it comes before joining another.
	k.passLoss()
	if err := k.coord.AnnounceDue(joinCtx); err != nil {
		return err
	}
	lost, err := k.joinCluster(joinCtx, a)
	if err := k.checkEra(); err != nil {
		return err // before a slot is written with such a time
	}
	o := outcome{err: err, lost: lost, leased: k.leased()}
	next := a.next(o)
	// Looking through a thousand slots of a slow ensemble takes long.
	ctx, over := context.WithTimeout(ctx, 6*k.cfg.RoundTimeout)
	defer over()
	if next == moveResume {
		o = k.resume(ctx, a)
		next = a.next(o)
	}
	switch next {
	case moveOver:
		return o.err
	case moveAlone:
		return k.startAlone(o.lost)
	case moveRefuse:
		return k.otherZooKeeper()
	case moveAnew:
		k.beginAnew(a, o)
	case moveRegister: // with the present identity
	}
	// The cluster's record is as joinCluster has just read it.
	_, confirm, err := k.coord.Register(ctx, k.view.Load().Cluster, k.lease(), k.checkClock)
	if err != nil {
		a.usable = k.coord.Pending() // the slot may have been written all the same: the next attempt resumes it if so
		return err
	}
	a.usable = false
	return k.holdSlot(confirm, "registered")
}

// resume tries to resume the claim, and begins its tenure if it succeeds.
func (k *keeper) resume(ctx context.Context, a *attempt) outcome {
	reserved := k.peek().reservedUntil
	check := func(own coordinator.Reading, peers []coordinator.Reading) error {
		if err := k.checkClock(own, peers); err != nil {
			return err
		}
		return k.checkFloor(reserved)
	}
	confirm, err := k.coord.Resume(ctx, k.lease(), check)
	o := outcome{tried: true, err: err, leased: k.leased(), granted: k.coord.Claim().Nonce != ""}
	if err == nil {
		o.err = k.holdSlot(confirm, "resumed")
	}
	if notOurs, ok := errors.AsType[*coordinator.NotOursError](err); ok {
		o.lost = notOurs.Lost
		if a.otherZK {
			k.coord.DropUnannounced()
		}
	}
	return o
}

// startAlone starts from the local record alone: ZooKeeper does not answer, or it has lost
// the record of this node or its cluster (lost).
func (k *keeper) startAlone(lost bool) error {
	s := k.peek()
	//mutant:c16-alone-beyond-the-lease -> c := k.coord.Claim(); c.LeaseUntil = k.now() + 60_000; k.coord.Recall(c); k.coord.GoAlone(s.reservedUntil, s.generation)
	k.coord.GoAlone(s.reservedUntil, s.generation) // from the reserved bound on (C6)
	claim := k.coord.Claim()
	k.log.Warn("starting from the state directory alone, the clock is unverified", "cause", TroubleFromCache,
		"worker", claim.Worker, "term", claim.Term,
		"lease_left_s", k.leaseLeftS(claim), "record_missing", lost)
	k.cfg.Trace.Step("alone", "node", claim.Node, "worker", claim.Worker, "term", claim.Term, "nonce", claim.Nonce,
		"inc", claim.Incarnation, "floor", claim.Floor, "own_lease", claim.LeaseUntil, "ever", claim.EverConfirmed,
		"now", k.now())
	if err := k.beginTenure(); err != nil {
		return err
	}
	k.startServing()
	return nil
}

// beginAnew ends an identity that held a slot, and makes the node a newcomer.
func (k *keeper) beginAnew(a *attempt, o outcome) {
	if o.lost {
		k.cfg.WakeSequences()
	}
	k.log.Warn("registering as a new node", "worker", k.coord.Claim().Worker, "reason", o.err)
	k.forget()
	k.becomeNewcomer()
	*a = attempt{otherZK: a.otherZK, answered: a.answered}
	k.mu.Lock()
	k.served, k.rotations = 0, nil
	k.mu.Unlock()
}

// holdSlot begins the tenure of a slot whose grant was acknowledged. The tenure serves at once if an earlier process
// has confirmed the slot, and its lease runs. confirm is the confirming time, and how the log message.
func (k *keeper) holdSlot(confirm time.Duration, how string) error {
	k.mu.Lock()
	k.reports.address = k.cfg.ZooKeeper // it has the record
	k.mu.Unlock()
	claim := k.coord.Claim()
	k.log.Info(how, "worker", claim.Worker, "term", claim.Term, "node", claim.Node, "confirm_time_s", confirm.Seconds())
	if err := k.beginTenure(); err != nil {
		return err
	}
	k.startServing()
	return nil
}

// leased reports whether the claim's lease runs.
func (k *keeper) leased() bool { return k.coord.Claim().Leased(k.now(), k.cfg.Clock.Boot()) }
