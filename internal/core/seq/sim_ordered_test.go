package seq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
)

// simOrdered is the ordered sequence of a history. Names that begin with simFamily belong to a family.
const (
	simOrdered = "o0"
	simFamily  = "f:"
)

var simFamilyNames = []string{simFamily + "a", simFamily + "b", simFamily + "c"}

func isOrdered(name string) bool { return name == simOrdered || strings.HasPrefix(name, simFamily) }

// inOrder reports whether a later request must get a higher value over all nodes.
func (h *history) inOrder(name string) bool { return h.strict[name] != nil || isOrdered(name) }

// createFamily creates a family. Its values begin at start, or above those of earlier lives.
func (h *history) createFamily(op operator.Commands, sections int, start int64) {
	_, err := op.Create(context.Background(), operator.Definition{
		Name: simFamily + "*", Mode: record.Ordered, Sections: sections,
		Map:        sequence.Map{Start: start, Increment: 1, Max: sequence.MaxJavaScript},
		Settings:   record.Settings{Block: 32, SupplyMs: 1, HoldMs: h.lease, Ceiling: 1000, HardCeiling: 1000},
		StartGiven: true,
	})
	h.note("by hand: create a family of %d sections from %d on: %v", sections, start, err)
}

// changeFamily lets an operator raise the next value of a family, delete the family, or create it again with another
// number of sections. k says what, as in jump.
func (h *history) changeFamily(op operator.Commands, k int) {
	var highest int64
	for _, name := range simFamilyNames {
		highest = max(highest, h.highest[name])
	}
	_, lost, err := forgotten(op, simFamily+"*")
	switch {
	case err != nil:
		return
	case k == 0:
		next := highest + 10_000 + h.rng.Int64N(3000)
		_, err = op.Set(context.Background(), simFamily+"*", operator.Change{Next: &next})
		h.note("by hand: next value of the family is %d: %v", next, err)
	case k == 1 || k == 4:
		h.remove(op, simFamily+"*")
	case k == 2 && lost: // nodes that are cut off may hold some that nobody has got yet
		h.createFamily(op, 1+h.rng.IntN(4), highest+1_000_000)
	case k == 2:
		h.createFamily(op, 1+h.rng.IntN(4), 1+h.rng.Int64N(highest+1))
	}
	h.wait()
	if k == 4 {
		h.run(h.rng.Int64N(120_000))
		h.changeFamily(op, 2)
	}
}

func (n *simNode) address() string { return fmt.Sprintf("n%d:1", n.id) }

// passTo asks another node, as a process does: see Config.Pass.
func (n *simNode) passTo(_ context.Context, ask ordered.PeerRequest) (got ordered.Answer, _ error) {
	h, name := n.h, ask.Name
	var other *simNode
	for _, o := range h.nodes {
		if o.address() == ask.Address {
			other = o
		}
	}
	switch k := h.rng.IntN(40); {
	case other == nil, k == 0 && h.tell == nil, n.apart || other.apart:
		return got, ordered.ErrNothingIssued
	case h.now < other.pauseTill:
		h.pass(h.rng.Int64N(400))
		return got, errors.New("no answer")
	}
	w, is := sequence.Wait{Passed: &ask.Ownership}, other.is
	for range 4 {
		runs, err := is.issuer.Take(&w, []byte(name), int(ask.N), true, func() {}, nil)
		switch {
		case errors.Is(err, sequence.ErrPending):
			other.round()
			h.interleave(n)
			continue
		case err != nil:
			h.note("node %d refuses %s for node %d: %v", other.id, name, n.id, err)
			return got, replies.Of(err)
		}
		h.note("node %d counts %v of %s for node %d", other.id, runs, name, n.id)
		if h.rng.IntN(20) == 0 && h.tell == nil {
			return got, errors.New("the answer is lost")
		}
		h.interleave(n) // the answer is late
		return ordered.Answer{First: int64(runs[0].First), Owner: w.Owner}, nil
	}
	return got, errors.New("no answer in time")
}

// fly makes the requests that wait to be passed on.
func (n *simNode) fly() {
	if n.busy || n.flying || n.h.now < n.pauseTill {
		return
	}
	n.flying = true
	defer func() { n.flying = false }()
	for len(n.flights) > 0 {
		f := n.flights[0]
		n.flights = n.flights[1:]
		f()
	}
}

// askOrdered asks a node for values of an ordered sequence. A request that must wait is answered later.
func (h *history) askOrdered(n *simNode, name string, count int, whole bool) {
	late := &simLate{n: n, is: n.is, name: name, count: count, before: h.highest[name], whole: whole}
	for range 3 {
		if !h.take(late) {
			return
		}
		n.round()
		n.fly()
		if n.is != late.is {
			return
		}
	}
	h.late = append(h.late, late)
}

// loseOwner: the owner stands still, is cut off or ends, while others ask.
func (h *history) loseOwner() {
	h.calm()
	name := h.names[h.rng.IntN(len(h.names))]
	if !isOrdered(name) {
		name = simOrdered
	}
	a, b := h.nodes[0], h.nodes[1]
	h.ask(a, name, 1, false)
	for range 2 + h.rng.IntN(3) {
		switch h.rng.IntN(5) {
		case 0:
			a.pauseTill = h.now + h.rng.Int64N(3*h.lease)
		case 1, 2:
			a.cut = true
			a.store.Partition()
		case 3:
			a.start(true)
		}
		for range 3 + h.rng.IntN(8) {
			h.ask([]*simNode{a, b}[h.rng.IntN(2)], name, 1+h.rng.IntN(20), false)
			h.run(h.rng.Int64N(h.lease))
			h.answerLate()
		}
		a.cut, a.pauseTill = false, 0
		a.store.Heal()
		a, b = b, a
	}
}

// loseTakeOver: ZooKeeper is put back to a copy from before another node took over, while the owner of then is cut off
// or does not run.
func (h *history) loseTakeOver() {
	h.calm()
	name := simOrdered
	a, b, heard := h.nodes[0], h.nodes[1], h.nodes[len(h.nodes)-1]
	h.ask(a, name, 5, false)
	h.run(1)
	c := simCopy{h.now, h.Mem.Snapshot()}
	a.cut = true
	a.store.Partition()
	for range 4 {
		h.ask(b, name, 5, false)
		h.run(h.lease / 2)
		h.answerLate()
	}
	h.run(2*h.heartbeat.Milliseconds() + 1)
	for _, n := range h.able(c.at) {
		if n != a && (n != b || h.rng.IntN(2) == 0) {
			heard = n
		}
	}
	if !slices.Contains(h.able(c.at), heard) {
		return
	}
	if heard != b && h.rng.IntN(2) == 0 {
		b.cut = true
		b.store.Partition()
	}
	h.putBack(c, heard)
	a.cut = false
	a.store.Heal()
	for range 12 {
		n := h.nodes[h.rng.IntN(len(h.nodes))]
		h.ask(n, name, 1+h.rng.IntN(5), false)
		h.run(h.rng.Int64N(h.lease))
		h.answerLate()
	}
}
