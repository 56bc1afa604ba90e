package seq

import (
	"fmt"
	"testing"
	"time"
)

// A hundred nodes ask for one name at once. Each success of one makes the others fail, and all are served soon.
func TestManyNodesAskForOneNameAtOnce(t *testing.T) {
	s := newStage(t)
	var nodes []*actor
	for range 100 {
		nodes = append(nodes, s.newNode())
	}
	s.run(stageConfirm + time.Second)
	s.create("order", plain(), settings(1_000_000))
	var calls []*call
	for _, a := range nodes {
		a.is.cfg.Retry = func(most time.Duration, _ func()) time.Duration { return most / 2 }
		calls = append(calls, a.ask("order", 1, false))
	}
	seen := make(map[int64]bool)
	for began := s.now; len(seen) < len(nodes) && s.now < began+patience.Milliseconds(); s.now += 10 {
		for k, a := range nodes {
			_ = a.round()
			if c := calls[k].again(); c.done && c.err == nil {
				seen[int64(c.runs[0].First)] = true
			}
		}
	}
	if len(seen) != len(nodes) {
		t.Errorf("%d of %d nodes have a value of their own", len(seen), len(nodes))
	}
}

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
