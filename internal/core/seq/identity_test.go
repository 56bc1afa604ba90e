package seq

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
)

// named is the ownership that the record of a sequence names.
func (s *stage) named(name string) sequence.Ownership {
	r := s.view(name).Record
	return sequence.Ownership{ID: r.ID, Owner: r.Owner, Term: r.Term}
}

// Only the ownership that a request names answers it.
func TestPassedRequestNamesTheOwner(t *testing.T) {
	s, nodes := newLinked(t, record.DefaultLease, 2)
	a, _ := s.owned(nodes[0], nodes[1])
	this := s.named("ticks")
	for name, row := range map[string]struct {
		of   sequence.Ownership
		want record.Reason
	}{
		"the owner":                         {this, ""},
		"another owner":                     {sequence.Ownership{ID: this.ID, Owner: "other", Term: this.Term}, record.NotOwner},
		"one that took it when it was free": {sequence.Ownership{ID: this.ID, Term: this.Term - 1}, ""},
		"a later one":                       {sequence.Ownership{ID: this.ID, Term: this.Term}, record.NotOwner},
	} {
		c := a.askWith(sequence.Wait{Passed: &row.of}, "ticks")
		switch {
		case !c.done:
			t.Errorf("%s: the request waits", name)
		case row.want != "" && c.reason() != row.want:
			t.Errorf("%s: %v", name, c.err)
		case row.want == "" && (c.err != nil || c.w.Owner != this.Owner):
			t.Errorf("%s: %v, values of %q, want %q", name, c.err, c.w.Owner, this.Owner)
		}
	}
}

// A node that owns nothing does not become the owner for a request that names another one.
func TestPassedRequestForAnotherOwnerTakesNothing(t *testing.T) {
	s, nodes := newLinked(t, record.DefaultLease, 2)
	a, b := s.owned(nodes[0], nodes[1])
	this := s.named("ticks")
	a.gone()
	c := b.askWith(sequence.Wait{Passed: &this}, "ticks")
	for began := s.now; !c.again().done && s.now < began+10_000; {
		s.pass(10 * time.Millisecond)
	}
	if r := c.reason(); r != record.NotOwner {
		t.Error(r)
	}
	if s.pass(10 * time.Second); s.named("ticks") != this {
		t.Errorf("it has become the owner: %v", s.named("ticks"))
	}
}

// The name was deleted and created anew, or is not known here, or has another mode. A client gets the values of the
// present life. A request of another node does not.
func TestPassedRequestNamesTheLifeOfTheName(t *testing.T) {
	s, nodes := newLinked(t, record.DefaultLease, 2)
	a, _ := s.owned(nodes[0], nodes[1])
	s.create("order", plain(), settings(1000))
	s.pass(4 * time.Second)
	early := s.named("ticks")
	early.ID, early.Owner = "of an earlier life", ""
	early.Term--
	for _, row := range []struct {
		name string
		of   sequence.Ownership
	}{{"ticks", early}, {"order", s.named("order")}, {"unknown", early}} {
		if r := a.askWith(sequence.Wait{Passed: &row.of}, row.name).reason(); r != record.NotOwner {
			t.Errorf("%s: %s", row.name, r)
		}
	}
}

// What comes back is of another owner than the one that was asked.
func TestAnswerOfAnotherOwnerIsNotUsed(t *testing.T) {
	s, nodes := newLinked(t, record.DefaultLease, 2)
	_, b := s.owned(nodes[0], nodes[1])
	for _, owner := range []string{"other", ""} {
		b.is.issuer.ordered.Forward = func(context.Context, ordered.PeerRequest) (ordered.Answer, error) {
			return ordered.Answer{First: 5, Owner: owner}, nil
		}
		c := b.ask("ticks", 1, true)
		s.pass(10 * time.Millisecond)
		if r := c.reason(); r != record.Unknown {
			t.Errorf("an answer of %q: %s", owner, r)
		}
		b.is.issuer.ordered.Forward = b.passTo
		s.pass(4 * time.Second) // until it trusts the owner again
		next := b.ask("ticks", 1, true)
		s.pass(10 * time.Millisecond)
		next.first()
	}
}

// The owner answers with a value that the other node's map does not have. Clients read that as the reason.
func TestRefusalTellsOfAnAnswerWithAForeignValue(t *testing.T) {
	s, nodes := newLinked(t, record.MaxLease, 2)
	_, b := s.owned(nodes[0], nodes[1])
	b.is.issuer.ordered.Forward = func(_ context.Context, ask ordered.PeerRequest) (ordered.Answer, error) {
		return ordered.Answer{First: -5, Owner: ask.Ownership.Owner}, nil
	}
	first := b.ask("ticks", 1, true)
	s.pass(10 * time.Millisecond)
	if r := first.reason(); r != record.Unknown {
		t.Error(r)
	}
	next := b.ask("ticks", 1, true)
	for began := s.now; !next.again().done && s.now < began+8000; {
		s.pass(100 * time.Millisecond)
	}
	if r := next.reason(); r != record.NoOwner || !strings.Contains(next.err.Error(), "not a value of this sequence") {
		t.Error(next.err)
	}
}

// At the address of the owner, another node answers. The node that asks waits for the lease, and goes on above all that
// the owner has issued.
func TestAnotherNodeAtTheAddressOfTheOwner(t *testing.T) {
	s, nodes := newLinked(t, record.DefaultLease, 2)
	a, b := s.owned(nodes[0], nodes[1])
	last := a.ask("ticks", 500, true).first() + 499
	before := s.named("ticks")
	a.gone()
	var asked []ordered.PeerRequest
	b.is.issuer.ordered.Forward = func(_ context.Context, ask ordered.PeerRequest) (ordered.Answer, error) {
		asked = append(asked, ask)
		return ordered.Answer{}, replies.NotInCluster("B", "another", ask.Cluster)
	}
	began, c := s.now, b.ask("ticks", 1, true)
	for !c.again().done && s.now < began+10_000 {
		s.pass(10 * time.Millisecond)
	}
	if v := c.first(); v <= last {
		t.Errorf("%d, and the owner has issued up to %d", v, last)
	}
	if took := s.now - began; took < 2000 || took > 3600 {
		t.Errorf("it took %d ms", took)
	}
	if len(asked) != 1 || asked[0].Ownership != before || asked[0].Cluster != "c" {
		t.Errorf("asked %+v, want %+v once", asked, before)
	}
}

func TestWrongNodeIsAskedAgainElsewhere(t *testing.T) {
	s, nodes := newLinked(t, record.DefaultLease, 3)
	a, b := s.owned(nodes[0], nodes[1])
	asked := 0
	b.is.issuer.ordered.Forward = func(ctx context.Context, ask ordered.PeerRequest) (ordered.Answer, error) {
		if asked++; asked == 1 { // the owner has renewed meanwhile, and so the record shows that it lives
			s.now += 1500
			_ = a.round()
			return ordered.Answer{}, replies.New(ids.WRONGNODE, "reason=not-owner")
		}
		return b.passTo(ctx, ask)
	}
	began, c := s.now, b.ask("ticks", 1, true)
	for !c.again().done && s.now < began+10_000 {
		s.pass(10 * time.Millisecond)
	}
	if c.first(); s.now-began > 1800 || asked != 2 {
		t.Errorf("it took %d ms, and %d requests", s.now-began, asked)
	}
}
