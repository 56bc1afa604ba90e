package seq

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/sequence"
)

// createTemplate creates a template for at most most sequences, which begin at start.
func (s *stage) createTemplate(name string, start, most int64) {
	s.t.Helper()
	s.creates(operator.Definition{
		Name: name, MaxNames: most, Settings: settings(1000), StartGiven: true,
		Map: sequence.Map{Start: start, Increment: 1, Max: sequence.MaxJavaScript},
	})
}

func TestTemplateCreatesASequenceAtItsFirstUse(t *testing.T) {
	s := newStage(t)
	a, b := s.node(), s.node()
	s.createTemplate("order:*", 1, 3)
	s.createTemplate("order:eu-*", 500, 3)
	if v := a.ask("order:1", 5, false).first(); v != 1 {
		t.Error(v)
	}
	if v := b.ask("order:1", 1, false).first(); v <= 5 {
		t.Errorf("another node issues %d again", v)
	}
	if v := a.ask("order:eu-1", 1, false).first(); v != 500 {
		t.Errorf("the longest template begins at 500, not at %d", v)
	}
	for _, name := range []string{"order", "order:", "orders:1"} {
		if r := a.ask(name, 1, false).reason(); r != record.NoSequence {
			t.Errorf("%s: %s", name, r)
		}
	}
	if r, _, err := s.operator().Find(t.Context(), "order:*"); err != nil || r.Names != 1 {
		t.Error(r.Names, err)
	}
}

// A name of a template gives no values, also while the node knows the template.
func TestTemplateGivesNoValues(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.createTemplate("order:*", 1, 3)
	a.ask("order:1", 1, false).first()
	for range 2 {
		if r := a.ask("order:*", 1, false).reason(); r != record.NoSequence {
			t.Error(r)
		}
		a.is.issuer.series.findOrAdd("order:*") // as a change of the template makes it known
	}
}

func TestDamagedTemplateIsNamed(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.createTemplate("order:*", 1, 3)
	s.write(record.Path("order:*"), []byte("x"))
	c := a.ask("order:1", 1, false)
	if r := c.reason(); r != record.Frozen || !strings.Contains(c.err.Error(), record.Path("order:*")) {
		t.Error(c.err)
	}
}

func TestTemplateCreatesNoMoreThanItMay(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.createTemplate("order:*", 1, 2)
	a.ask("order:1", 1, false).first()
	a.ask("order:2", 1, false).first()
	c := a.ask("order:3", 1, false)
	if r := c.reason(); r != record.NoSequence || !strings.Contains(c.err.Error(), "as many as it may") {
		t.Error(c.err)
	}
	three := int64(3)
	s.set("order:*", operator.Change{MaxNames: &three})
	s.run(4 * time.Second)
	if v := a.ask("order:3", 1, false).first(); v != 1 {
		t.Error(v)
	}
}

func TestTemplateLeavesADeletedNameAlone(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.createTemplate("order:*", 1, 5)
	a.ask("order:1", 1, false).first()
	s.remove("order:1")
	s.run(4 * time.Second)
	if r := a.ask("order:1", 1, false).reason(); r != record.NoSequence {
		t.Error(r)
	}
}

func (s *stage) exists(name string) bool {
	_, _, err := s.Mem.Peek(record.Path(name))
	return err == nil
}

// A node that has just reached ZooKeeper does not know whether a sequence of this name was lost.
func TestTemplateCreatesNothingBeforeTheConfirmingTimeIsOver(t *testing.T) {
	s := newStage(t)
	s.node()
	s.createTemplate("order:*", 1, 5)
	a := s.newNode()
	a.hold = func() Slot { return Slot{Path: a.slot, Version: store.AnyVersion, Wait: time.Second} }
	if r := a.ask("order:1", 1, false).reason(); r != record.Confirming || s.exists("order:1") {
		t.Error(r)
	}
}

// inCreation calls f just before node a creates a sequence.
func (a *actor) inCreation(f func()) {
	a.calls = func(c memzk.Call) memzk.Fault {
		for _, op := range c.Ops {
			if made, ok := op.(store.CreateOp); ok && made.Path != record.StatePath {
				a.calls = nil
				f()
			}
		}
		return memzk.NoFault
	}
}

// A record that a node knows is missing: it is put back, not created again.
func TestTemplateDoesNotCreateWhatIsLost(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.createTemplate("order:*", 1, 5)
	v := a.ask("order:1", 100, false).first()
	s.erase(record.Path("order:1"))
	for range 5 {
		c := a.ask("order:1", 500, false).finish()
		if c.err == nil && int64(c.runs[0].First) <= v+99 {
			t.Fatal(c.runs)
		}
		s.run(4 * time.Second)
	}
	if r, _, err := s.operator().Find(t.Context(), "order:*"); err != nil || r.Names != 1 {
		t.Errorf("the template has created %d sequences, want 1: %v", r.Names, err)
	}
}

// Two unknown names of one template are worked on at once.
func TestTwoNamesOfATemplateAtOnce(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.createTemplate("t:*", 1, 9)
	s.run(4 * time.Second)
	c1, c2 := a.ask("t:1", 1, false), a.ask("t:2", 1, false)
	ctx := context.Background()
	s2 := a.is.issuer.series.findOrAdd("t:2")
	sit := mode.Situation{AtMost: a.is.issuer.now(), SeqTime: a.is.follower.losses.SeqTime(a.is.issuer.cfg.Elapsed.AtLeast()), Nonce: a.is.issuer.cfg.Nonce()}
	v2, err := a.is.follower.roundIO().gather(ctx, s2, true) // the second worker has read the template
	if err != nil {
		t.Fatal(err)
	}
	if err := a.is.follower.roundIO().work(ctx, a.is.issuer.series.findOrAdd("t:1")); err != nil { // the first one creates its sequence
		t.Fatal(err)
	}
	_, err = s2.decide(v2, sit)
	if !errors.Is(err, errReadBefore) {
		t.Errorf("a loss is reported: %v", err)
	}
	if err := a.is.follower.roundIO().work(ctx, s2); err != nil || c1.first() != 1 || c2.first() != 1 {
		t.Error(err)
	}
}
