package node

import (
	"context"
	"fmt"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/timeguard"
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

// checkClock returns a *ClockError if most voters find this clock wrong. The coordinator calls
// it before it writes a slot, so that the times of a wrong clock do not get into the record.
func (n *Node) checkClock(own coordinator.Reading, peers []coordinator.Reading) error {
	offset, voters := compare(own, peers)
	verdict := timeguard.Judge(offset, voters, limits.ClocksAgree)
	n.noteVerdict(own, offset, verdict)
	if verdict.Wrong() {
		return &ClockError{fmt.Sprintf("the clock differs by %s from ZooKeeper and peers (%d of %d voters say so, "+
			"%s is allowed). Set it right (NTP) and start again",
			offset.Ahead.Round(time.Millisecond), verdict.Against, verdict.Voters, limits.ClocksAgree)}
	}
	return nil
}

// warnEvery is the least time between two warnings about clocks. Each round asks other peers,
// so one clock that is off would otherwise cause a warning in many rounds.
const warnEvery = time.Minute

// mayWarn reports whether a warning about clocks is due. If so, the next one is not due before
// warnEvery has passed. mu is held.
func (n *Node) mayWarn() bool {
	now := n.mono()
	due := n.skew.warnedAt == 0 || now-n.skew.warnedAt > int64(warnEvery)
	if due {
		n.skew.warnedAt = now
	}
	return due
}

// noteLeap logs a leap of the wall clock that the issuing clock does not follow.
func (n *Node) noteLeap(ahead time.Duration) {
	n.mu.Lock()
	defer n.unlock()
	if n.mayWarn() {
		n.say(n.log.Warn, "the wall clock leapt ahead without confirmation, continuing by the monotonic clock",
			"cause", TroubleLeap,
			"ahead_ms", ahead.Milliseconds())
	}
}

func (n *Node) noteVerdict(own coordinator.Reading, offset timeguard.Offset, v timeguard.Verdict) {
	n.mu.Lock()
	defer n.unlock()
	if v.Worst.Beyond(limits.WarnSkew) && n.mayWarn() {
		n.say(n.log.Warn, "clock offset is large", "cause", TroubleOffset,
			"clock_offset_ms", offset.Ahead.Milliseconds(), "clock_uncertainty_ms", offset.Uncertainty.Milliseconds(),
			"worst_offset_ms", v.Worst.Ahead.Milliseconds(), "voters", v.Voters, "against", v.Against)
	}
	n.skew.offset, n.skew.verdict = offset, v
	if n.skew.agreed = (coordinator.Reading{}); v.Verified() && !v.Wrong() {
		n.skew.agreed = own
	}
}

// judgeClock compares this clock with the voters' after each heartbeat. If most voters find it wrong three times in a
// row, the node stops issuing and extends no bound until they no longer do. The error is that of reading the peers'
// clocks.
func (n *Node) judgeClock(ctx context.Context, own coordinator.Reading) error {
	peers, err := n.coord.Peers(ctx, n.view.Load().Claim.Worker)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.follow() // for named sequences
	n.mu.Unlock()
	offset, voters := compare(own, peers)
	if n.followLeap(offset, voters) {
		return nil // measured before the leap: the next round counts
	}
	verdict := timeguard.Judge(offset, voters, limits.ClocksAgree)
	n.noteVerdict(own, offset, verdict)
	wrong := n.keeper.rounds.Add(verdict)
	n.mu.Lock()
	defer n.unlock()
	if wrong && !n.skew.wrong {
		n.say(n.log.Error, "most voters found this clock wrong, stopped issuing IDs until it is right",
			"cause", CauseClockWrong,
			"clock_offset_ms", offset.Ahead.Milliseconds(), "against", verdict.Against, "voters", verdict.Voters)
		n.refuseLocked(Refusal{Phase: Refusing, Cause: CauseClockWrong, Offset: offset.Ahead})
	}
	if !wrong && n.skew.wrong {
		n.say(n.log.Info, "the clock is right again", "clock_offset_ms", offset.Ahead.Milliseconds())
	}
	n.skew.wrong = wrong
	return nil
}

// followLeap lets the issuing clock follow a leap of the wall clock that most voters agree with, and reports whether it
// did. offset is that of the issuing clock.
func (n *Node) followLeap(offset timeguard.Offset, voters []timeguard.Offset) bool {
	ahead := n.clock.Ahead()
	if ahead == 0 {
		return false
	}
	offset.Ahead += ahead
	if v := timeguard.Judge(offset, voters, limits.ClocksAgree); !v.Verified() || v.Wrong() {
		n.noteLeap(ahead)
		return false
	}
	n.log.Warn("following a leap of the wall clock that ZooKeeper and peers confirm", "ahead_ms", ahead.Milliseconds())
	if !n.diskStalls() { // heartbeats must not wait for it
		n.extend(ahead) // else the clock would leap beyond the bound
	}
	n.clock.Confirm(ahead)
	return true
}
