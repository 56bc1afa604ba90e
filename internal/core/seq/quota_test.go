package seq

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

// creates reports whether a call creates this record.
func creates(c memzk.Call, path string) bool {
	return slices.ContainsFunc(c.Ops, func(op store.Op) bool {
		made, ok := op.(store.CreateOp)
		return ok && made.Path == path
	})
}

// ZooKeeper has no room for a new record. Sequences that exist go on.
func TestQuotaRefusesNewNamesOnly(t *testing.T) {
	s, a := newOrder(t)
	s.createTemplate("o:*", 1, 5)
	a.ask("o:1", 1, false).first()
	a.calls = faultsOf(memzk.FailQuota, func(c memzk.Call) bool { return creates(c, record.Path("o:2")) })
	before, another, after := a.ask("order", 1, false), a.ask("o:2", 1, false), a.ask("o:1", 500, false)
	if err := a.round(); err != nil {
		t.Errorf("the round failed: %v", err)
	}
	if before.first() < 1 || after.first() < 1 {
		t.Error("no values")
	}
	if r := another.reason(); r != record.NoBlock || !strings.Contains(another.err.Error(), "a quota is reached") {
		t.Error(another.err)
	}
}

// The quota allows no write of a strict sequence. No value was taken, so none can be missing.
func TestQuotaLeavesNoUnknownOutcome(t *testing.T) {
	_, a, _ := strictStage(t)
	a.calls = faultsOf(memzk.FailQuota, func(c memzk.Call) bool { return c.Op == "multi" })
	if c := a.ask("invoice", 1, false); c.reason() != record.NoBlock {
		t.Error(c.err)
	}
	if u, ok := a.is.issuer.Use("invoice"); !ok || u.Unanswered != 0 {
		t.Errorf("%d values count as unanswered", u.Unanswered)
	}
}

// The quota allows no record that was lost to be put back. So the node must not say that it has followed.
func TestQuotaForALostRecordFailsTheRound(t *testing.T) {
	s, a := newOrder(t)
	a.ask("order", 1, false).first()
	s.erase(record.Path("order"))
	refused := false
	a.calls = faultsOf(memzk.FailQuota, func(c memzk.Call) bool {
		refused = refused || creates(c, record.Path("order"))
		return creates(c, record.Path("order"))
	})
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

// ZooKeeper has no room for the record of one owned sequence. The leases of the others are renewed.
func TestQuotaForOneLeaseLeavesTheOthers(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.ordered("ticks", record.DefaultLease, 1000)
	s.ordered("tocks", record.DefaultLease, 1000)
	s.run(20 * time.Second)
	ticks, tocks := a.owner("ticks"), a.owner("tocks")
	a.calls = faultsOf(memzk.FailQuota, func(c memzk.Call) bool {
		return slices.ContainsFunc(c.Ops, func(op store.Op) bool {
			set, ok := op.(store.SetOp)
			return ok && set.Path == record.Path("tocks")
		})
	})
	for end := s.now + 3*record.DefaultLease.Milliseconds(); s.now < end; s.now += 100 {
		if err := a.round(); err != nil {
			t.Fatalf("the round failed: %v", err)
		}
	}
	if lapses(ticks) > 0 || !ticks.Owns() {
		t.Error("the lease of a sequence for which there is room has ended")
	}
	if tocks.Owns() {
		t.Error("a lease was renewed without room")
	}
}
