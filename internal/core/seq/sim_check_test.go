package seq

import (
	"fmt"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
)

// recordOf returns the record that a call overwrites, and false if it overwrites none.
func (h *history) recordOf(c memzk.Call) (name string, set store.SetOp, r record.Record, ok bool) {
	for _, op := range c.Ops {
		if set, ok = op.(store.SetOp); !ok {
			continue
		}
		for _, name := range h.names {
			if r, err := record.Parse(set.Data); err == nil && set.Path == record.Path(name) {
				return name, set, r, true
			}
		}
	}
	return "", set, r, false
}

// intend remembers the block that a call takes if it is applied.
func (n *simNode) intend(c memzk.Call) {
	name, set, r, ok := n.h.recordOf(c)
	data, stat, err := n.h.Mem.Peek(set.Path)
	if !ok || err != nil || stat.Version != set.Version {
		return
	}
	old, err := record.Parse(data)
	if err != nil {
		n.h.violated("record", "%v", err)
	}
	took := simTaking{n: r.Next - old.Next, ceiling: r.HardCeiling}
	switch {
	case n.is.issuer.series.byName[name].incarnation < n.is.follower.losses.Incarnation(): // it is put back
		took.n = 0
		n.h.strict[name].putBack()
	case r.Incarnation > old.Incarnation:
		took.n = -r.Credit
		took.extra = took.n
	}
	if n.h.strict[name] != nil && took.n > 0 {
		n.checkPace(name)
		took.over = record.WriterOf(old.Nonce)
	}
	n.h.intended[r.Nonce] = took
}

// done notes a write that was applied.
func (n *simNode) done(c memzk.Call, result, told error) {
	h := n.h
	if name, set, r, ok := h.recordOf(c); ok && result == nil {
		if h.strict[name] != nil {
			h.strict[name].committed = max(h.strict[name].committed, r.Value(r.Next))
		}
		took := h.intended[r.Nonce]
		if took.at = h.now; took.extra < 0 || took.extra > positions.Ceiling(r.HardCeiling).Burst()/8 {
			h.violated("first block", "the first block after a loss of data has %d positions", took.extra)
		}
		h.takings[name] = append(h.takings[name], took)
		if told == nil {
			n.beginPause(took.over)
		}
		h.note("node %d takes %d, told %v: %s", n.id, took.n, told, set.Data)
	}
	if result == nil {
		h.created(c)
	}
	for _, op := range c.Ops {
		if set, ok := op.(store.SetOp); ok && set.Path == record.StatePath && result == nil {
			h.note("node %d, told %v: %s", n.id, told, set.Data)
		}
	}
}

// checkCeiling checks that in every window of time no more was taken than the ceiling allows. A node may lag behind the
// sequence time of another one by mostRaise.
func (h *history) checkCeiling() {
	for name, all := range h.takings {
		if h.strict[name] != nil {
			continue
		}
		for i, first := range all {
			var sum, extra, ceiling int64
			for _, t := range all[i:] {
				sum, extra, ceiling = sum+t.n, extra+t.extra, max(ceiling, t.ceiling)
				ms := t.at - first.at + (positions.Burst + record.MostRaise).Milliseconds() + h.lossesIn(first.at,
					t.at)*positions.Burst.Milliseconds()
				if allowed := extra + ceiling*ms/1000 + 1; sum > allowed {
					h.violated("ceiling", "%d positions of %s are taken from %d to %d ms, allowed are %d", sum, name,
						first.at, t.at, allowed)
					return
				}
			}
		}
	}
}

// violated notes what went wrong. The history ends soon.
func (h *history) violated(check, format string, args ...any) {
	text := check + ": " + fmt.Sprintf(format, args...)
	h.note("WRONG: %s", text)
	if h.wrong == "" {
		h.wrong = text
	}
}

// lossesIn returns how many losses of data there were in a time, or shortly before. After each, sequence time leaps.
func (h *history) lossesIn(from, to int64) (n int64) {
	for _, at := range h.lostAt {
		if at <= to && at+3*h.confirm.Milliseconds() >= from {
			n++
		}
	}
	return n
}

// checkIncarnation checks that no node has seen a loss of data in a history without one.
func (h *history) checkIncarnation() {
	data, stat, err := h.Mem.Peek(record.ClusterPath)
	if err != nil || len(h.lostAt) > 0 {
		return
	}
	if v, err := record.ParseSnapshot([]store.Record{{Found: true, Data: data, Stat: stat}, {}}); err != nil ||
		v.Cluster.Incarnation > 0 {
		h.violated("no loss", "%s is %s: %v", record.ClusterPath, data, err)
	}
}
