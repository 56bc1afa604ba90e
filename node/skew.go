package node

import (
	"context"
	"fmt"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/limits"
	"github.com/flaked/flaked/timeguard"
)

// compare judges our clock by the leader's and the peers'.
func compare(own coordinator.Reading, peers []coordinator.Reading) (timeguard.Offset, []timeguard.Offset) {
	measure := func(r coordinator.Reading) timeguard.Offset {
		return timeguard.MeasureOffset(r.Sent, r.Acked, r.Stamp)
	}
	voters := []timeguard.Offset{{}} // the leader, which all are measured against
	for _, p := range peers {
		voters = append(voters, measure(p))
	}
	return measure(own), voters
}

// checkClock is asked before a slot is written: a clock that most voters say
// is wrong must not get into it.
func (n *Node) checkClock(own coordinator.Reading, peers []coordinator.Reading) error {
	offset, voters := compare(own, peers)
	verdict := timeguard.Judge(offset, voters, limits.ClocksAgree)
	n.noteVerdict(own, offset, verdict)
	if verdict.Wrong() {
		return &ClockError{fmt.Sprintf("the clock is %s off by ZooKeeper's clock and peers (%d of %d voters say so, %s is tolerated): set it right (NTP) and start again",
			offset.Ahead.Round(time.Millisecond), verdict.Against, verdict.Voters, limits.ClocksAgree)}
	}
	return nil
}

// warnEvery is how often it is logged that clocks differ: each round asks other
// peers, and one clock that is off is in some of them.
const warnEvery = time.Minute

// mayWarn tells whether that is due, and counts it. mu is held.
func (n *Node) mayWarn() bool {
	now := n.mono()
	due := n.skew.warnedAt == 0 || now-n.skew.warnedAt > int64(warnEvery)
	if due {
		n.skew.warnedAt = now
	}
	return due
}

// noteLeap logs a leap that is not followed.
func (n *Node) noteLeap(ahead time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mayWarn() {
		n.log.Warn("the wall clock has leapt ahead and nobody confirms it: going on by the monotonic clock", "ahead", ahead.String())
	}
}

func (n *Node) noteVerdict(own coordinator.Reading, offset timeguard.Offset, v timeguard.Verdict) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if v.Worst.Beyond(limits.WarnSkew) && n.mayWarn() {
		n.log.Warn("clocks differ", "ahead_of_zookeeper", offset.Ahead.String(), "error", offset.Error.String(), "worst", v.Worst.Ahead.String(), "voters", v.Voters, "against", v.Against)
	}
	n.skew.offset, n.skew.verdict = offset, v
	if n.skew.agreed = (coordinator.Reading{}); v.Verified() && !v.Wrong() {
		n.skew.agreed = own
	}
}

// judgeClock is asked at every heartbeat. Three rounds in a row that most
// voters lost us stop issuing and the bounds; a leap of the wall clock is
// followed once they agree with it.
func (n *Node) judgeClock(ctx context.Context, own coordinator.Reading) error {
	peers, err := n.coord.Peers(ctx, n.peek().claim.Worker)
	if err != nil {
		return err
	}
	offset, voters := compare(own, peers)
	if ahead := n.clock.Ahead(); ahead > 0 {
		wall := timeguard.Offset{Ahead: offset.Ahead + ahead, Error: offset.Error}
		if v := timeguard.Judge(wall, voters, limits.ClocksAgree); v.Verified() && !v.Wrong() {
			n.log.Warn("following a leap of the wall clock that ZooKeeper and peers confirm", "ahead", ahead.String())
			if !n.diskStalls() { // the heartbeats do not wait for that
				n.push(0, ahead) // or the clock would leap over the bound, and be refused
			}
			n.clock.Confirm(ahead)
			return nil // measured before the leap: the next round counts
		}
		n.noteLeap(ahead)
	}
	verdict := timeguard.Judge(offset, voters, limits.ClocksAgree)
	n.noteVerdict(own, offset, verdict)
	wrong := n.keeper.rounds.Add(verdict)
	n.mu.Lock()
	defer n.mu.Unlock()
	if wrong && !n.skew.wrong {
		n.log.Error("this clock is wrong by most voters: issuing nothing until it is right", "ahead_of_zookeeper", offset.Ahead.String(), "against", verdict.Against, "voters", verdict.Voters)
		n.refuseLocked(Refusal{Phase: Refusing, Cause: CauseClockWrong, Offset: offset.Ahead})
	}
	if !wrong && n.skew.wrong {
		n.log.Info("the clock is right again", "ahead_of_zookeeper", offset.Ahead.String())
	}
	n.skew.wrong = wrong
	return nil
}
