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
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// attempt is what a node knows while it tries to acquire a slot.
type attempt struct {
	// usable: the node has a claim to resume. Otherwise it has the identity of the node that registers.
	usable bool
	// cached: the claim is confirmed, so the node may also start without ZooKeeper while the lease runs.
	cached bool
	// otherZK: the state directory was last used with another ZooKeeper. The claim may be
	// resumed only if this ZooKeeper has its record, and nothing is put back here (C17).
	otherZK bool
}

// begin returns the first attempt, made from the local record in the state directory. A start that must
// not go on is refused.
func (n *Node) begin() (attempt, error) {
	loaded := n.cfg.Cache.Load()
	rec, err := DecodeRecord(loaded.Record)
	if err != nil {
		return attempt{}, err
	}
	// unfit ends the start only if the claim can be resumed. A new node goes by the cluster's record in ZooKeeper.
	var unfit error
	// Even if the record is not resumed: the node must not make a cluster anew that ZooKeeper has lost.
	if rec.ClusterName == n.cfg.Cluster {
		unfit = n.adoptCluster(rec.Cluster)
	}
	a := n.newcomer()
	//mutant:c17-any-zookeeper by sim -> a.otherZK = false
	a.otherZK = rec.ZooKeeper != "" && rec.ZooKeeper != n.cfg.ZooKeeper && !n.cfg.ZooKeeperReplaced
	n.mu.Lock()
	n.store.address = rec.ZooKeeper
	if n.cfg.ZooKeeperReplaced {
		n.store.address = n.cfg.ZooKeeper
	}
	n.mu.Unlock()
	if loaded.Status == localcache.StatusRecord && rec.ClusterName != n.cfg.Cluster {
		return a, &StateOfOtherClusterError{Ours: strconv.Quote(rec.ClusterName), Found: strconv.Quote(n.cfg.Cluster)}
	}
	if !n.resumable(loaded, rec) {
		return a, nil
	}
	if unfit == nil {
		_, unfit = n.cfg.fits(n.cluster)
	}
	if unfit != nil {
		return a, unfit
	}
	if a.otherZK {
		n.log.Warn("the state directory was last used with another ZooKeeper, resuming only if this one has the "+
			"worker's record",
			"last_zookeeper", rec.ZooKeeper, "zookeeper", n.cfg.ZooKeeper)
	}
	n.recall(loaded, rec)
	a.usable, a.cached = true, n.coord.Claim().EverConfirmed && !a.otherZK
	return a, nil
}

// resumable reports whether the state directory has a claim to resume.
//
// A record that does not match this machine and file was copied or moved. The original may
// be started as well, even without ZooKeeper, while this node holds the slot. So such a
// record is never resumed, and the node registers as a new one (C18).
func (n *Node) resumable(loaded localcache.Loaded, rec LocalRecord) bool {
	switch {
	case loaded.Status == localcache.StatusCorrupt:
		n.log.Warn("ignored the damaged state file, registering as a new node", "reason", loaded.Reason)
		return false
	case loaded.Status != localcache.StatusRecord:
		return false
	//mutant:c18-no-fingerprint by sim -> case false:
	case len(loaded.Changed) > 0:
		n.log.Warn("the state directory was copied or moved here, registering as a new node",
			"changed", loaded.Changed, "old_worker", rec.Claim.Worker)
		return false
	case loaded.Damaged:
		n.log.Warn("one copy in the state file is damaged, continuing from the other", "reason", loaded.Reason)
	}
	return true
}

// recall makes the claim of a local record the node's own.
func (n *Node) recall(loaded localcache.Loaded, rec LocalRecord) {
	claim := rec.Claim.From(n.elapsed, rec.Boot != "" && rec.Boot == n.cfg.BootID)
	if loaded.Damaged {
		n.startSlack = limits.BoundSlack // its ReservedUntil was raised by this
		claim.Generation++               // the block that is lost may have been the newer one
	}
	n.coord.Recall(claim)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.follow()
	n.reservedUntil, n.generation = claim.ReservedUntil, claim.Generation
	n.served, n.rotations = ms(rec.ServedMs), rec.Rotations
	n.resumed, n.journal = true, rec.Journal
}

// newcomer makes the node one without a slot, with a new identity.
func (n *Node) newcomer() attempt {
	n.coord.Enlist(n.cfg.Identity())
	n.mu.Lock()
	n.resumed = false
	n.mu.Unlock()
	return attempt{}
}

