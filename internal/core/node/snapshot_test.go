package node

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// A Snapshot agrees with the state of its node: at the start, while the node serves, after a
// rollback, and without ZooKeeper.
func TestSnapshotIsConsistent(t *testing.T) {
	r := newRig(t)
	n := r.start(func(c *Config) { c.Reserve = 2 * time.Second })
	first := n.Snapshot()
	if first.Name != "n" || first.Cluster.Name != "test" || first.Ready != (first.Cause == "") {
		t.Errorf("at the beginning: %+v", first)
	}
	n.untilReady()
	n.until("a heartbeat", func() bool { return n.Snapshot().ZooKeeper.HeartbeatAgeMs != nil })
	s := n.Snapshot()
	switch {
	case s.Worker == nil || *s.Worker != 0 || s.Term != 1 || s.Node == "":
		t.Errorf("who it is: %+v", s)
	case !s.Ready || s.Cause != "" || s.Reason != "" || s.Phase != Serving || !s.Confirmed:
		t.Errorf("what it does: %+v", s)
	case *s.LeaseLeftMs < 50_000 || *s.LeaseEndsMs != s.NowMs+*s.LeaseLeftMs || *s.ReservedLeftMs <= 0 ||
		*s.ReservedLeftMs > 2000:
		t.Errorf("its bounds: lease %d ms, reserved %d ms", *s.LeaseLeftMs, *s.ReservedLeftMs)
	case !s.ZooKeeper.OK || !s.ZooKeeper.Session || s.ZooKeeper.Error != "" || s.ZooKeeper.HeartbeatMs != 20:
		t.Errorf("ZooKeeper: %+v", s.ZooKeeper)
	case s.Clock.OffsetMs == nil || *s.Clock.WorstUncertaintyMs <= 0 || s.Clock.Voters != 1 || s.Clock.Wrong:
		t.Errorf("its clock: %+v", s.Clock)
	case !s.Disk.OK || s.Cluster.UUID == "" || s.Cluster.Slots != 1024 || *s.Cluster.IDsEndMs < s.NowMs:
		t.Errorf("disk %+v, cluster %+v", s.Disk, s.Cluster)
	}

	if c := s.Counts; c.Heartbeats < 1 || c.HeartbeatsFailed != 0 || c.DiskWrites < 2 || c.DiskWritesFailed != 0 ||
		c.DiskWritesTookMs <= 0 {
		t.Errorf("what it has done: %+v", c)
	}

	n.next()
	r.Step(-time.Second) // refused, and too little for a fresh worker
	n.until("a refusal", func() bool { return n.Ready() != nil })
	s = n.Snapshot()
	if s.Ready || s.Cause != CauseClockBehind || s.Code != "CLOCK" || s.Clock.BehindMs < 100 {
		t.Errorf("behind its last ID: %+v", s)
	}
	if _, err := n.Reserve(t.Context(), 1); err == nil ||
		n.Snapshot().Counts.RollbackRefusals != s.Counts.RollbackRefusals+1 {
		t.Errorf("%v, and %+v", err, n.Snapshot().Counts)
	}
	n.session.Partition()
	// The first call that fails may be one after a heartbeat that was acknowledged.
	n.until("a failed heartbeat", func() bool { return n.Snapshot().Counts.HeartbeatsFailed > 0 })
	n.until("ZooKeeper is missed", func() bool { s := n.Snapshot(); return !s.ZooKeeper.OK && s.ZooKeeper.Error != "" })
	if s := n.Snapshot(); !slices.Contains(s.Degraded, TroubleZooKeeper) {
		t.Errorf("without ZooKeeper: %+v", s)
	}
}

// A worker that was never confirmed has no lease yet. Its lease bound is 0, which must not look like a lease that ended
// decades ago.
func TestSnapshotBeforeTheFirstLease(t *testing.T) {
	n := newRig(t).start().untilReady()
	n.stop()
	n.mu.Lock()
	n.view.Load().Claim.LeaseUntil = 0
	n.mu.Unlock()
	s := n.Snapshot()
	if s.Worker == nil || s.LeaseLeftMs != nil || s.LeaseEndsMs != nil || s.ReservedLeftMs != nil {
		t.Errorf("%+v", s)
	}
	if rows := n.Stats(); slices.ContainsFunc(rows, func(row [2]string) bool { return row[0] == "lease_left_ms" }) {
		t.Error(rows)
	}
}

// The next process would not find the state directory. The node reports that and serves on: a restart is safe, because
// ZooKeeper has the lease bound.
func TestSnapshotOfALostStateDirectory(t *testing.T) {
	var lost atomic.Bool
	n := newRig(t).start(func(c *Config) {
		c.DirError = func() error {
			if lost.Load() {
				return errors.New("deleted")
			}
			return nil
		}
	}).untilReady()
	reports := func() bool {
		s := n.Snapshot()
		found := slices.Contains(s.Degraded, TroubleDisk)
		if found == s.Disk.OK || found != (s.Disk.Error == "deleted") || s.Disk.Limits {
			t.Errorf("%+v, %s", s.Disk, s.Degraded)
		}
		return found
	}
	lost.Store(true)
	n.until("it is reported", reports)
	failed := n.Snapshot().Counts.DiskWritesFailed
	n.issueFor(2 * n.cfg.Reserve) // beyond the bound at which it was lost
	if now := n.Snapshot().Counts.DiskWritesFailed; failed == 0 || now <= failed {
		t.Errorf("%d writes failed, and then %d", failed, now)
	}
	lost.Store(false)
	n.until("it is found again", func() bool { return !reports() })
}
