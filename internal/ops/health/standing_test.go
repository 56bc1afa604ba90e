package health

import (
	"testing"

	"github.com/flaked/flaked/internal/core/node"
)

func TestStanding(t *testing.T) {
	for name, row := range map[string]struct {
		w    WorkerReport
		want standing
	}{
		"its record says that it serves":   {WorkerReport{State: Live, Phase: "serving"}, serves},
		"its record says that it refuses":  {WorkerReport{State: Live, Phase: "refusing"}, refuses},
		"its record says that it confirms": {WorkerReport{State: Live, Phase: "confirming"}, starts},
		"live, but it does not answer":     {WorkerReport{State: Live, Phase: "serving", Outcome: NoAnswer}, unheard},
		"not connected, and not asked":     {WorkerReport{State: Disconnected, Phase: "serving"}, unheard},
		"not connected, and no answer":     {WorkerReport{State: Disconnected, Outcome: TimedOut}, gone},
		"its record is missing":            {WorkerReport{State: RecordMissing}, unheard},
		"stopped":                          {WorkerReport{State: Stopped, Phase: "stopped"}, gone},
		"it says that it is ready":         {WorkerReport{State: Disconnected, Says: &Answer{Ready: true}}, serves},
		"it says that it starts": {WorkerReport{State: Live, Phase: "serving",
			Says: &Answer{Cause: node.CauseConfirming}}, starts},
		"it says that it refuses": {WorkerReport{State: Live, Phase: "serving",
			Says: &Answer{Phase: "serving", Cause: node.CauseClockBehind}}, refuses},
		"it says that it stops": {WorkerReport{State: Live, Phase: "serving",
			Says: &Answer{Phase: "stopping", Cause: node.CauseStopping}}, notServing},
	} {
		if got := row.w.standing(); got != row.want {
			t.Errorf("%s: %d, want %d", name, got, row.want)
		}
	}
}
