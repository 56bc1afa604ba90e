package node

import (
	"fmt"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
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

// allowWarning reports whether a warning about clocks may be logged. After it has allowed one, it allows none for
// warnEvery.
func (k *keeper) allowWarning() bool {
	now := k.monotonic()
	due := k.warnedAt == 0 || now-k.warnedAt > int64(warnEvery)
	if due {
		k.warnedAt = now
	}
	return due
}

// noteLeap logs a leap of the wall clock that the issuing clock does not follow.
func (k *keeper) noteLeap(ahead time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.allowWarning() {
		k.say(k.log.Warn, "the wall clock leapt ahead without confirmation, continuing by the monotonic clock",
			"cause", TroubleLeap,
			"ahead_ms", ahead.Milliseconds())
	}
}

// noteVerdict compares this clock with those of the voters. It notes the result, and returns it. own is this
// clock's reading, and offset how far it was ahead of the leader's. noteVerdict warns if this clock certainly differs
// from a voter's by more than limits.WarnSkew.
func (k *keeper) noteVerdict(
	own coordinator.Reading, offset timeguard.Offset, voters []timeguard.Offset,
) timeguard.Verdict {
	v := timeguard.Judge(offset, voters, limits.ClocksAgree)
	k.mu.Lock()
	defer k.mu.Unlock()
	if v.Worst.Beyond(limits.WarnSkew) && k.allowWarning() {
		k.say(k.log.Warn, "clock offset is large", "cause", TroubleOffset,
			"clock_offset_ms", offset.Ahead.Milliseconds(), "clock_uncertainty_ms", offset.Uncertainty.Milliseconds(),
			"worst_offset_ms", v.Worst.Ahead.Milliseconds(), "voters", v.Voters, "against", v.Against)
	}
	k.skew.offset, k.skew.verdict = offset, v
	if k.agreed = (coordinator.Reading{}); v.Verified() && !v.Wrong() {
		k.agreed = own
	}
	return v
}

// judgeClock compares this clock, as a heartbeat has read it, with the voters'. If most voters find it wrong three
// times in a row, the node stops issuing and extends no bound until they no longer do.
func (k *keeper) judgeClock(own coordinator.Reading, peers []coordinator.Reading) {
	offset, voters := compare(own, peers)
	if k.followLeap(offset, voters) {
		return // measured before the leap: the next round counts
	}
	verdict := k.noteVerdict(own, offset, voters)
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.skew.rounds.Wrong()
	wrong := k.skew.rounds.Add(verdict)
	if wrong && !was {
		k.say(k.log.Error, "most voters found this clock wrong, stopped issuing IDs until it is right",
			"cause", CauseClockWrong,
			"clock_offset_ms", offset.Ahead.Milliseconds(), "against", verdict.Against, "voters", verdict.Voters)
		k.refuseLocked(Refusal{Phase: Refusing, Cause: CauseClockWrong, Offset: offset.Ahead})
	}
	if !wrong && was {
		k.say(k.log.Info, "the clock is right again", "clock_offset_ms", offset.Ahead.Milliseconds())
	}
}

// followLeap lets the issuing clock follow a leap of the wall clock that most voters agree with, and reports whether it
// did. offset is that of the issuing clock.
func (k *keeper) followLeap(offset timeguard.Offset, voters []timeguard.Offset) bool {
	ahead := k.clock.UnfollowedLeap()
	if ahead == 0 {
		return false
	}
	offset.Ahead += ahead
	if v := timeguard.Judge(offset, voters, limits.ClocksAgree); !v.Verified() || v.Wrong() {
		k.noteLeap(ahead)
		return false
	}
	k.log.Warn("following a leap of the wall clock: ZooKeeper and most peers are within 5 s of it",
		"ahead_ms", ahead.Milliseconds())
	if !k.stalled() { // heartbeats must not wait for it
		k.extend(ahead) // else the clock would leap beyond the bound
	}
	k.clock.Confirm(ahead)
	return true
}

// checkClock returns a *ClockError if most voters find this clock wrong. The coordinator calls
// it before it writes a slot, so that the times of a wrong clock do not get into the record.
func (k *keeper) checkClock(own coordinator.Reading, peers []coordinator.Reading) error {
	offset, voters := compare(own, peers)
	verdict := k.noteVerdict(own, offset, voters)
	if verdict.Wrong() {
		return &ClockError{fmt.Sprintf("the clock differs by %s from ZooKeeper and peers (%d of %d voters say so, "+
			"%s is allowed). Set it right (NTP) and start again",
			offset.Ahead.Round(time.Millisecond), verdict.Against, verdict.Voters, limits.ClocksAgree)}
	}
	return nil
}

// checkFloor returns a *ClockError if the clock is behind floor (Unix ms) by more than a start
// waits for. A predecessor may have issued everything below floor.
func (k *keeper) checkFloor(floor int64) error {
	patience := limits.MaxStartWait + k.startSlack
	wait := timeguard.StartWait(k.now(), floor)
	if wait > patience {
		return &ClockError{fmt.Sprintf("the clock is %s behind what this worker may have issued. "+
			"A start waits %s at most. Set the clock right, or remove flaked.state to start with a new worker",
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
