package seq

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/losses"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// The boot clock of a node is fast, and its wall clock is right. It raises the sequence time by no more than what has
// passed, and waits for the whole confirming time after a loss of data.
func TestFastBootClock(t *testing.T) {
	s, a := newOrder(t)
	a.SetRates(2000, 1000)
	a.restart()
	s.run(2 * time.Minute)
	before, began := s.view("order").State.Time, s.now
	s.run(2 * time.Minute)
	if raised, passed := s.view("order").State.Time-before, s.now-began; raised > passed+losses.RaiseEvery.Milliseconds() {
		t.Errorf("the sequence time was raised by %d ms in %d ms", raised, passed)
	}
	a.noteLoss()
	s.run(4 * time.Second)
	left := a.is.follower.roundIO().unconfirmed()
	if want := stageConfirm - 4*time.Second; left < want {
		t.Errorf("the confirming time is over in %s, want %s at least", left, want)
	}
}

// The boot clock of a node is slow, or as good as stands still, and its wall clock is right. The hold ends in
// time.
func TestHoldWithASlowBootClock(t *testing.T) {
	for _, rate := range []int64{500, 10} {
		s, a := newOrder(t)
		a.SetRates(rate, 1000)
		a.restart()
		s.run(20 * time.Second)
		a.ask("order", 10, false).first()
		a.store.Partition()
		s.now += 590_000
		a.ask("order", 1, false).first()
		s.now += 20_000
		if r := a.ask("order", 1, false).reason(); r != record.NoBlock {
			t.Errorf("at the rate %d: %s", rate, r)
		}
	}
}
