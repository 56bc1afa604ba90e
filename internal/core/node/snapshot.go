package node

import (
	"cmp"
	"errors"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/timeguard"
)

// Snapshot is the report of a node about itself and its worker at one moment. STATS, /v1/status and /metrics report it.
// Scripts rely on its JSON: fields may be added, and must not be changed. Instants are Unix milliseconds by the clock
// that IDs are made by. A value that is not known is null.
type Snapshot struct {
	Name   string `json:"name"`
	Worker *int   `json:"worker"` // null before there is one
	Term   int64  `json:"term"`
	Node   string `json:"node"` // its identity, a UUID, empty before there is one
	Phase  Phase  `json:"phase"`
	// Ready is whether Node.Ready returns nil: a GET would be answered with an ID, and the node is not draining or
	// waiting for named sequences. Otherwise Code and Reason are the words of the refusal, such as "NOTREADY" and
	// "starting reason=no-worker-yet".
	Ready  bool   `json:"ready"`
	Code   string `json:"code"`
	Reason string `json:"reason"`
	// Cause is that of the refusal, such as "no-worker-yet". It is empty when the node is ready.
	Cause Cause `json:"cause"`
	// Degraded lists what is wrong, in the words of Troubles, although the node may serve. It
	// is empty if nothing is wrong.
	Degraded []string `json:"degraded"`
	// Confirmed: ZooKeeper's record of this term has been confirmed.
	Confirmed bool `json:"confirmed"`
	// ServedMs is how long the node has served, over all its restarts. The lease grows with it.
	ServedMs int64 `json:"served_ms"`
	// FromCache: the node started from its state directory alone, and ZooKeeper does not know of the restart yet.
	FromCache bool `json:"from_cache"`
	// LeaseLeftMs is the time for which the node may serve without ZooKeeper. It is negative once the lease has ended.
	// LeaseEndsMs is the end of the lease. Both are null before a worker is confirmed.
	LeaseLeftMs *int64 `json:"lease_left_ms"`
	LeaseEndsMs *int64 `json:"lease_ends_ms"`
	// ReservedLeftMs is how long the node may serve without its disk. It is negative once the
	// clock is past the reserved bound, and null before a worker is confirmed.
	ReservedLeftMs *int64 `json:"reserved_left_ms"`
	// FrozenUntilMs is the end of the freeze of registration, null if there is none.
	FrozenUntilMs *int64 `json:"frozen_until_ms"`
	// NowMs is the moment of the Snapshot.
	NowMs int64 `json:"now_ms"`

	Clock     ClockSnapshot     `json:"clock"`
	ZooKeeper ZooKeeperSnapshot `json:"zookeeper"`
	Disk      DiskSnapshot      `json:"disk"`
	Counts    CountsSnapshot    `json:"counts"`

	Cluster ClusterSnapshot `json:"-"`
}

// ClockSnapshot compares the node's clock with others. Offsets are null before the first
// heartbeat. A positive offset means that this clock is ahead.
type ClockSnapshot struct {
	// OffsetMs is the offset from ZooKeeper's leader, give or take UncertaintyMs.
	OffsetMs      *float64 `json:"offset_ms"`
	UncertaintyMs *float64 `json:"uncertainty_ms"`
	// WorstMs is the largest offset from any voter (the leader or a peer), give or take WorstUncertaintyMs.
	WorstMs            *float64 `json:"worst_ms"`
	WorstUncertaintyMs *float64 `json:"worst_uncertainty_ms"`
	// Voters is how many clocks were compared last. This clock differs from Against of them by more than 5 s.
	Voters  int `json:"voters"`
	Against int `json:"against"`
	// Wrong: most voters have found the clock wrong three times in a row, so the node refuses.
	Wrong bool `json:"wrong"`
	// UnfollowedLeapMs is how far the machine's clock has leapt ahead of the clock that IDs
	// are made by, 0 once the leap is followed.
	UnfollowedLeapMs int64 `json:"unfollowed_leap_ms"`
	// BehindMs is how far the clock is behind the last ID because it went back, else 0.
	BehindMs int64 `json:"behind_ms"`
	// CoastingMs is how far the clock that IDs are made by is ahead of the machine's clock,
	// which went back. It is 0 unless the rollback policy is to coast.
	CoastingMs int64 `json:"coasting_ms"`
	// BorrowedMs is how far the last ID is ahead of the clock.
	BorrowedMs int64 `json:"borrowed_ms"`
	// Rollbacks is how many rollbacks were counted in the IDs of this tenure.
	Rollbacks int64 `json:"rollbacks"`
}

// ZooKeeperSnapshot is the state of reporting to ZooKeeper.
type ZooKeeperSnapshot struct {
	// OK: the last round succeeded: the heartbeat, what it had to write to the disk, the live lock, and the peers'
	// clocks. Otherwise Error says why it failed, or is empty before the first heartbeat.
	OK    bool   `json:"ok"`
	Error string `json:"error"`
	// Session: the node has a ZooKeeper session now.
	Session bool `json:"session"`
	// HeartbeatAgeMs is the time since a heartbeat was last acknowledged, null if none was.
	// HeartbeatMs is the time between two heartbeats.
	HeartbeatAgeMs *int64 `json:"heartbeat_age_ms"`
	HeartbeatMs    int64  `json:"heartbeat_ms"`

	trouble string // that Error is, for Degraded
}

