package seq

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// With a supply of a day, a node that issues 1,000 values a second can go on for a day without ZooKeeper. It has taken
// them before in many blocks, because the ceiling allows no block of a day.
func TestNodeIssuesForADayWithoutZooKeeper(t *testing.T) {
	const perSecond, day = 1000, 24 * time.Hour
	s := newStage(t)
	a := s.node()
	set := settings(1_000_000)
	set.SupplyMs, set.HoldMs = day.Milliseconds(), (25 * time.Hour).Milliseconds()
	s.create("order", plain(), set)
	a.ask("order", 1, false).first()
	issue := func(d time.Duration) bool {
		var runs []worker.Run
		for end := s.now + d.Milliseconds(); s.now < end; s.now += 1000 {
			var w sequence.Wait
			var err error
			if runs, err = a.is.Take(&w, []byte("order"), perSecond, false, func() {}, runs[:0]); err != nil {
				return false
			}
			if a.calls == nil {
				_ = a.round()
			}
		}
		return true
	}
	for range 20 { // the first blocks are small
		a.ask("order", perSecond, false).finish()
	}
	if !issue(10 * time.Minute) {
		t.Fatal("refused with ZooKeeper")
	}
	a.calls = func(store.Call) store.Fault { return store.FailBefore }
	if !issue(day) {
		t.Error("refused within a day")
	}
}

// The nodes of a sequence with a low ceiling do not take all of it to fill their stocks.
func TestFillingAStockLeavesTheOthersSome(t *testing.T) {
	s := newStage(t)
	var all []*actor
	for range 20 {
		all = append(all, s.newNode())
	}
	s.run(stageConfirm + time.Second)
	set := settings(1000)
	set.SupplyMs = (24 * time.Hour).Milliseconds()
	s.create("order", plain(), set)
	for range 60 {
		for _, a := range all[1:] {
			a.ask("order", 10, false).finish()
		}
		s.run(time.Second)
	}
	if c := all[0].ask("order", 3000, false).finish(); c.err != nil {
		t.Error(c.err)
	}
}
