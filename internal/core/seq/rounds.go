package seq

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/entrylog"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/seq/losses"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/store"
)

// Rounds keep an Issuer: they follow the changes of operators, take blocks, and do all other I/O. One goroutine calls
// Recall and then Run. An Issuer has no way to its Rounds. The goroutines of workAll have a copy of what they need: see
// roundIO. They also reach the agenda and read the follower, under worklist.mu, while that goroutine waits for
// them.
type Rounds struct {
	issuer   *Issuer  // what requests reach, and so do rounds
	follower follower // of /cluster and /seq: what the node knows of losses of data
	agenda   agenda   // which series the next round looks at
	listing  listing  // on the list of nodes that may own sections
	saver    saver    // of the witness file

	// writing are the goroutines that write to the state directory.
	writing sync.WaitGroup
	// forgotAt is the time at which this node last forgot unused names, ns of AtMost.
	forgotAt int64
}

func newRounds(of *Issuer) *Rounds {
	rs := &Rounds{issuer: of, follower: follower{issuer: of}}
	rs.follower.losses, rs.agenda.roundTime = losses.New(), longestRound
	if of.cfg.Dir != nil {
		rs.saver.file.log = entrylog.New(of.cfg.Dir, witnessName)
	}
	rs.saver.write, rs.saver.inBackground = rs.saver.file.save, rs.writing.Go
	rs.saver.ended = make(chan error, 1)
	return rs
}

// Recall reads what an earlier process of this node has left in the directory, so that this one goes on with it. Call
// it once, before Run, and not beside Round. It returns the peers that the earlier process had met, and their cluster.
func (rs *Rounds) Recall() (cluster string, met []coordinator.Peer) {
	if rs.issuer.cfg.Dir == nil {
		return "", nil
	}
	rs.findJournal()
	w, ok := rs.saver.file.load()
	if ok {
		rs.recallWitness(w)
	}
	return w.State.Cluster, w.Met
}

// Run calls Round at every heartbeat, when the alarm of a series rings, and whenever Wake was called, until the context
// ends. Then it gives back what the node has not issued. Requests must have ended before. When Run returns, its
// goroutines have ended, unless the state directory does not answer: see Wait.
func (rs *Rounds) Run(ctx context.Context) {
	journaled := make(chan struct{})
	rs.writing.Go(func() {
		defer close(journaled)
		if rs.issuer.journal != nil {
			rs.issuer.keepJournal(ctx)
		}
	})
	var failing bool
	for ctx.Err() == nil {
		bounded, cancel := context.WithTimeout(ctx, limits.Round)
		err := rs.Round(bounded)
		cancel()
		if failing != (err != nil) && ctx.Err() == nil {
			if failing = err != nil; failing {
				rs.issuer.cfg.Log.Warn("sequences: ZooKeeper failed, issuing what this node has", "error", err)
			} else {
				rs.issuer.cfg.Log.Info("sequences: ZooKeeper answers again")
			}
		}
		rs.pause(ctx, failing)
	}
	if err := rs.inTime(func() error { <-journaled; return nil }); err != nil {
		rs.issuer.cfg.Log.Warn("sequences: the unused values were not given back", "error", err)
	} else {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), limits.Round)
		if err := rs.giveBack(bounded); err != nil {
			rs.issuer.cfg.Log.Warn("sequences: not all unused values of this node were given back", "error", err,
				"kept_for_restart", rs.issuer.keepsForRestart())
		}
		cancel()
	}
	rs.saveLast()
	rs.issuer.ordered.Close()
}

// Wait returns when all goroutines have ended that Run has started. Call it after Run, before others may use the state
// directory: a write that hangs there may still go on.
func (rs *Rounds) Wait() { rs.writing.Wait() }

// retryAfter is the pause after a round that failed. New requests do not shorten it.
const retryAfter = 100 * time.Millisecond

// pause waits until a round is due.
func (rs *Rounds) pause(ctx context.Context, failing bool) {
	if failing {
		ended, cancel := context.WithTimeout(ctx, retryAfter)
		<-ended.Done()
		cancel()
	}
	timer := time.NewTimer(rs.issuer.alarms.arm(rs.issuer.now(), rs.issuer.cfg.Pulse.Until(rs.issuer.cfg.Follow)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-rs.issuer.alarms.woken:
	case <-timer.C:
	}
}

// inTime calls f, which works on the disk, and waits for limits.Round at most. A disk that hangs must not keep the node
// from giving its worker back.
func (rs *Rounds) inTime(f func() error) error {
	ended := make(chan error, 1)
	rs.writing.Go(func() { ended <- f() })
	late := time.NewTimer(limits.Round)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C:
		return errors.New("the state directory does not answer")
	}
}

