package seq

import (
	"fmt"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
)

func TestReport(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.createTemplate("t:*", 1, 5)
	s.create("order", plain(), settings(1000))
	s.run(4 * time.Second)
	a.ask("order", 10, false).first()
	a.ask("nobody", 1, false).reason()
	s.run(2 * time.Second)
	r := a.is.issuer.Report()
	if len(r.Sequences) != 1 || r.Sequences[0].Name != "order" || r.Sequences[0].Held == 0 ||
		r.Sequences[0].PerSecond == 0 {
		t.Errorf("%+v", r.Sequences)
	}
	if r.Issued != 10 || r.Blocks < 1 || r.Waits != 2 || r.Changes != 2 || r.Refused[record.NoSequence] != 1 ||
		r.ReadAgo < 0 || r.ReadAgo > 4*time.Second || r.State.Cluster != "c" || r.FrozenTemplates != 0 {
		t.Errorf("%+v", r)
	}
	a.noteLoss()
	s.run(stageConfirm + 4*time.Second)
	if n := a.is.issuer.Report().FrozenTemplates; n != 1 {
		t.Errorf("%d templates are frozen, want 1", n)
	}
}

// SEQ of a name that the node has not seen waits for ZooKeeper, as NEXT does.
func TestShowLooksUpTheName(t *testing.T) {
	_, a := newOrder(t)
	var w sequence.Wait
	woken := false
	if _, err := a.is.issuer.Show(&w, []byte("order"), func() { woken = true }); err != sequence.ErrPending {
		t.Fatal(err)
	}
	for range 3 {
		_ = a.round()
	}
	if line, err := a.is.issuer.Show(&w, []byte("order"), func() {}); !woken || err != nil {
		t.Error(woken, line, err)
	}
}

// Names are forgotten while somebody reads the counters. A counter that falls looks like a restart of the process.
func TestCountersDoNotFallWhenNamesAreForgotten(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.run(4 * time.Second)
	const names = 2000
	for k := range names {
		a.is.issuer.series.findOrAdd(fmt.Sprint("unknown:", k)).Waits = 1
	}
	forgotten, before := make(chan struct{}), a.is.issuer.Report().Waits
	go func() {
		defer close(forgotten)
		a.is.forgotAt = 0
		a.is.forget()
	}()
	for ended := false; !ended; {
		select {
		case <-forgotten:
			ended = true
		default:
		}
		if now := a.is.issuer.Report().Waits; now != before {
			t.Fatalf("%d waits after %d", now, before)
		}
	}
	if n := len(a.is.issuer.series.list()); n != 0 {
		t.Errorf("%d names are left", n)
	}
}

// A request for a name that is being forgotten gets another series at once: it must not look again and again until all
// other names have been looked at.
func TestRequestForAForgottenNameDoesNotSpin(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.create("order", plain(), settings(1000))
	a.is.issuer.series.findOrAdd("order")
	a.is.issuer.series.remove(func(old *series) bool {
		old.forgotten.Store(true)
		if c := a.ask("order", 1, false); c.done {
			t.Errorf("refused: %v", c.err)
		}
		if a.is.issuer.series.find("order") == old {
			t.Error("the request has found the forgotten series")
		}
		return true
	})
	if a.is.issuer.series.find("order") == nil {
		t.Error("the new series is forgotten, too")
	}
}
