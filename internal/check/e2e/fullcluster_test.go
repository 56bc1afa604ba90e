package e2e

import (
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/worker"
)

// eightWorkers is a layout whose workers a test can use up.
const eightWorkers = "time=41@1ms,worker=3,sequence=12,epoch=1288834974657"

// While all workers are held, a new node is refused with the reason and leaves no records
// behind. A worker that was released goes to the next node.
func TestFullClusterRefusesAndReusesReleasedWorkers(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--layout", eightWorkers)
	layout, err := worker.ParseLayout(eightWorkers)
	if err != nil {
		t.Fatal(err)
	}
	s.ids.layout = layout
	records := s.records()

	keeper := s.started().ready()
	leaver := s.started("--release-on-exit").ready()
	s.startedTogether(6)
	if n := len(records.tickets()); n != 8 {
		t.Fatalf("%d tickets of 8 nodes", n)
	}

	late := s.started()
	late.fails(1, `all 8 workers are held \(8 live, 0 disconnected, 0 stopped, 0 releasing\)`)
	// A node that was stopped keeps its worker.
	keeper.stop()
	late.start().fails(1, `7 live, 0 disconnected, 1 stopped, 0 releasing\)\. The next one is free in \d`)
	if n := len(records.tickets()); n != 8 {
		t.Errorf("%d tickets after refusals, want the 8 of the holders", n)
	}

	freed := leaver.worker()
	leaver.get(50)
	leaver.stop()
	if slot := records.slot(freed); !slot.Released || slot.Confirmed && slot.Ticket != "" {
		t.Errorf("the slot given back is %+v", slot)
	}
	if n := len(records.tickets()); n != 7 {
		t.Errorf("%d tickets after one was given back, want 7", n)
	}
	late.start().ready()
	if names := records.tickets(); names[len(names)-1] != "n-0000000008" {
		t.Errorf("the tickets are %q: those who were refused have drawn some", names)
	}
	if w := late.worker(); w != freed {
		t.Errorf("the newcomer is worker %d, and %d was given back", w, freed)
	}
	late.get(50)
	leaver.hasNoState()
	leaver.start().fails(1, `all 8 workers are held`)
	// The stopped node resumes its worker.
	keeper.start().ready().get(50)
}