// Round does what is due: it follows the changes of operators, puts back what ZooKeeper has lost, and takes blocks. It
// returns an error of the store, after which the next Round tries again.
func (rs *Rounds) Round(ctx context.Context) (err error) {
	rs.begin()
	defer func() { rs.end(err) }()
	switch {
	case !rs.follower.joined:
		return nil
	case rs.follower.session == 0:
		return store.ErrUnreachable
	}
	sent := rs.issuer.now()
	v, followed, err := rs.follower.follow(ctx)
	if err != nil {
		return err
	}
	//mutant:s28-change-waits-after-an-error by TestSeriesAreReadAfterARoundThatFailed -> if false {
	if followed { // follow has made series stale. If this round fails, the next one works on them
		rs.agenda.unfinished = true
	}
	if !rs.follower.current || rs.follower.losses.Owes() { // ZooKeeper has lost /seq, or the node may not create it yet
		return rs.waitForState(ctx, v)
	}
	stateUnchanged := followed // v has /seq as it is
	if followed {              // at each heartbeat only: it looks at all series
		told, err := rs.tellAndSettle(ctx, v)
		if err != nil {
			return err
		}
		stateUnchanged = !told
	}
	if err := rs.keepListed(ctx, followed); err != nil {
		return err
	}
	allMarked, err := rs.follower.markBuckets(ctx, rs.agenda.roundTime/2)
	if err != nil {
		return err
	}
	due, err := rs.renewTogether(ctx, rs.popDue())
	complete := false
	if err != nil {
		rs.agenda.unfinished = true // the next round must find what this one has not come to
	} else {
		complete, err = rs.workAll(ctx, due)
	}
	if err != nil || !stateUnchanged {
		return err
	}
	return rs.afterHeartbeat(ctx, v, sent, allMarked && complete)
}

// afterHeartbeat ends a round that has read /seq. v is that read, which was sent at sent, and this node has not written
// /seq since. complete: no name is left to be marked, and no series to be worked on.
func (rs *Rounds) afterHeartbeat(ctx context.Context, v view, sent int64, complete bool) error {
	// An operator changes all sections of a family with it.
	if sections := rs.issuer.families.popChanged(); len(sections) > 0 {
		rs.issuer.series.markStale(sections)
		rs.agenda.unfinished = true
		rs.issuer.Wake()
	}
	if complete && !slices.ContainsFunc(rs.issuer.series.list(), (*series).isStale) {
		rs.noteFollowed(sent)
	}
	return rs.follower.raiseTime(ctx, v)
}

// begin applies what has come since the last round.
func (rs *Rounds) begin() {
	rs.agenda.round++
	rs.agenda.note(rs.issuer.alarms.rings(rs.issuer.now())) // also if there is nothing that this round may do for them
	rs.follower.noteConnection()
	rs.endSave()
	rs.issuer.ordered.Join(rs.follower.cluster.UUID)
	if !rs.follower.joined {
		rs.issuer.refuseAll(mode.Confirming(StartsIn))
	} else if rs.resume(rs.follower.cluster) {
		rs.issuer.cfg.Log.Warn("dropped the values that an earlier process held: the journal is older than the " +
			"state file, or of another node")
	}
}

// end forgets names that nobody needs. If the round has failed, it refuses the requests that wait, and if that was for
// want of ZooKeeper, lets the node issue what an earlier process held.
func (rs *Rounds) end(failed error) {
	rs.forget()
	if rs.agenda.tookWake {
		rs.agenda.tookWake = false
		rs.issuer.Wake()
	}
	if errors.Is(failed, store.ErrUnreachable) {
		rs.issuer.series.useWithoutReading()
	}
	if failed != nil {
		rs.issuer.refuseAll(noBlockAfter(failed))
	}
}

// forget removes the names that have no record, as far as the node knows. If they are asked for again, they
// count as unknown.
func (rs *Rounds) forget() {
	now := rs.issuer.now()
	if now-rs.forgotAt < int64(absentFor) {
		return
	}
	rs.forgotAt = now
	rs.issuer.series.remove(func(s *series) bool { return s.expire(now) })
}

// waitForState does what can be done before the node knows /seq in this incarnation.
func (rs *Rounds) waitForState(ctx context.Context, v view) (err error) {
	if rs.follower.losses.Known() == nil {
		//mutant:s35-late by TestJournalRaisesTheRecord ->
		err = rs.follower.putAllAboveJournal(ctx, v, rs.agenda.roundTime)
	}
	rs.issuer.refuseAll(mode.Confirming(max(rs.follower.roundIO().unconfirmed(), time.Second)))
	return err
}

// tellAndSettle tells the others what the node still puts back, and settles when nobody puts back anything any more: it
// begins to read all records again. told: /seq is no longer as v has it.
func (rs *Rounds) tellAndSettle(ctx context.Context, v view) (told bool, err error) {
	lost := rs.follower.toPutBack()
	rs.agenda.limitRound(rs.issuer.ordered.HadSections(), lost, rs.follower.cluster.ConfirmTime)
	told, err = rs.follower.tellInTime(ctx, v, lost)
	if err == nil && rs.follower.losses.MaySettle(rs.issuer.cfg.Elapsed.Now(), rs.follower.cluster.ConfirmTime) {
		err = rs.follower.settle(ctx)
	}
	return told, err
}

// StartsIn is the shortest time after its start at which a node may have a confirmed worker.
const StartsIn = 100 * time.Millisecond

// noteFollowed notes that the node has compared all records that /seq told of when it was read and, if it has settled,
// that it knows all changes. That read was sent at sent, ns of AtMost. No sync came before, so the server may have
// lagged behind.
func (rs *Rounds) noteFollowed(sent int64) {
	f := rs.follower.following()
	//mutant:s36-follows-before by TestFollowedCountsForOneSession -> settled := true
	settled := rs.follower.losses.HasSettled() // else it has not read all records again since the loss (S36)
	rs.issuer.publish(func(p *progress) {
		p.compare(f)
		if settled {
			p.follow(f, sent)
		}
	})
	if !settled {
		return
	}
	if j := rs.issuer.journal; j != nil && sent-j.knewAllAt.Load() >= int64(saveEvery) {
		j.wake(nil, false)
	}
	rs.saveWitness(f)
}
