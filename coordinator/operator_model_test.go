package coordinator

import "testing"

// TestModelByHand plays random histories in which operators take slots away at any moment. The ranges of two holdings
// do not overlap.
func TestModelByHand(t *testing.T) {
	taken := 0
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
		}
		d.run(60)
		if !t.Failed() {
			d.ends()
		}
	})
	t.Logf("%d taken away", taken)
	if taken < 50 {
		t.Error("too little happens in these histories")
	}
}
