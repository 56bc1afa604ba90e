package view

import (
	"slices"
	"strings"
	"testing"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
)

// Each cause of a refusal and each trouble has a row of its own, with something to do. Texts are headlines: the page
// adds the full stop.
func TestEveryCauseIsExplained(t *testing.T) {
	for _, cause := range node.Causes() {
		found := OwnWorker{node.Snapshot{Cause: cause, Code: "NOTREADY", Reason: "x"}}.Problems()
		if len(found) != 1 || found[0].Cause != string(cause) {
			t.Errorf("%s: %+v", cause, found)
		}
	}
	for _, trouble := range node.Troubles() {
		w := OwnWorker{node.Snapshot{Ready: true, Degraded: []string{trouble},
			FromCache: trouble == node.TroubleFromCache}}
		w.Clock.WorstMs = new(600.0)
		found := w.Problems()
		if trouble == node.TroubleFrozen && len(found) == 0 {
			continue // the cluster's problem
		}
		if len(found) != 1 || found[0].Cause != trouble {
			t.Errorf("%s: %+v", trouble, found)
		}
	}
	for i, p := range Causes {
		if row(p.Cause) != i || strings.HasSuffix(p.Text, ".") || !strings.HasSuffix(p.Advice, ".") || i > 0 &&
			p.Severity == Critical && Causes[i-1].Severity == Warning {
			t.Errorf("row %d: %+v", i, p)
		}
	}
}

func TestHeartbeatIsLate(t *testing.T) {
	for _, row := range []struct {
		age, every int64
		want       bool
	}{{3000, 3000, false}, {3500, 3000, false}, {3501, 3000, true}, {9000, 0, false}} {
		if got := HeartbeatLate(row.age, row.every); got != row.want {
			t.Errorf("%+v: %v", row, got)
		}
	}
	if (OwnWorker{}).HeartbeatLate() || (OwnWorker{}).CutOff() {
		t.Error("a worker before its first heartbeat is late")
	}
	if !slices.ContainsFunc(node.Troubles(),
		func(s string) bool { return OwnWorker{node.Snapshot{Degraded: []string{s}}}.CutOff() }) {
		t.Error("no trouble counts as cut off")
	}
}

// A node counts its lease by its own clock. The record counts by ZooKeeper's, which may be wrong.
func TestLeaseIsWhatTheNodeSays(t *testing.T) {
	r := Assess("prod", exampleCluster(), []coordinator.Entry{liveEntry(0, 0)}, local(t0))
	r.Workers[0].Says = &Answer{Ready: true, LeaseLeftMs: new(int64(5000))}
	r.Judge()
	if got := r.Summary.ShortestLeaseMs; got == nil || *got != 5000 {
		t.Errorf("%v ms are left", got)
	}
}

// If every live node says that it refuses, that comes first.
func TestNoNodeServes(t *testing.T) {
	refuses := &Answer{Phase: "refusing", Cause: node.CauseClockWrong}
	empty := Assess("prod", exampleCluster(), nil, local(t0))
	if empty.Judge(); empty.Summary.Problems == nil || len(empty.Summary.Problems) > 0 {
		t.Errorf("%#v", empty.Summary.Problems) // JSON needs a list
	}
	for _, row := range []struct {
		name string
		says []*Answer
		want bool
	}{
		{"all refuse", []*Answer{refuses, refuses}, true}, {"one serves", []*Answer{refuses, {Ready: true}}, false},
		{"one is silent", []*Answer{refuses, nil}, false},
		{"one starts", []*Answer{refuses, {Cause: node.CauseConfirming}}, false},
	} {
		r := Assess("prod", exampleCluster(), []coordinator.Entry{liveEntry(0, 0), liveEntry(1, 0)}, local(t0))
		for i, says := range row.says {
			r.Workers[i].Says = says
		}
		r.Judge()
		if got := r.Summary.Problems[0].Cause == "no-node-serves"; got != row.want {
			t.Errorf("%s: %+v", row.name, r.Summary.Problems)
		}
	}
}
