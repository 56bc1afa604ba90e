package node

import (
	"testing"

	"github.com/flaked/flaked/worker"
)

// The same histories in layouts whose fields stand in other places: what keeps
// IDs apart does not depend on where in them it is written.
func TestSimulationOfLayouts(t *testing.T) {
	for name, change := range map[string]func(*worker.Layout){
		"the worker lowest": func(l *worker.Layout) {
			l.Order = worker.Order{worker.FieldSegment, worker.FieldSequence, worker.FieldDatacenter, worker.FieldWorker}
		},
		"a segment above the worker": func(l *worker.Layout) {
			l.SegmentBits = 2
		},
		"a segment, the worker lowest": func(l *worker.Layout) {
			l.SegmentBits = 1
			l.Order = worker.Order{worker.FieldSegment, worker.FieldSequence, worker.FieldWorker, worker.FieldDatacenter}
		},
		"the worker above a datacenter": func(l *worker.Layout) {
			l.DatacenterBits = 2
			l.Order = worker.Order{worker.FieldSegment, worker.FieldWorker, worker.FieldDatacenter, worker.FieldSequence}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ids, count := 0, uint64(60)
			if underRace {
				count = 4
			}
			if *simCount > 0 {
				count = uint64(*simCount)
			}
			for seed := *simFirst; seed < *simFirst+count; seed++ {
				s := playAs(t, seed, func(w *world) { change(&w.layout) })
				if s.wrong != "" {
					t.Fatalf("%s\nhistory %d in %s: %s", s.text(), seed, s.layout, s.wrong)
				}
				ids += s.ids
			}
			t.Logf("%d histories, %d IDs", count, ids)
			if ids == 0 {
				t.Error("no ID was made")
			}
		})
	}
}
