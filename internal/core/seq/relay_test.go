package seq

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/sequence"
)

// newLinked is newTicks with nodes that ask each other.
func newLinked(t *testing.T, lease time.Duration, nodes int) (*stage, []*actor) {
	s, all := newTicks(t, lease, nodes)
	for k, a := range all {
		a.address, a.pass = fmt.Sprintf("n%d:1", k), a.passTo
		a.restart()
	}
	s.run(8 * time.Second)
	return s, all
}

// passTo asks another node, as a process does: see Config.Pass.
func (a *actor) passTo(_ context.Context, ask ordered.PeerRequest) (got ordered.Answer, err error) {
	w := sequence.Wait{Passed: &ask.Ownership}
	for _, b := range a.nodes {
		for tries := 0; b.address == ask.Address && tries < 4; tries++ {
			runs, err := b.is.issuer.Take(&w, []byte(ask.Name), int(ask.N), true, func() {}, nil)
			switch {
			case errors.Is(err, sequence.ErrPending):
				_ = b.round()
			case err != nil:
				return got, replies.Of(err)
			default:
				return ordered.Answer{First: int64(runs[0].First), Owner: w.Owner}, nil
			}
		}
	}
	return got, ordered.ErrNothingIssued
}

// owned makes one of two nodes the owner of ticks, and returns it first.
func (s *stage) owned(a, b *actor) (owner, other *actor) {
	s.t.Helper()
	s.contest("ticks").run(time.Second, a, b)
	for _, pair := range [][2]*actor{{a, b}, {b, a}} {
		if pair[0].is.issuer.series.find("ticks").owned() != nil {
			return pair[0], pair[1]
		}
	}
	s.t.Fatal("nobody owns the sequence")
	return nil, nil
}

// The answer of the owner is lost.
func TestUnknownOutcomeIsNotRepeated(t *testing.T) {
	s, nodes := newLinked(t, record.DefaultLease, 2)
	a, b := s.owned(nodes[0], nodes[1])
	m := a.is.issuer.series.find("ticks")
	issued := m.Issued
	b.is.issuer.ordered.Forward = func(ctx context.Context, ask ordered.PeerRequest) (got ordered.Answer, err error) {
		_, _ = b.passTo(ctx, ask)
		return got, errors.New("the connection has ended")
	}
	c := b.ask("ticks", 7, true)
	s.pass(time.Second)
	if r := c.reason(); r != record.Unknown || m.Issued != issued+7 {
		t.Errorf("%s, and the owner has counted %d", r, m.Issued-issued)
	}
}

// A request that was passed on comes to a node that is not the owner, and could ask the owner.
func TestRequestIsPassedOnOnce(t *testing.T) {
	s, nodes := newLinked(t, record.DefaultLease, 2)
	_, b := s.owned(nodes[0], nodes[1])
	c := b.askWith(sequence.Wait{Passed: &sequence.Ownership{ID: b.is.issuer.series.find("ticks").Known.ID}}, "ticks")
	if c.done {
		t.Fatalf("%v, %v", c.runs, c.err)
	}
	s.pass(100 * time.Millisecond)
	if r := c.reason(); r != record.NotOwner {
		t.Error(r)
	}
}

// The owner does not answer any more, and another node takes its place.
func TestRequestsGoToTheNextOwner(t *testing.T) {
	s, nodes := newLinked(t, record.DefaultLease, 3)
	a, b := s.owned(nodes[0], nodes[1])
	c := nodes[2]
	a.gone()
	began := s.now
	b.is.issuer.ordered.Forward = func(context.Context, ordered.PeerRequest) (_ ordered.Answer, err error) {
		return ordered.Answer{}, ordered.ErrNothingIssued
	}
	c.is.issuer.ordered.Forward = func(ctx context.Context, ask ordered.PeerRequest) (got ordered.Answer, err error) {
		if ask.Address != a.address {
			return c.passTo(ctx, ask)
		}
		one, two := b.ask("ticks", 1, true), c.ask("ticks", 1, true)
		for ctx.Err() == nil && s.now < began+5000 {
			one.again()
			two.again()
			s.pass(10 * time.Millisecond)
		}
		return ordered.Answer{}, errors.New("no answer")
	}
	c.ask("ticks", 1, true)
	s.pass(10 * time.Millisecond)
	if took := s.now - began; took > 4000 {
		t.Errorf("requests have waited for the last owner for %d ms", took)
	}
}

// A thousand requests wait together, and the ceiling is reached.
func TestCeilingIsNotAskedForByEach(t *testing.T) {
	s, nodes := newLinked(t, record.DefaultLease, 2)
	_, b := s.owned(nodes[0], nodes[1])
	asked := 0
	b.is.issuer.ordered.Forward = func(context.Context, ordered.PeerRequest) (ordered.Answer, error) {
		asked++
		return ordered.Answer{}, replies.New(ids.NOTREADY, "reason=ceiling retry_after_ms=10 too much")
	}
	var calls []*call
	for range 1000 {
		calls = append(calls, b.ask("ticks", 1, true))
	}
	s.pass(10 * time.Millisecond)
	for _, c := range calls {
		if c.again(); c.err == nil || !c.done {
			t.Fatalf("%v, %v", c.runs, c.err)
		}
	}
	if asked > 2 {
		t.Errorf("the owner was asked %d times", asked)
	}
}

