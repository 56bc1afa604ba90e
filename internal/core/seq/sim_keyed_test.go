package seq

import (
	"context"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// simKeyed is a salted or scattered sequence, which some histories have.
const simKeyed = "k0"

// createKeyed adds a salted or scattered sequence to those that are asked for.
func (h *history) createKeyed(st store.Store) {
	if h.keyed.Salt = 16; h.rng.IntN(2) == 0 {
		h.keyed.Salt, h.keyed.Scatter = 0, 30
	}
	h.names = append(h.names, simKeyed)
	h.create(st, simKeyed)
}

// mapOf returns the map for the next life of a name. start is the first value of a plain one. lost: no record knows all
// earlier values.
func (h *history) mapOf(name string, start int64, lost bool) sequence.Map {
	m := sequence.Map{Start: start, Increment: 1 + h.rng.Int64N(3), Max: sequence.MaxJavaScript}
	if name != simKeyed {
		return m
	}
	m.Increment, m.Salt, m.Scatter = 1, h.keyed.Salt, h.keyed.Scatter
	if m.Salt > 0 {
		m.Start = start>>m.Salt + 1
		if lost {
			m.Start = (start-1_000_000)>>m.Salt + 20 // the bits of the salt must not matter
		}
	} else if n := len(h.lives); n > 0 {
		m.Start = h.lives[n-1].Highest(0) + 1
		if !lost && h.rng.IntN(2) == 0 {
			m = h.lives[n-1].Map
		}
	}
	return m
}

// expect remembers the key of a sequence as soon as an operator has created it: nodes issue its values while the
// command waits for them. The caller calls end when the command has ended.
func (h *history) expect(st store.Store, name string) (end func()) {
	session, is := st.(*memzk.Session)
	if name != simKeyed || !is {
		return func() {}
	}
	session.SetDone(func(c memzk.Call, result, _ error) {
		if result != nil || c.Op != "multi" {
			return
		}
		data, _, _ := h.Mem.Peek(record.Path(name))
		if r, err := record.Parse(data); err != nil {
			h.violated("record", "%v", err)
		} else {
			h.born(h.operator(h.Mem.Session()), r)
		}
	})
	return func() { session.SetDone(nil) }
}

// born remembers the key of a sequence that was created.
func (h *history) born(op operator.Commands, r record.Record) {
	k, err := op.MapKey(context.Background(), r)
	if err != nil {
		h.violated("key", "a new sequence has no key: %v", err)
	}
	h.lives = append(h.lives, sequence.NewValues(r.Map, k))
}

// rank returns a number by which the values of a name ascend on a node. ours is false if no life of the name has
// the value.
func (h *history) rank(name string, v int64) (rank int64, ours bool) {
	if name != simKeyed {
		return v, true
	}
	for k, life := range h.lives {
		if p, ok := life.Position(v); ok {
			if life.Salt > 0 {
				return v >> life.Salt, true
			}
			return (int64(k)<<40 | p) + 1, true
		}
	}
	return 0, false
}

// shown returns what a history says of values that were issued. Those of a keyed sequence differ each time that the
// history is played, because the key does.
func (h *history) shown(name string, runs []worker.Run) any {
	if name != simKeyed {
		return runs
	}
	var ranks []int64
	for _, r := range runs {
		rank, _ := h.rank(name, int64(r.First))
		ranks = append(ranks, rank)
	}
	return ranks
}

// loseKey deletes the key alone. Nodes that know it put it back some time.
func (h *history) loseKey() {
	data, _, err := h.Mem.Peek(record.Path(simKeyed))
	if r, broken := record.Parse(data); err == nil && broken == nil {
		err = h.Mem.Session().Delete(context.Background(), record.MapKeyPath(r.ID), store.AnyVersion)
		h.note("the key of %s is deleted: %v", simKeyed, err)
	}
}
