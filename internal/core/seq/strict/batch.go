package strict

import (
	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// nextBatch divides the requests that wait: those that share the next write, and the rest, which look at the series
// again. It answers those that get no part of any write: they have a key with a value, or want more than is left.
func (s *Strict) nextBatch(v mode.View, sit mode.Situation) (all batch, rest []mode.Request) {
	waiting, noLoss := s.Waiting, s.Known.Incarnation == v.Incarnation()
	if noLoss { // else the keys may be older than those that were lost
		waiting, rest = s.answerRepeated(v)
	}
	left := s.Known.Positions() - s.Known.Next
	full := false
	for _, r := range waiting {
		late := sit.AtMost-r.Wait.Since >= int64(mode.Patience)
		switch {
		case r.N > left && left > 0 && noLoss: // others may get what is left
			r.Wait.Result = &mode.Result{Err: s.Known.Exhausted()}
			rest = append(rest, r)
		case late, r.N == 0: // SEQ asks for no value
			rest = append(rest, r)
		case full, !all.add(r, min(left, maxCommit)):
			full = true
			rest = append(rest, r)
		}
	}
	return all, rest
}

// batch is the requests that share a write. They take n positions, and withKeys of them have keys.
type batch struct {
	requests []mode.Request
	n        int64
	withKeys int
}

// add adds a request, if a write of most positions can have it too and all its keys are remembered. It reports whether
// that is so.
func (b *batch) add(r mode.Request, most int64) bool {
	withKeys := b.withKeys
	if r.Wait.Key != "" {
		withKeys++
	}
	if b.n+r.N > most || withKeys > record.MaxRequestKeys {
		return false
	}
	b.requests, b.n, b.withKeys = append(b.requests, r), b.n+r.N, withKeys
	return true
}

// answerRepeated answers the requests with keys that have a value already, and returns the others. Of requests with one
// key that has none, all but the first wait on: they get its value from the keys.
func (s *Strict) answerRepeated(v mode.View) (fresh, rest []mode.Request) {
	if !s.HaveKeys() {
		return s.Waiting, nil
	}
	seen := make(map[string]bool)
	for _, r := range s.Waiting {
		key := r.Wait.Key
		if key == "" {
			fresh = append(fresh, r)
			continue
		}
		p, found := int64(0), v.RequestKeys != nil
		if found {
			p, found = v.RequestKeys.Find(record.HashKey(key))
		}
		switch {
		case found:
			r.Wait.Result = &mode.Result{Values: s.Values, Block: positions.Block{First: p, End: p + 1}, Again: true}
			rest = append(rest, r)
		case seen[key], v.RequestKeys == nil: // asked twice at once, or it came after the keys were read
			rest = append(rest, r)
		default:
			seen[key] = true
			fresh = append(fresh, r)
		}
	}
	return fresh, rest
}

// requestKeysAfter returns the request keys after a write that gives the positions from first on to requests. It
// returns nil if none of them has a key.
func requestKeysAfter(k *record.RequestKeys, requests []mode.Request, first int64) *record.RequestKeys {
	var added []record.KeyEntry
	for _, r := range requests {
		if r.Wait.Key != "" {
			added = append(added, record.KeyEntry{Key: record.HashKey(r.Wait.Key), Position: first})
		}
		first += r.N
	}
	if len(added) == 0 {
		return nil
	}
	return k.With(added)
}
