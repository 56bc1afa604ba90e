package doctor

import (
	"fmt"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/timeguard"
)

// peers returns the offsets of live nodes by their recent reports. It leaves out the node
// whose state directory is d.
func peers(entries []coordinator.Entry, d stateDir, p store.Probe) []timeguard.Offset {
	var offsets []timeguard.Offset
	for _, e := range entries {
		s := e.Slot
		if offset, known := health.ClockOffset(e, p.Stamp, p.Zxid>>32); known &&
			!(d.belongs() && s.Node == d.record.Claim.Node) {
			offsets = append(offsets, offset)
		}
	}
	return offsets
}

// judgeOffsets compares this machine's clock with that of ZooKeeper's leader and with peers.
func judgeOffsets(p store.Probe, peers []timeguard.Offset) []Finding {
	own := timeguard.MeasureOffset(p.Sent, p.Acked, p.Stamp)
	zookeeper := Finding{Check: "clock-zookeeper", Level: OK, Text: "this clock is " + drift(own) +
		" that of ZooKeeper's leader"}
	verdict := timeguard.Judge(own, peers, limits.ClocksAgree)
	wrong := health.ProblemOf(string(node.CauseClockWrong)).Advice
	switch {
	case !own.Beyond(limits.WarnSkew):
	case own.Beyond(limits.ClocksAgree) && (len(peers) == 0 || verdict.Wrong()):
		zookeeper.Level, zookeeper.Advice = Fail, wrong
	case len(peers) > 0 && !verdict.Wrong() && !verdict.Worst.Beyond(limits.WarnSkew):
		zookeeper.Level, zookeeper.Advice = Warn, health.AdviceLeaderClock
	default:
		zookeeper.Level, zookeeper.Advice = Warn, health.AdviceClockOffset
	}
	others := Finding{Check: "clock-peers", Level: OK}
	switch {
	case len(peers) == 0:
		others.Text = "no other node reports, so there is no clock to compare with"
		return []Finding{zookeeper, others}
	case verdict.Wrong():
		others.Level, others.Advice = Fail, wrong
	case verdict.Worst.Beyond(limits.WarnSkew):
		others.Level, others.Advice = Warn, "Compare the clocks in the status of all nodes"
	}
	others.Text = fmt.Sprintf("this clock is %s the farthest clock of %d other nodes", drift(verdict.Worst), len(peers))
	return []Finding{zookeeper, others}
}

// drift words an offset as "3ms (give or take 1ms) ahead of".
func drift(o timeguard.Offset) string {
	word := "ahead of"
	if o.Ahead < 0 {
		word = "behind"
	}
	return fmt.Sprintf("%s (give or take %s) %s", o.Ahead.Abs().Round(time.Millisecond/2),
		o.Uncertainty.Round(time.Millisecond/2), word)
}
