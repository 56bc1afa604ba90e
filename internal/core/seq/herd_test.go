package seq

import (
	"fmt"
	"testing"
	"time"
)

// Records that are due to be written again at one moment are written one after the other.
func TestRenewalsAreSpread(t *testing.T) {
	s := newStage(t)
	a := s.node()
	const names = 1000
	for k := range names {
		name := fmt.Sprint("order", k)
		s.create(name, plain(), settings(1000))
		a.ask(name, 1, false).first()
		s.now++
	}
	a.is.known.state.Time += time.Hour.Milliseconds()
	if due := a.is.due(true); len(due) != 750 { // of 1,000, at a heartbeat of 3 s
		t.Errorf("%d records are written again in one round", len(due))
	}
}
