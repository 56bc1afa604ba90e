package seq

import (
	"errors"
	"fmt"
	"slices"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
)

// simKey is a key that a strict sequence was asked with. Keys belong to one life of the sequence.
type simKey struct {
	key, life string
	before    int64 // the highest value that was answered when the key was used for the first time
	value     int64 // 0: no request with the key was answered yet
	losses    int   // of data, until the first request
}

// simLate is a request that came while its node was writing.
type simLate struct {
	n      *simNode
	is     *Rounds
	name   string
	w      sequence.Wait
	count  int
	before int64
	whole  bool
}

// askKeyed asks for a value with a new key or with one of the last ones. A key that has a value must get the same
// again.
func (h *history) askKeyed(n *simNode, name string) {
	if h.now < n.pauseTill {
		return
	}
	data, _, err := h.Mem.Peek(record.Path(name))
	r, parseErr := record.Parse(data)
	if err != nil || parseErr != nil {
		return
	}
	s := h.strict[name]
	k := &simKey{key: fmt.Sprint("k", len(s.keys)), life: r.ID, before: h.highest[name], losses: len(h.lostAt)}
	if len(s.keys) > 0 && h.rng.IntN(2) == 0 {
		k = s.keys[max(0, len(s.keys)-1-h.rng.IntN(5))]
	} else {
		s.keys = append(s.keys, k)
	}
	w := sequence.Wait{Key: k.key}
	for range 4 {
		runs, err := n.is.issuer.Take(&w, []byte(name), 1, false, func() {}, nil)
		if errors.Is(err, sequence.ErrPending) {
			n.round()
			continue
		}
		if err != nil {
			h.note("node %d refuses %s with the key %s: %v", n.id, name, k.key, err)
			return
		}
		switch v := int64(runs[0].First); {
		case v == k.value:
			h.note("node %d issues %s %d again for the key %s", n.id, name, v, k.key)
		case k.value != 0 && k.losses == len(h.lostAt) && k.life == r.ID:
			h.violated("keys", "node %d: %s gives %d for the key %s, which had %d", n.id, name, v, k.key, k.value)
		default: // the first request with the key may have taken it
			h.check(n, name, runs, 1, k.before)
			k.value, k.losses, k.life = v, len(h.lostAt), r.ID
		}
		return
	}
}

// askLate sends a node a request while it writes. answerLate looks for the answers.
func (h *history) askLate(n *simNode, name string) {
	late := &simLate{n: n, is: n.is, name: name, count: 1 + h.rng.IntN(3), before: h.highest[name]}
	if h.take(late) {
		h.late = append(h.late, late)
	}
}

func (h *history) answerLate() {
	h.late = slices.DeleteFunc(h.late, func(late *simLate) bool {
		if late.n.is != late.is { // the process has ended
			return true
		}
		return !late.n.busy && h.now >= late.n.pauseTill && !h.take(late)
	})
}

// take reports whether the request waits on.
func (h *history) take(late *simLate) (waits bool) {
	runs, err := late.n.is.issuer.Take(&late.w, []byte(late.name), late.count, late.whole, func() {}, nil)
	if err == nil {
		h.check(late.n, late.name, runs, late.count, late.before)
	}
	return errors.Is(err, sequence.ErrPending)
}

// keysAreLost notes the last loss of data, the one with the number losses. Keys that are in the directory of heard must
// keep their values. Those of the last minute are lost if all nodes are killed.
func (s *simStrict) keysAreLost(heard *simNode, losses int) {
	if heard == nil || heard.disk.witness == nil {
		return
	}
	life := ""
	if r := heard.disk.witness.Records["x0"]; r != nil {
		life = r.ID
	}
	known, _ := record.ParseRequestKeys(heard.disk.witness.RequestKeys["x0"]) // as the node wrote them
	for _, k := range s.keys {
		if k.losses == losses-1 && k.life == life &&
			slices.ContainsFunc(known, func(e record.KeyEntry) bool { return e.Key == record.HashKey(k.key) }) {
			k.losses = losses
		}
	}
}