// acquire acquires a slot: the slot of the state directory, or a new one. It returns nil once the node holds a tenure.
// If ZooKeeper is needed and does not answer, acquire retries, and gives up when it could not read the cluster record
// for timeout (0: never). Failures of later calls do not count: a slow ZooKeeper must not end a start.
func (n *Node) acquire(ctx context.Context, a attempt, timeout time.Duration) error {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 100*time.Millisecond, 3*time.Second
	n.keeper.answered = n.mono()
	for {
		began := n.mono()
		n.releaseOld(ctx) // this node may wait for a worker that it still has to release
		err := n.tryAcquire(ctx, &a)
		if err == nil || ctx.Err() != nil {
			return err
		}
		cause := n.causeOfWait(err, began)
		var replaced *coordinator.OtherClusterError
		switch {
		case errors.As(err, &replaced) && !a.usable && !n.belongs():
			// Holders have put their cluster back while this node created a new one.
			n.log.Warn("another cluster record replaced this node's while it registered, joining that cluster",
				"error", err)
		case cause == "":
			return err
		case timeout > 0 && n.mono() > n.keeper.answered+int64(timeout):
			return fmt.Errorf("ZooKeeper did not answer within %s, and this node cannot start without it: %w",
				timeout, err)
		default:
			if n.refusal.Load().Cause != cause {
				n.log.Warn("waiting for a worker: the state directory has no valid lease to start from",
					"cause", cause, "error", err)
			}
			n.refuse(Starting, cause)
		}
		if err := n.sleep(ctx, wait.NextBackOff(), nil); err != nil {
			return err
		}
	}
}

// causeOfWait returns the cause for which a start waits after err, and retries. It is "" if err
// ends the start. The attempt began at began, monotonic ns.
func (n *Node) causeOfWait(err error, began int64) Cause {
	switch {
	case !errors.Is(err, store.ErrUnreachable):
		return ""
	case n.keeper.answered > began:
		return CauseZooKeeperSlow
	}
	return CauseZooKeeperUnreachable
}

// joinTime bounds how long a node that can start without ZooKeeper tries to reach it.
const joinTime = 1500 * time.Millisecond

// tryAcquire makes one attempt to get a tenure.
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
	if err := n.coord.WriteNoted(joinCtx); err != nil {
		return err
	}
	lost, err := n.joinCluster(joinCtx, a)
	if err := n.checkEra(); err != nil {
		return err // before anything is written with such a time
	}
	o := outcome{err: err, lost: lost, leased: n.leased()}
	next := a.move(o)
	// Looking through a thousand slots of a slow ensemble takes long.
	ctx, over := context.WithTimeout(ctx, 6*n.cfg.CallTimeout)
	defer over()
	if next == moveResume {
		o = n.resume(ctx, a)
		next = a.move(o)
	}
	switch next {
	case moveOver:
		return o.err
	case moveAlone:
		return n.startFromCache(o.lost)
	case moveRefuse:
		return n.otherZooKeeper()
	case moveAnew:
		n.giveUp(a, o)
	case moveRegister: // with the present identity
	}
	// The cluster's record is as joinCluster has just read it.
	_, confirm, err := n.coord.Register(ctx, n.peek().cluster, n.lease(), n.checkClock)
	if err != nil {
		a.usable = n.coord.Pending() // the slot may have been written all the same: the next attempt resumes it if so
		return err
	}
	a.usable = false
	return n.granted(confirm, "registered")
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

// outcome is what a node has found out when it chooses its next move.
type outcome struct {
	// resumed: the node has tried to resume its claim. Otherwise it has only read the cluster's record.
	resumed bool
	err     error
	// lost: ZooKeeper has lost the cluster, or the record of the claim.
	lost bool
	// leased: the lease of the claim runs. granted: a grant of the claim was acknowledged.
	leased, granted bool
}

// move returns what follows an outcome.
func (a attempt) move(o outcome) move {
	unanswered := errors.Is(o.err, store.ErrUnreachable) || errors.Is(o.err, store.ErrRefused)
	var notOurs *coordinator.NotOursError
	switch {
	case o.lost && a.otherZK:
		return moveRefuse
	//mutant:c16-alone-beyond-the-lease by sim -> case a.cached && (o.lost || unanswered):
	case a.cached && o.leased && (o.lost || unanswered): // alone only while the lease runs (C16)
		return moveAlone
	case o.err == nil && a.usable && !o.resumed:
		return moveResume
	case o.err == nil && !o.resumed:
		return moveRegister
	case o.err == nil:
		return moveOver
	case !errors.As(o.err, &notOurs):
		return moveOver
	case o.granted:
		return moveAnew
	}
	return moveRegister
}

// resume tries to resume the claim, and begins its tenure if it succeeds.
func (n *Node) resume(ctx context.Context, a *attempt) outcome {
	reserved := n.peek().reservedUntil
	check := func(own coordinator.Reading, peers []coordinator.Reading) error {
		if err := n.checkClock(own, peers); err != nil {
			return err
		}
		return n.checkStart(reserved)
	}
	confirm, err := n.coord.Resume(ctx, n.lease(), check)
	o := outcome{resumed: true, err: err, leased: n.leased(), granted: n.coord.Claim().Nonce != ""}
	if err == nil {
		o.err = n.granted(confirm, "resumed")
	}
	if notOurs, ok := errors.AsType[*coordinator.NotOursError](err); ok {
		o.lost = notOurs.Lost
		if a.otherZK {
			n.coord.Forgive()
		}
	}
	return o
}

