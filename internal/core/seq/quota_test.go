package seq

import (
	"errors"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/core/store"
)

// ZooKeeper has no room for a new record. Sequences that exist go on.
func TestQuotaRefusesNewNamesOnly(t *testing.T) {
	s, a := newOrder(t)
	s.createTemplate("o:*", 1, 5)
	a.ask("o:1", 1, false).first()
	a.calls = func(c store.Call) store.Fault {
		for _, op := range c.Ops {
			if _, creates := op.(store.CreateOp); creates {
				return store.FailQuota
			}
		}
		return store.NoFault
	}
	before, another, after := a.ask("order", 1, false), a.ask("o:2", 1, false), a.ask("o:1", 500, false)
	if err := a.round(); err != nil {
		t.Errorf("the round failed: %v", err)
	}
	if before.first() < 1 || after.first() < 1 {
		t.Error("no values")
	}
	if r := another.reason(); r != NoBlock || !strings.Contains(another.err.Error(), "a quota is reached") {
		t.Error(another.err)
	}
}

// The quota allows no write of a strict sequence. No value was taken, so none can be missing.
func TestQuotaLeavesNoUnknownOutcome(t *testing.T) {
	_, a, _ := strictStage(t)
	a.calls = func(c store.Call) store.Fault {
		if c.Op == "multi" {
			return store.FailQuota
		}
		return store.NoFault
	}
	if c := a.ask("invoice", 1, false); c.reason() != NoBlock {
		t.Error(c.err)
	}
	if u, ok := a.is.Use("invoice"); !ok || u.Unanswered != 0 {
		t.Errorf("%d values count as unanswered", u.Unanswered)
	}
}

// The quota allows no record that was lost to be put back. So the node must not say that it has followed.
func TestQuotaForALostRecordFailsTheRound(t *testing.T) {
	s, a := newOrder(t)
	a.ask("order", 1, false).first()
	if err := s.mem.Session().Delete(t.Context(), recordPath("order"), store.AnyVersion); err != nil {
		t.Fatal(err)
	}
	refused := false
	a.calls = func(c store.Call) store.Fault {
		for _, op := range c.Ops {
			if made, ok := op.(store.CreateOp); ok && made.Path == recordPath("order") {
				refused = true
				return store.FailQuota
			}
		}
		return store.NoFault
	}
	a.noteLoss()
	for range 60 {
		refused = false
		s.now += 1000
		if err := a.round(); refused != errors.Is(err, store.ErrQuota) {
			t.Fatalf("refused %v: %v", refused, err)
		}
		if refused {
			return
		}
	}
	t.Fatal("nothing was put back")
}
