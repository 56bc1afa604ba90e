package main

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/node"
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
		name  string
		state node.Snapshot
		ready bool
		text  string
	}{
		{"serving", snapshot(7, true, 24*time.Hour-3*time.Second), true, "serving worker 7, lease 23h59m"},
		{"young", snapshot(0, true, 67*time.Second), true, "serving worker 0, lease 1m0s"},
		{"starting", snapshot(-1, false, 0), false, "no worker yet: NOTREADY starting reason=no-worker-yet"},
		{"refusing", snapshot(7, false, time.Hour, refusing), false, "worker 7 refuses: CLOCK behind_ms=7"},
		{"in trouble", snapshot(7, true, time.Hour, troubled), true, "serving worker 7, lease 1h0m; degraded: " +
			"zookeeper, clock-offset"},
	} {
		if ready, text := serviceState(tc.state); ready != tc.ready || text != tc.text {
			t.Errorf("%s: %v %q, want %q", tc.name, ready, text, tc.text)
		}
	}
}