// startFromCache starts from the local record alone: ZooKeeper does not answer, or it has lost
// the record of this node or its cluster (lost).
func (n *Node) startFromCache(lost bool) error {
	s := n.peek()
	//mutant:c16-alone-beyond-the-lease -> c := n.coord.Claim(); c.LeaseUntil = n.now() + 60_000; n.coord.Recall(c); n.coord.GoAlone(s.reservedUntil, s.generation)
	n.coord.GoAlone(s.reservedUntil, s.generation) // from the reserved bound on (C6)
	claim := n.coord.Claim()
	n.log.Warn("starting from the state directory alone, the clock is unverified", "cause", TroubleFromCache,
		"worker", claim.Worker, "term", claim.Term,
		"lease_left_s", n.leaseLeftS(claim), "record_missing", lost)
	n.cfg.Trace.Step("alone", "node", claim.Node, "worker", claim.Worker, "term", claim.Term, "nonce", claim.Nonce,
		"inc", claim.Incarnation, "floor", claim.Floor, "own_lease", claim.LeaseUntil, "ever", claim.EverConfirmed,
		"now", n.now())
	return n.beginTenure()
}

// giveUp ends an identity that held a slot, and makes the node a newcomer.
func (n *Node) giveUp(a *attempt, o outcome) {
	if o.lost {
		n.cfg.WakeSequences()
	}
	n.log.Warn("registering as a new node", "worker", n.coord.Claim().Worker, "reason", o.err)
	n.forget()
	otherZK := a.otherZK
	*a = n.newcomer()
	a.otherZK = otherZK
	n.mu.Lock()
	n.served, n.rotations = 0, nil
	n.mu.Unlock()
}

// granted begins to hold a slot whose write was acknowledged. confirm is its confirming time, and how the log message.
func (n *Node) granted(confirm time.Duration, how string) error {
	n.mu.Lock()
	n.store.address = n.cfg.ZooKeeper // it has the record
	n.mu.Unlock()
	claim := n.coord.Claim()
	n.log.Info(how, "worker", claim.Worker, "term", claim.Term, "node", claim.Node, "confirm_time_s", confirm.Seconds())
	return n.beginTenure()
}

// leased reports whether the claim's lease runs.
func (n *Node) leased() bool { return n.coord.Claim().Leased(n.now(), n.cfg.Clock.Boot()) }

// lease returns how far ahead of the clock the next write pushes the lease bound. It is 0 while
// the clock counts as wrong: the bound stays where it is.
func (n *Node) lease() time.Duration {
	s := n.peek()
	if s.skew.wrong {
		return 0
	}
	return timeguard.Lease(ms(s.cluster.LeaseMs), s.served)
}

// checkClock returns a *ClockError if most voters find this clock wrong. The coordinator calls
// it before it writes a slot, so that the times of a wrong clock do not get into the record.
func (n *Node) checkClock(own coordinator.Reading, peers []coordinator.Reading) error {
	offset, voters := compare(own, peers)
	verdict := n.verdict(own, offset, voters)
	if verdict.Wrong() {
		return &ClockError{fmt.Sprintf("the clock differs by %s from ZooKeeper and peers (%d of %d voters say so, "+
			"%s is allowed). Set it right (NTP) and start again",
			offset.Ahead.Round(time.Millisecond), verdict.Against, verdict.Voters, limits.ClocksAgree)}
	}
	return nil
}

// checkStart returns a *ClockError if the clock is behind floor (Unix ms) by more than a start
// waits for. A predecessor may have issued everything below floor.
func (n *Node) checkStart(floor int64) error {
	patience := limits.MaxStartWait + n.startSlack
	wait := timeguard.StartWait(n.now(), floor)
	if wait > patience {
		return &ClockError{fmt.Sprintf("the clock is %s behind what this worker may have issued. "+
			"A start waits %s at most. Set the clock right, or remove the state directory to start with a new worker",
			wait, patience)}
	}
	return nil
}

// checkEra returns a *ClockError if the layout cannot hold the time of the clock. It comes before all comparisons with
// records: a machine without a battery for its clock starts in 1970.
func (n *Node) checkEra() error {
	if now := n.now(); n.layout != (worker.Layout{}) && !inEra(n.layout, now) {
		return &ClockError{fmt.Sprintf("the clock says %s, and IDs of layout %s have times %s. Set the clock right "+
			"(NTP) and start again. If it is right, use a cluster with another layout",
			time.UnixMilli(now).UTC().Format(time.RFC3339), n.layout, era(n.layout))}
	}
	return nil
}

// inEra reports whether the layout can hold a time, Unix ms.
func inEra(l worker.Layout, ms int64) bool { return ms >= l.Epoch && ms < l.Expires().UnixMilli() }

// era returns the times that IDs of a layout can have, in words.
func era(l worker.Layout) string {
	return fmt.Sprintf("from %s to %s", time.UnixMilli(l.Epoch).UTC().Format(time.DateOnly),
		l.Expires().UTC().Format(time.DateOnly))
}
