package seq

import (
	"context"
	"strings"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/sequence"
)

const simTemplate = "t:*"

// createTemplate creates a template, and adds names that it matches to those that are asked for.
func (h *history) createTemplate(st store.Store) {
	_, err := h.operator(st).Create(context.Background(), operator.Definition{
		Name: simTemplate, MaxNames: 2 + h.rng.Int64N(20),
		Map: sequence.Map{Start: 1, Increment: 1, Max: sequence.MaxJavaScript}, Settings: settings(1000),
		StartGiven: true,
	})
	h.note("by hand: create %s: %v", simTemplate, err)
	h.names = append(h.names, "t:1", "t:2", "t:3")
}

// confirmTemplate says where the sequences of a template begin after a loss of data: above all that was issued. Nodes
// that are cut off may hold some that nobody has got yet.
func (h *history) confirmTemplate(op operator.Commands) {
	ctx := context.Background()
	r, st, err := op.Find(ctx, simTemplate)
	if err != nil || r.Incarnation == st.Incarnation || r.DeletedAt != 0 {
		return
	}
	next := r.Value(r.Next)
	for name, v := range h.highest {
		if strings.HasPrefix(name, "t:") {
			next = max(next, v+1_000_000)
		}
	}
	_, err = op.Set(ctx, simTemplate, operator.Change{Next: &next, VouchedIn: st.Incarnation})
	h.note("by hand: sequences of %s begin at %d: %v", simTemplate, next, err)
}

// created notes that a template has created a sequence again that ZooKeeper had lost: it has the whole burst again.
func (h *history) created(c memzk.Call) {
	for _, op := range c.Ops {
		made, ok := op.(store.CreateOp)
		if set, isSet := c.Ops[1].(store.SetOp); !ok || !isSet || set.Path != record.Path(simTemplate) {
			continue
		}
		for _, name := range h.names {
			if made.Path == record.Path(name) {
				h.note("%s has created %s: %s", simTemplate, name, made.Data)
				h.takings[name] = append(h.takings[name], simTaking{at: h.now, extra: positions.Ceiling(1000).Burst()})
			}
		}
	}
}
