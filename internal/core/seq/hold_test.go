package seq

import (
	"errors"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// The machine of a node is off for longer than the hold, and starts again without ZooKeeper. Meanwhile an operator
// deletes the name, purges it if he may, and creates it again, and another node issues the new values. No clock of the
// machine is sure to have counted that time: nothing on its disk shows that its wall clock has stood still. So it must
// not issue what its journal has, unless the hold is Forever: then the name cannot be purged.
func TestHoldOverABoot(t *testing.T) {
	const off = 20 * time.Minute
	for name, c := range map[string]struct {
		hold time.Duration
		step time.Duration // of the wall clock, while the machine is off
		goes bool          // it issues what its journal has
	}{
		"the clock is right":                    {hold: 10 * time.Minute},
		"the clock has stood still":             {hold: 10 * time.Minute, step: -off},
		"the clock shows less than the hold":    {hold: 10 * time.Minute, step: -off / 2},
		"it stays forever, the clock is right":  {hold: record.Forever, goes: true},
		"it stays forever, the clock is behind": {hold: record.Forever, step: -off, goes: true},
		"it stays forever, it is 1970":          {hold: record.Forever, step: -time.Duration(simEpoch) * time.Millisecond, goes: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			a, b := s.newNode(), s.newNode()
			a.openJournal(&memDir{})
			s.run(stageConfirm + time.Second)
			set := settings(1000)
			set.HoldMs = c.hold.Milliseconds()
			s.create("order", plain(), set)
			for range 40 {
				a.ask("order", 1, false).first()
			}
			s.run(5 * time.Second)
			a.store.Partition()
			s.remove("order")
			s.nodes = []*actor{b}
			s.run(off)
			err := s.operator().Purge(t.Context(), "order")
			if early := errors.Is(err, operator.ErrTooEarly); early != c.goes || err != nil && !early {
				t.Fatalf("purge: %v", err)
			}
			s.create("order", plain(), set)
			s.run(5 * time.Second)
			first := b.ask("order", 200, true).first()
			a.Step(c.step)
			a.SetBoot(1)
			a.again(true)
			a.is.issuer.cfg.Boot = "another"
			got := a.ask("order", 1, false).finish()
			if issued := got.err == nil; issued != c.goes {
				t.Fatalf("%v, %v", got.runs, got.err)
			} else if v := int64(0); issued {
				if v = int64(got.runs[0].First); v < 41 || v > 43 || v >= first {
					t.Errorf("%d, and the new life has issued values from %d on", v, first)
				}
			} else if first != 1 {
				t.Errorf("the new life begins with %d", first)
			}
		})
	}
}

// ZooKeeper is wiped after a deletion, and another name with more writes was purged before. So the write count alone
// would say that the tombstone was purged, too. Then an operator could create the name, delete and purge it, and a node
// that is cut off would issue values of the first life.
func TestTombstoneThatWaitsComesBack(t *testing.T) {
	for _, hold := range []time.Duration{24 * time.Hour, record.Forever} {
		s, a := newOrder(t)
		s.set("order", operator.Change{Settings: func(set *record.Settings) { set.HoldMs = hold.Milliseconds() }})
		a.ask("order", 1, false).first()
		s.remove("order")
		s.create("bill", plain(), settings(1000))
		for range 20 {
			s.set("bill", operator.Change{Settings: func(set *record.Settings) { set.SupplyMs++ }})
		}
		s.remove("bill")
		s.run(2 * time.Minute)
		if err := s.operator().Purge(t.Context(), "bill"); err != nil {
			t.Fatal(err)
		}
		s.run(5 * time.Second)
		s.Mem.Wipe()
		createCluster(s.Mem.Session(), 0)
		a.store.Expire()
		a.noteLoss()
		s.run(2 * stageConfirm)
		if r := s.view("order").Record; r.Kind() != record.Tombstone || r.IssuableFor(*s.view("order").State) < hold {
			t.Errorf("hold %s: after the loss, order is %+v", hold, r)
		}
		if r := s.view("bill").Record; r != nil {
			t.Errorf("hold %s: after the loss, bill is %+v", hold, r)
		}
	}
}

// ZooKeeper goes back to a copy from before the hold was Forever, and an operator changes the sequence in that copy. A
// node that knows of Forever keeps it, because a node that is cut off goes on with it.
func TestForeverIsPutBack(t *testing.T) {
	change := operator.Change{Settings: func(set *record.Settings) { set.Block++ }}
	for name, changed := range map[string]func(s *stage){
		"nothing": func(*stage) {}, "its block": func(s *stage) { s.set("order", change) },
		"its block, twice": func(s *stage) { s.set("order", change); s.set("order", change) },
		"deleted":          func(s *stage) { s.remove("order") },
	} {
		t.Run(name, func(t *testing.T) {
			s, a := newOrder(t)
			a.ask("order", 1, false).first()
			s.run(5 * time.Second)
			earlier := s.Mem.Snapshot()
			s.set("order", operator.Change{Settings: func(set *record.Settings) { set.HoldMs = record.Forever.Milliseconds() }})
			s.run(5 * time.Second)
			s.lose(earlier, 2)
			changed(s)
			a.noteLoss()
			s.run(2 * stageConfirm)
			r := s.view("order").Record
			if r.Kind() == record.Sequence {
				s.remove("order")
			}
			s.run(20 * time.Minute)
			if err := s.operator().Purge(t.Context(), "order"); err == nil {
				t.Errorf("%+v was purged", r)
			}
		})
	}
}
