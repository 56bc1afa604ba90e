package health

import (
	"testing"

	"github.com/flaked/flaked/internal/core/node"
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