// DiskSnapshot is the state of writing to the state directory. OK is false if the last write of the local record failed
// or a write stalls, so the reserved bound stays, and Limits is true. OK is also false if the next process would not
// find what was written. Error is the reason.
type DiskSnapshot struct {
	OK     bool   `json:"ok"`
	Error  string `json:"error"`
	Limits bool   `json:"-"`
}

// diskSnapshot returns the state of writing to the state directory. mu is held.
func (n *Node) diskSnapshot() DiskSnapshot {
	err := cmp.Or(n.disk.err, n.disk.lost)
	s := DiskSnapshot{OK: err == nil, Error: errorText(err), Limits: n.disk.err != nil}
	if n.stalledLocked() {
		s = DiskSnapshot{Error: "a write has been " + StallText, Limits: true}
	}
	return s
}

// ClusterSnapshot is a cluster's record as reports show it: see Describe.
type ClusterSnapshot struct {
	Name       string `json:"name"`
	UUID       string `json:"uuid"`
	Layout     string `json:"layout"`
	Datacenter int64  `json:"datacenter"`
	Slots      int    `json:"slots"`
	LeaseMs    int64  `json:"lease_ms"`
	ConfirmMs  int64  `json:"confirm_ms"`
	OnRollback string `json:"on_rollback"`
	BorrowMs   int64  `json:"borrow_ms"`
	// SequenceStart is random, zero or carry-on. SegmentStart is zero or random.
	SequenceStart string `json:"sequence_start"`
	SegmentStart  string `json:"segment_start"`
	// IDsEndMs is the time at which the layout's time field runs out, null while the layout is not known.
	IDsEndMs *int64 `json:"ids_end_ms"`
	// Used is the number of workers that may ever have been held: the highest one that the node knows, plus 1.
	Used int `json:"-"`
}

// Snapshot returns the state at this moment. It never waits for ZooKeeper or the disk.
func (n *Node) Snapshot() Snapshot {
	ready := n.Ready()
	session := n.cfg.Store.SessionID() != 0
	n.mu.Lock()
	defer n.mu.Unlock()
	v, now := n.view.Load(), n.now()
	s := Snapshot{
		Name: n.cfg.Labels.Name, Term: v.Claim.Term, Node: v.Claim.Node, Phase: n.phase(),
		Ready: ready == nil, Confirmed: v.Stage == coordinator.Confirmed, FromCache: v.Stage == coordinator.Alone,
		ServedMs: n.served.Milliseconds(), NowMs: now,
		Clock: ClockSnapshot{Wrong: n.skew.rounds.Wrong(), UnfollowedLeapMs: n.clock.UnfollowedLeap().Milliseconds(),
			CoastingMs: n.clock.CoastingBy().Milliseconds()},
		ZooKeeper: ZooKeeperSnapshot{
			OK: n.reports.err == nil && n.reports.beatAt > 0, Error: errorText(n.reports.err),
			trouble: troubleOf(n.reports.err),
			Session: session, HeartbeatMs: n.cfg.Heartbeat.Milliseconds(),
		},
		Disk:    n.diskSnapshot(),
		Cluster: Describe(n.cfg.Cluster, v.Cluster),
	}
	if r, ok := errors.AsType[*Refusal](ready); ok {
		s.Cause, s.Code, s.Reason = r.Cause, string(r.reply.Code), r.reply.Text
		s.Clock.BehindMs = r.Behind.Milliseconds()
	}
	if n.tenure != nil {
		s.Worker = new(n.tenure.Worker)
		if lease := v.Claim.LeaseUntil; lease != 0 { // else it has not been confirmed yet
			s.LeaseEndsMs, s.LeaseLeftMs = new(lease), new(lease-now)
			s.ReservedLeftMs = new(n.reservedUntil - now)
		}
		if n.serving.Load() == n.tenure {
			if last, ok := n.tenure.gen.Last(); ok {
				s.Clock.BorrowedMs = max(0, n.layout.Start(last)-now)
			}
			s.Clock.Rollbacks = n.tenure.gen.Rollbacks()
			s.Clock.BehindMs = max(0, n.tenure.gen.Behind().Milliseconds())
		}
	}
	if n.reports.frozen > now {
		s.FrozenUntilMs = new(n.reports.frozen)
	}
	if n.reports.beatAt > 0 {
		s.ZooKeeper.HeartbeatAgeMs = new(now - n.reports.beatAt)
		s.Clock.set(n.skew.offset, n.skew.verdict)
	}
	s.Counts = n.meter.snapshot()
	s.Degraded = s.degraded()
	return s
}

// Met returns the other nodes that this one has met: see coordinator.Peer.
func (n *Node) Met() []coordinator.Peer { return n.keeper.coord.Met() }

// Remember takes over the peers that an earlier process has met in a cluster. Call it before Run.
func (n *Node) Remember(cluster string, peers []coordinator.Peer) {
	n.keeper.coord.Remember(cluster, peers)
}

func (c *ClockSnapshot) set(own timeguard.Offset, v timeguard.Verdict) {
	worst := v.Worst
	if worst.Ahead == 0 {
		worst = own // none differs: take the leader's
	}
	c.OffsetMs, c.UncertaintyMs = floatMs(own.Ahead), floatMs(own.Uncertainty)
	c.WorstMs, c.WorstUncertaintyMs = floatMs(worst.Ahead), floatMs(worst.Uncertainty)
	c.Voters, c.Against = v.Voters, v.Against
}

func floatMs(d time.Duration) *float64 { return new(float64(d) / float64(time.Millisecond)) }

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
