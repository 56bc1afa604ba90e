package coordinator

import "testing"

// TestModelByHand plays random histories in which operators take slots away at any moment, and
// lower the lease bounds of nodes that are gone. The ranges of two holdings do not overlap.
func TestModelByHand(t *testing.T) {
	taken, lowered := 0, 0
	runModel(t, 1000, func(t testing.TB, seed uint64) {
		d := newModel(t, seed)
		d.skews = []int64{0, 0, 2000, -2000}
		d.hands = func() {
			w := d.rng.IntN(d.cl.Slots)
			hand := Operator{Store: d.admin, Now: func() int64 { return d.now }, By: "model"}
			h, err := hand.Examine(d.Context(), w)
			if err != nil {
				d.Fatal(err)
			}
			if h.Slot.Term > 0 && !h.Slot.Released {
				d.note("by hand", "takes away %d, %v", w, h.Availability)
				if _, err := hand.ForceRelease(d.Context(), h); err != nil {
					d.Error(err)
				}
				d.observe()
				taken++
			}
			if !d.goneFrom(w) {
				return
			}
			if h, err = hand.Examine(d.Context(), w); err != nil {
				d.Fatal(err)
			}
			if !h.Live && h.Slot.Released && h.Slot.ReleasedBy != "" {
				e, err := hand.LowerBound(d.Context(), h, 0)
				d.note("by hand", "lowers %d to %d, %v", w, e.Slot.LeaseUntil-labStart, err)
				if err != nil {
					d.Error(err)
				}
				lowered++
			}
		}
		d.run(60)
		if !t.Failed() {
			d.ends()
		}
	})
	t.Logf("%d taken away, %d bounds lowered", taken, lowered)
	if taken < 50 || lowered < 20 {
		t.Error("too little happens in these histories")
	}
}

// goneFrom kills all nodes that may hold a slot, and wipes their disks. An operator who lowers a
// bound must know that they are gone. If one of them is in the middle of a step, goneFrom does
// nothing and returns false.
func (d *model) goneFrom(worker int) bool {
	var holders []*member
	for _, m := range d.nodes {
		if m.up && m.claim.Worker == worker || m.disk.usable && m.disk.claim.Worker == worker {
			if d.busy[m] {
				return false
			}
			holders = append(holders, m)
		}
	}
	for _, m := range holders {
		m.disk = &disk{cl: d.cl}
		m.crash()
	}
	d.expire()
	return true
}
