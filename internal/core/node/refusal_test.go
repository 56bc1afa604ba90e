package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/replies"
)

// refusals has every kind of refusal, and the reply that a client gets for it.
var refusals = []struct {
	refusal Refusal
	wire    string
}{
	{Refusal{Cause: CauseNoWorkerYet, Phase: Starting}, "-NOTREADY starting reason=no-worker-yet"},
	{Refusal{Cause: CauseZooKeeperUnreachable, Phase: Starting}, "-NOTREADY starting reason=zookeeper-unreachable"},
	{Refusal{Cause: CauseZooKeeperSlow, Phase: Starting}, "-NOTREADY starting reason=zookeeper-slow"},
	{Refusal{Cause: CauseConfirming, Phase: Confirming}, "-NOTREADY confirming reason=confirming"},
	{Refusal{Cause: CauseLeaseExpiredAway, Phase: Confirming}, "-NOTREADY confirming reason=lease-expired-while-away"},
	{Refusal{Cause: CauseNewWorker, Phase: Confirming}, "-NOTREADY confirming reason=new-worker-after-rollback"},
	{Refusal{Cause: CauseBelowFloor, Phase: Waiting}, "-NOTREADY waiting reason=clock-below-floor"},
	{Refusal{Cause: CauseReservedBound, Phase: Refusing}, "-NOTREADY refusing reason=reserved-bound-reached"},
	{Refusal{Cause: CauseReservedBound, StuckBy: StuckByPause},
		"-NOTREADY reserved bound reached: the process stood still, and is writing a new reserved bound " +
			"reason=reserved-bound-reached"},
	{Refusal{Cause: CauseReservedBound, StuckBy: StuckByStall},
		"-NOTREADY reserved bound reached: the state directory does not answer reason=reserved-bound-reached"},
	{Refusal{Cause: CauseReservedBound, StuckBy: StuckByError},
		"-NOTREADY reserved bound reached: the state directory cannot be written reason=reserved-bound-reached"},
	{Refusal{Cause: CauseLeaseBorrowed}, "-NOTREADY a burst has borrowed up to the end of the lease " +
		"reason=lease-borrowed"},
	{Refusal{Cause: CauseClockBehind, Behind: 8*time.Millisecond + 1},
		"-CLOCK the clock is behind the last ID behind_ms=9 retry_after_ms=9"},
	{Refusal{Cause: CauseClockWrong, Phase: Refusing, Offset: -7 * time.Second},
		"-CLOCK most voters say that this node's clock is wrong offset_ms=-7000"},
	{Refusal{Cause: CauseLeaseExpired}, "-FENCED the lease has expired: ZooKeeper could not be reached to renew it"},
	{Refusal{Cause: CauseLostWorker, Phase: Starting},
		"-FENCED this node lost its worker and is registering as a new one"},
	{Refusal{Cause: CauseTimeUsedUp}, "-EXHAUSTED the layout's time field is used up"},
	{Refusal{Cause: CauseSequences, Phase: Serving}, "-NOTREADY starting: another node takes values of named sequences, " +
		"and this one does soon reason=sequences-confirming"},
	{Refusal{Cause: CauseDraining, Phase: Serving}, "-NOTREADY draining: the node stops soon"},
	{Refusal{Cause: CauseStopping, Phase: Stopping}, "-NOTREADY stopping"},
}

// Every refusal has a reply.
func TestEveryRefusalHasAReply(t *testing.T) {
	worded := make(map[Cause]bool)
	for _, row := range refusals {
		worded[row.refusal.Cause] = true
		if got := replies.Of(newRefusal(row.refusal)).Error(); got != row.wire {
			t.Errorf("%+v is sent as %q, want %q", row.refusal, got, row.wire)
		}
	}
	for _, cause := range Causes() {
		if !worded[cause] {
			t.Errorf("no row for %s", cause)
		}
	}
}

// A refusal has the same text in reply to GET and READY, in STATS and in snapshots.
func TestRefusalIsTheSameEverywhere(t *testing.T) {
	const want = "-NOTREADY starting reason=no-worker-yet"
	n := starting(t)
	if _, err := n.Reserve(t.Context(), 1); err == nil || err.Error() != want {
		t.Errorf("Reserve: %v", err)
	}
	if err := n.Ready(); err == nil || err.Error() != want {
		t.Errorf("Ready: %v", err)
	}
	s := n.Snapshot()
	if got := "-" + s.Code + " " + s.Reason; got != want || s.Cause != CauseNoWorkerYet {
		t.Errorf("snapshot: %s, cause %s", got, s.Cause)
	}
	stats := make(map[string]string)
	for _, row := range n.Stats() {
		stats[row[0]] = row[1]
	}
	for name, value := range map[string]string{
		"version": "test", "name": "n", "reason": want, "cause": "no-worker-yet", "ready": "false",
	} {
		if stats[name] != value {
			t.Errorf("STATS has %s %q, want %q", name, stats[name], value)
		}
	}
	if _, err := n.Decode(1); err == nil || !strings.HasPrefix(err.Error(), "-NOTREADY starting: ") {
		t.Errorf("Decode: %v", err)
	}
}

// Neither an ID nor a lasting refusal allocates memory.
func TestReserveAllocatesNothing(t *testing.T) {
	n := starting(t)
	allocates := func(ready bool) float64 {
		return testing.AllocsPerRun(1000, func() {
			if _, err := n.Reserve(t.Context(), 1); (err == nil) != ready {
				t.Errorf("ready: %v, but %v", ready, err)
			}
		})
	}
	if n := allocates(false); n != 0 {
		t.Errorf("a refusal allocates %v times", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	select {
	case <-n.Began():
	case <-time.After(10 * time.Second):
	}
	if err := n.Ready(); err != nil {
		t.Fatal(err)
	}
	if n := allocates(true); n != 0 {
		t.Errorf("an ID allocates %v times", n)
	}
	if text, err := n.Decode(1); err != nil ||
		!strings.HasPrefix(text, "id=1 time=2010-11-04T01:42:54.657Z timestamp_ms=1288834974657 ") {
		t.Errorf("Decode: %q, %v", text, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A node that has just started leaves named sequences to another one until it takes values itself.
func TestNodeLeavesSequencesToOthers(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*peeked)
		session int64
		wait    time.Duration
		want    bool
	}{
		"another node takes values":        {session: 1, wait: time.Second, want: true},
		"it takes values itself":           {session: 1},
		"no other node takes values":       {change: func(s *peeked) { s.Peers.MayLeaveToOthers = false }, session: 1, wait: 1},
		"it is not connected to ZooKeeper": {wait: 1},
		"ZooKeeper does not answer": {
			change: func(s *peeked) { s.reports.err = errors.New("no answer") }, session: 1, wait: 1},
		"it started from its directory alone": {change: func(s *peeked) { s.Stage = coordinator.Alone }, session: 1, wait: 1},
	} {
		s := peeked{View: &coordinator.View{Peers: coordinator.PeersSeen{MayLeaveToOthers: true}}}
		if c.change != nil {
			c.change(&s)
		}
		if got := s.leavesSequencesToOthers(c.session, c.wait); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
