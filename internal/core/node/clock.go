package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// compare returns how far this node's clock is ahead of the leader's, and the same for each
// voter. The first voter is the leader itself.
func compare(own coordinator.Reading, peers []coordinator.Reading) (timeguard.Offset, []timeguard.Offset) {
	measure := func(r coordinator.Reading) timeguard.Offset {
		return timeguard.MeasureOffset(r.Sent, r.Acked, r.Stamp)
	}
	voters := []timeguard.Offset{{}} // the leader: offsets are from its clock
	for _, p := range peers {
		voters = append(voters, measure(p))
	}
	return measure(own), voters
}

// warnEvery is the least time between two warnings about clocks. Each round asks other peers,
// so one clock that is off would otherwise cause a warning in many rounds.
const warnEvery = time.Minute

// mayWarn reports whether a warning about clocks is due. If so, the next one is not due before
// warnEvery has passed. mu is held.
func (k *keeper) mayWarn() bool {
	now := k.mono()
	due := k.skew.warnedAt == 0 || now-k.skew.warnedAt > int64(warnEvery)
	if due {
		k.skew.warnedAt = now
	}
	return due
}

// noteLeap logs a leap of the wall clock that the issuing clock does not follow.
func (k *keeper) noteLeap(ahead time.Duration) {
	k.mu.Lock()
	defer k.unlock()
	if k.mayWarn() {
		k.say(k.log.Warn, "the wall clock leapt ahead without confirmation, continuing by the monotonic clock",
			"cause", TroubleLeap,
			"ahead_ms", ahead.Milliseconds())
	}
}

// verdict returns what the voters find of this clock, which was ahead of the leader's by offset in the reading own, and
// notes that.
func (k *keeper) verdict(own coordinator.Reading, offset timeguard.Offset, voters []timeguard.Offset) timeguard.Verdict {
	v := timeguard.Judge(offset, voters, limits.ClocksAgree)
	k.mu.Lock()
	defer k.unlock()
	if v.Worst.Beyond(limits.WarnSkew) && k.mayWarn() {
		k.say(k.log.Warn, "clock offset is large", "cause", TroubleOffset,
			"clock_offset_ms", offset.Ahead.Milliseconds(), "clock_uncertainty_ms", offset.Uncertainty.Milliseconds(),
			"worst_offset_ms", v.Worst.Ahead.Milliseconds(), "voters", v.Voters, "against", v.Against)
	}
	k.skew.offset, k.skew.verdict = offset, v
	if k.skew.agreed = (coordinator.Reading{}); v.Verified() && !v.Wrong() {
		k.skew.agreed = own
	}
	return v
}

// judgeClock compares this clock with the voters' after each heartbeat. If most voters find it wrong three times in a
// row, the node stops issuing and extends no bound until they no longer do. The error is that of reading the peers'
// clocks.
func (k *keeper) judgeClock(ctx context.Context, own coordinator.Reading) error {
	peers, err := k.coord.Peers(ctx, k.view.Load().Claim.Worker)
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.view.Store(k.coord.View()) // for named sequences
	k.mu.Unlock()
	offset, voters := compare(own, peers)
	if k.followLeap(offset, voters) {
		return nil // measured before the leap: the next round counts
	}
	verdict := k.verdict(own, offset, voters)
	wrong := k.rounds.Add(verdict)
	k.mu.Lock()
	defer k.unlock()
	if wrong && !k.skew.wrong {
		k.say(k.log.Error, "most voters found this clock wrong, stopped issuing IDs until it is right",
			"cause", CauseClockWrong,
			"clock_offset_ms", offset.Ahead.Milliseconds(), "against", verdict.Against, "voters", verdict.Voters)
		k.refuseLocked(Refusal{Phase: Refusing, Cause: CauseClockWrong, Offset: offset.Ahead})
	}
	if !wrong && k.skew.wrong {
		k.say(k.log.Info, "the clock is right again", "clock_offset_ms", offset.Ahead.Milliseconds())
	}
	k.skew.wrong = wrong
	return nil
}

// followLeap lets the issuing clock follow a leap of the wall clock that most voters agree with, and reports whether it
// did. offset is that of the issuing clock.
func (k *keeper) followLeap(offset timeguard.Offset, voters []timeguard.Offset) bool {
	ahead := k.clock.Ahead()
	if ahead == 0 {
		return false
	}
	offset.Ahead += ahead
	if v := timeguard.Judge(offset, voters, limits.ClocksAgree); !v.Verified() || v.Wrong() {
		k.noteLeap(ahead)
		return false
	}
	k.log.Warn("following a leap of the wall clock that ZooKeeper and peers confirm", "ahead_ms", ahead.Milliseconds())
	if !k.diskStalls() { // heartbeats must not wait for it
		k.extend(ahead) // else the clock would leap beyond the bound
	}
	k.clock.Confirm(ahead)
	return true
}

// maxRotations bounds how many fresh slots a node takes within the longest lease.
const maxRotations = 4

