package health

import (
	"slices"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
)

func TestMarksOfAWorker(t *testing.T) {
	late, off := new(int64(3501)), new(-600.0)
	own := func(s node.Snapshot) *OwnWorker { return &OwnWorker{s} }
	for name, row := range map[string]struct {
		w     WorkerReport
		own   *OwnWorker
		stale bool
		want  Marks
	}{
		"live":                        {w: WorkerReport{State: Live, Phase: node.Serving}},
		"stopped, and refused before": {w: WorkerReport{State: Stopped, Phase: node.Refusing}},
		"not connected":               {w: WorkerReport{State: Disconnected}, want: Marks{Away: true}},
		"its record is missing":       {w: WorkerReport{State: RecordMissing}, want: Marks{Away: true}},
		"its clock is off": {w: WorkerReport{State: Live, ClockOffsetMs: off, Phase: node.Serving},
			want: Marks{Off: true}},
		"refuses": {w: WorkerReport{State: Live, Phase: node.Refusing},
			want: Marks{Refusing: true}},
		"this process, which is ready": {w: WorkerReport{State: Live, Phase: node.Refusing},
			own: own(node.Snapshot{Ready: true})},
		"this process, which refuses": {w: WorkerReport{State: Live, Phase: node.Serving},
			own: own(node.Snapshot{Clock: node.ClockSnapshot{Wrong: true}}), want: Marks{Off: true, Refusing: true}},
		"late": {w: WorkerReport{State: Live, HeartbeatMs: 3000, ReportAgeMs: late, Phase: node.Serving},
			want: Marks{Late: true}},
		"late, as an old reading says": {stale: true,
			w: WorkerReport{State: Live, HeartbeatMs: 3000, ReportAgeMs: late, Phase: node.Serving}},
		"not connected, and late": {w: WorkerReport{State: Disconnected, HeartbeatMs: 3000, ReportAgeMs: late},
			want: Marks{Away: true}},
	} {
		got := row.w.Marks(row.own, row.stale)
		if got != row.want || got.Trouble() != (row.want != Marks{}) {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
}

// Frozen sequences come before exhausted ones, then those that get no values now, then the most used ones, by name.
func TestUrgentSequencesComeFirst(t *testing.T) {
	var all []SequenceReport
	for _, u := range []mode.Use{
		{Name: "b", Record: section("", 5, 0).Record}, {Name: "a", Record: section("", 5, 0).Record},
		{Name: "near", Record: section("", 900, 0).Record},
		{Name: "no-owner", Record: section("", 5, 0).Record, Refusal: record.NoOwner},
		{Name: "ceiling", Record: section("", 6, 0).Record, Refusal: record.CeilingReached},
		{Name: "exhausted", Record: section("", 1000, 0).Record, Refusal: record.Exhausted},
		{Name: "frozen", Record: section("", 5, 0).Record, Refusal: record.Frozen},
	} {
		all = append(all, NodeReport(u, record.State{}))
	}
	slices.SortFunc(all, func(a, b SequenceReport) int { return CompareUrgency(&a, &b) })
	var got []string
	for _, r := range all {
		got = append(got, strings.TrimSuffix(r.Name+" "+r.Waits(), " "))
		if r.Stopped() != (r.Name == "frozen" || r.Name == "exhausted") {
			t.Errorf("%s: stopped %v", r.Name, r.Stopped())
		}
	}
	const want = "frozen, exhausted, ceiling ceiling, no-owner no-owner, near, a, b"
	if got := strings.Join(got, ", "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