// Requests that wait together share one request to the owner. If that one is too large, each is small enough alone.
func TestRequestsThatAreTooLargeTogether(t *testing.T) {
	s, nodes := newLinked(t, record.DefaultLease, 2)
	_, b := s.owned(nodes[0], nodes[1])
	asked, next := 0, int64(1001)
	b.is.issuer.ordered.Forward = func(_ context.Context, ask ordered.PeerRequest) (ordered.Answer, error) {
		if asked++; ask.N > 5 {
			return ordered.Answer{}, replies.New(ids.NOTREADY, "reason=ceiling retry_after_ms=10 too much")
		}
		next += ask.N
		return ordered.Answer{First: next - ask.N, Owner: ask.Ownership.Owner}, nil
	}
	calls := []*call{b.ask("ticks", 3, true), b.ask("ticks", 3, true), b.ask("ticks", 3, true)}
	s.pass(10 * time.Millisecond)
	for k, c := range calls {
		if v := c.first(); v != 1001+3*int64(k) {
			t.Errorf("request %d got %d", k, v)
		}
	}
	if asked != 4 {
		t.Errorf("the owner was asked %d times, want once for all and once for each", asked)
	}
}

// The owner does not answer any more, as if its machine were cut off. Nobody else asks.
func TestSilentOwnerIsReplacedInTime(t *testing.T) {
	s, nodes := newLinked(t, record.DefaultLease, 2)
	a, b := s.owned(nodes[0], nodes[1])
	s.pass(100 * time.Millisecond)
	a.gone()
	began := s.now
	b.is.issuer.ordered.Forward = func(ctx context.Context, _ ordered.PeerRequest) (ordered.Answer, error) {
		for ctx.Err() == nil && s.now < began+5000 {
			s.pass(10 * time.Millisecond)
		}
		return ordered.Answer{}, errors.New("no answer")
	}
	b.ask("ticks", 1, true)
	s.pass(10 * time.Millisecond)
	if took := s.now - began; took > 4000 || b.is.issuer.series.find("ticks").owned() == nil {
		t.Errorf("the node has taken over after %d ms", took)
	}
}

// Each write of the owner takes longer than its lease. The other node has no such trouble.
func TestOwnerThatIsTooSlowGivesUp(t *testing.T) {
	s, nodes := newLinked(t, record.DefaultLease, 2)
	a, b := s.owned(nodes[0], nodes[1])
	c := s.contest("ticks")
	a.store.SetDone(func(k memzk.Call, result, _ error) {
		if k.Op == "multi" && k.Touches(record.Path("ticks")) && result == nil {
			a.gone() // until ZooKeeper answers
			c.run(3100*time.Millisecond, a, b)
			s.nodes = append(s.nodes, a)
		}
	})
	c.run(60*time.Second, a, b)
	before := c.values[b]
	c.run(60*time.Second, a, b)
	if n := c.values[b] - before; n < 3000 {
		t.Errorf("%d values in a minute, longest wait %d ms", n, c.longest[b])
	}
}

// The values come to an end. Each is given once, and then all requests are refused at once, at both nodes.
func TestOrderedSequenceIsExhausted(t *testing.T) {
	s, nodes := newLinked(t, record.DefaultLease, 2)
	a, b := s.owned(nodes[0], nodes[1])
	next := int64(sequence.MaxJavaScript) - 999
	s.setNext("ticks", next)
	s.pass(4 * time.Second)
	c := s.contest("ticks")
	c.highest = next - 1
	given := c.values[a] + c.values[b]
	c.run(20*time.Second, a, b)
	if n := c.values[a] + c.values[b] - given; n != 1000 || c.highest != sequence.MaxJavaScript {
		t.Errorf("%d values up to %d", n, c.highest)
	}
	for _, n := range nodes {
		one := n.ask("ticks", 1, true)
		s.pass(20 * time.Millisecond)
		if one.again(); !one.done || one.err == nil || replies.Of(one.err).Code != ids.EXHAUSTED {
			t.Error(one.err)
		}
	}
}

// An owner does not answer any more. The request comes while the node reads the record in a new session, or the alarm
// of an earlier request has not rung yet.
func TestSilentOwnerIsDoubtedInTime(t *testing.T) {
	for name, quiet := range map[string]time.Duration{"in a new session": time.Second, "after other requests": 0} {
		s, nodes := newLinked(t, record.DefaultLease, 2)
		a, b := s.owned(nodes[0], nodes[1])
		a.gone()
		for s.pass(quiet); s.now%3000 != 10; { // the next heartbeat is far away
			s.pass(10 * time.Millisecond)
		}
		began, doubted := s.now, false
		m := b.is.issuer.series.find("ticks").Issuing.(*ordered.Section)
		b.is.issuer.ordered.Forward = func(context.Context, ordered.PeerRequest) (ordered.Answer, error) {
			for s.now < began+1000 && !doubted {
				s.pass(10 * time.Millisecond)
				doubted = m.SlowAt() == 0
			}
			return ordered.Answer{}, errors.New("no answer")
		}
		var c *call
		b.calls = func(call memzk.Call) memzk.Fault {
			if c == nil && call.Touches(record.Path("ticks")) {
				c = b.ask("ticks", 1, true)
			}
			return memzk.NoFault
		}
		b.store.Expire()
		_ = b.round()
		c.again()
		s.pass(10 * time.Millisecond)
		if !doubted {
			t.Errorf("%s: the node does not doubt the owner within %d ms", name, s.now-began)
		}
	}
}