// rotateIfBehind takes a fresh slot if a clock that went back would make the node refuse for longer than
// limits.RotateBehind, and for longer than the confirming time, which a fresh slot costs. ZooKeeper and most peers must
// agree with the new time. The old slot is released at the end of what was issued for it. If no fresh slot can be
// acquired, the node waits for its clock.
func (k *keeper) rotateIfBehind(ctx context.Context) error {
	old, behind := k.mayRotate()
	if old == nil {
		return nil
	}
	claim := k.view.Load().Claim
	k.log.Warn("the clock went back and ZooKeeper and peers confirm it, acquiring a new worker",
		"behind_ms", behind.Milliseconds(), "worker", claim.Worker)
	callCtx, cancel := context.WithTimeout(ctx, 6*k.cfg.CallTimeout)
	defer cancel()
	var left coordinator.Left
	var confirm time.Duration
	cl, err := coordinator.ReadCluster(callCtx, k.cfg.Store)
	if err == nil {
		left, confirm, err = k.coord.Register(callCtx, cl, k.lease(), k.checkClock)
	}
	if err != nil {
		k.log.Warn("could not acquire a new worker, waiting for the clock to catch up", "error", err)
		k.keepOld(errors.Is(err, store.ErrUnreachable))
		return nil
	}
	k.refuse(Confirming, CauseNewWorker)
	k.toRelease = append(k.toRelease, leftSlot{left, k.closeTenure(old)})
	if err := k.granted(confirm, "acquired a new worker"); err != nil {
		return err
	}
	k.releaseOld(ctx)
	wake(k.wakeKeeper)
	return ctx.Err()
}

// mayRotate returns the tenure whose clock went back so far that a fresh slot is due, and how long it would refuse. The
// attempt counts from now on. mayRotate returns nil if no slot is due.
func (k *keeper) mayRotate() (old *tenure, behind time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	// A tenure that does not serve yet has issued nothing. It waits for its floor.
	if k.tenure == nil || k.serving.Load() != k.tenure {
		return nil, 0
	}
	agreed := k.skew.verdict.Verified() && !k.skew.verdict.Wrong() && !k.skew.wrong
	behind = k.refusalDuration(k.tenure)
	if k.store.err != nil || !agreed || behind <= max(limits.RotateBehind, k.cluster.ConfirmTime()) {
		return nil, 0
	}
	since := k.now() - k.cluster.LeaseMs
	k.rotations = slices.DeleteFunc(k.rotations, func(at int64) bool { return at < since })
	if len(k.rotations) >= maxRotations {
		return nil, 0
	}
	k.rotations = append(k.rotations, k.now())
	return k.tenure, behind
}

// refusalDuration returns how long a tenure refuses because the clock went back. If rollbacks are
// counted, the tenure may go on while a restart would refuse to wait for the reserved bound.
// Then refusalDuration returns the wait for that bound. mu is held.
func (k *keeper) refusalDuration(t *tenure) time.Duration {
	if restart := timeguard.StartWait(k.now(), k.reservedUntil); k.onRollback.Counts() &&
		restart > limits.MaxStartWait {
		return restart
	}
	return t.gen.Behind()
}

// keepOld puts the claim on the old slot back into the local record after a failed attempt at another slot. If the
// record cannot be written, the next extension writes it.
//
// The attempt counts if its answer was lost after a slot had been chosen: ZooKeeper may have
// given that slot to this node. Otherwise one lost answer after the other would take all slots.
func (k *keeper) keepOld(unanswered bool) {
	k.mu.Lock()
	v := *k.view.Load()
	changed := v.Next != nil
	if !(changed && unanswered) {
		k.rotations = k.rotations[:max(0, len(k.rotations)-1)] // none was taken
	}
	v.Next = nil
	k.view.Store(&v)
	k.mu.Unlock()
	if !changed {
		return
	}
	if err := k.coord.Save(); err != nil {
		k.log.Warn("could not write the state file, which names a worker that this node never acquired, retrying",
			"error", err)
	}
}

// leftSlot is a slot that must still be released. end is the end of what was issued for it, Unix ms.
type leftSlot struct {
	coordinator.Left
	end int64
}

// releaseOld releases the slots that were left after rollbacks. It retries those that fail at the next heartbeat.
func (k *keeper) releaseOld(ctx context.Context) {
	due := k.toRelease
	k.toRelease = nil
	for _, d := range due {
		callCtx, cancel := context.WithTimeout(ctx, k.cfg.CallTimeout)
		err := k.coord.ReleaseLeft(callCtx, d.Left, d.end)
		cancel()
		if err == nil {
			k.log.Info("released the old worker", "worker", d.Worker())
			continue
		}
		k.toRelease = append(k.toRelease, d)
	}
}

// checkClock returns a *ClockError if most voters find this clock wrong. The coordinator calls
// it before it writes a slot, so that the times of a wrong clock do not get into the record.
func (k *keeper) checkClock(own coordinator.Reading, peers []coordinator.Reading) error {
	offset, voters := compare(own, peers)
	verdict := k.verdict(own, offset, voters)
	if verdict.Wrong() {
		return &ClockError{fmt.Sprintf("the clock differs by %s from ZooKeeper and peers (%d of %d voters say so, "+
			"%s is allowed). Set it right (NTP) and start again",
			offset.Ahead.Round(time.Millisecond), verdict.Against, verdict.Voters, limits.ClocksAgree)}
	}
	return nil
}

// checkStart returns a *ClockError if the clock is behind floor (Unix ms) by more than a start
// waits for. A predecessor may have issued everything below floor.
func (k *keeper) checkStart(floor int64) error {
	patience := limits.MaxStartWait + k.startSlack
	wait := timeguard.StartWait(k.now(), floor)
	if wait > patience {
		return &ClockError{fmt.Sprintf("the clock is %s behind what this worker may have issued. "+
			"A start waits %s at most. Set the clock right, or remove the state directory to start with a new worker",
			wait, patience)}
	}
	return nil
}

// checkEra returns a *ClockError if the layout cannot hold the time of the clock. It comes before all comparisons with
// records: a machine without a battery for its clock starts in 1970.
func (k *keeper) checkEra() error {
	if now := k.now(); k.layout != (worker.Layout{}) && !inEra(k.layout, now) {
		return &ClockError{fmt.Sprintf("the clock says %s, and IDs of layout %s have times %s. Set the clock right "+
			"(NTP) and start again. If it is right, use a cluster with another layout",
			time.UnixMilli(now).UTC().Format(time.RFC3339), k.layout, era(k.layout))}
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
