package coordinator

import (
	"fmt"
	"testing"
)

// Sonyflake's layout has 65,536 workers, the most that a cluster uses. Their records are created at most growMost at a
// time, wherever the ticket numbers point.
func TestManySlots(t *testing.T) {
	const slots = 1 << 16
	l := newLab(t, slots)
	register := func(name string, worker, used int) {
		t.Helper()
		m := l.node(name)
		m.must(m.register())
		if cl := l.cluster(); m.claim.Worker != worker || cl.HighestSlot != used {
			t.Errorf("%s is worker %d of %d used, want %d of %d", name, m.claim.Worker, cl.HighestSlot+1, worker, used+1)
		}
	}
	for i := range 3 {
		register(fmt.Sprint("N", i), i, 1023)
	}
	if err := l.mem.SetCreateCount(ticketsPath, 5000); err != nil {
		t.Fatal(err)
	}
	register("far", 5000, 5119)
	if err := l.mem.SetCreateCount(ticketsPath, slots); err != nil {
		t.Fatal(err)
	}
	register("round", 3, 5119) // 0 to 2 are held
}
