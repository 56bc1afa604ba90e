package main

import (
	"testing"
	"time"

	"github.com/flaked/flaked/node"
)

func TestServiceState(t *testing.T) {
	snapshot := func(worker int, ready bool, lease time.Duration, change ...func(*node.Snapshot)) node.Snapshot {
		left := lease.Milliseconds()
		s := node.Snapshot{Ready: ready, LeaseLeftMs: &left}
		if worker >= 0 {
			s.Worker = &worker
		}
		if !ready {
			s.Code, s.Reason = "NOTREADY", "starting reason=no-worker-yet"
		}
		for _, f := range change {
			f(&s)
		}
		return s
	}
	refusing := func(s *node.Snapshot) { s.Code, s.Reason = "CLOCK", "behind_ms=7" }
	troubled := func(s *node.Snapshot) { s.Degraded = []string{"zookeeper", "clock-offset"} }
	for _, tc := range []struct {
		name    string
		workers []node.Snapshot
		ready   bool
		text    string
	}{
		{"serving", []node.Snapshot{snapshot(7, true, 24*time.Hour-3*time.Second)}, true, "serving worker 7, lease 23h59m"},
		{"young", []node.Snapshot{snapshot(0, true, 67*time.Second)}, true, "serving worker 0, lease 1m0s"},
		{"starting", []node.Snapshot{snapshot(-1, false, 0)}, false, "no worker yet: NOTREADY starting reason=no-worker-yet"},
		{"refusing", []node.Snapshot{snapshot(7, false, time.Hour, refusing)}, false, "worker 7 refuses: CLOCK behind_ms=7"},
		{"in trouble", []node.Snapshot{snapshot(7, true, time.Hour, troubled)}, true, "serving worker 7, lease 1h0m; worker 7 is degraded: zookeeper, clock-offset"},
		{"several", []node.Snapshot{snapshot(7, true, 2*time.Hour), snapshot(9, true, time.Hour)}, true, "serving workers 7, 9, lease 1h0m"},
		{"some", []node.Snapshot{snapshot(7, true, 2*time.Hour), snapshot(9, false, 0, refusing)}, true, "serving worker 7, lease 2h0m; worker 9 refuses: CLOCK behind_ms=7"},
	} {
		if ready, text := serviceState(tc.workers); ready != tc.ready || text != tc.text {
			t.Errorf("%s: %v %q, want %q", tc.name, ready, text, tc.text)
		}
	}
}
