package seq

import (
	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/internal/core/store"
)

// docs/sequences.md: a node that sees a later incarnation puts back what it knows better, before it takes positions. No
// skip covers changes of operators, so those who know them come first.

// restores reports whether the record was read first in a later incarnation than before, so that the node puts back
// what it knows better. mu is held.
func (s *series) restores(v view) bool {
	return v.incarnation() > s.incarnation && s.known != nil && (v.record != nil || !s.known.isPurged(v.state.Purged))
}

// restore returns the step that puts back the record, its key or the keys of its requests, if ZooKeeper has lost them
// and the node knows them. A record and its key are put back in one write, so that no record is without its key. mu is
// held.
func (s *series) restore(v view, e situation) step {
	r, ops := v.record, []store.Op(nil)
	if s.restores(v) {
		switch next, due := putBack(v.record, *s.known, s.highest); {
		case !due:
			ops = s.restoreKeys(v)
		case v.record == nil:
			next.Gen = max(next.Gen, v.state.Purged)
			r = new(next.written(e.nonce, e.by))
			ops = []store.Op{createRecord(s.name, *r)}
		default:
			r = new(next.written(e.nonce, e.by))
			ops = setRecord(s.name, *r, v.stat.Version)
		}
	}
	if r == nil {
		return step{}
	}
	key := s.putBackSecret(v, *r)
	if ops = append(ops, key...); len(ops) == 0 {
		return step{}
	}
	st := step{kind: restoreStep, ops: ops, dirs: r.dirs(s.name)}
	if r.Mode.hasKeys() {
		st.dirs = append(st.dirs, keysDir)
	}
	st.done = func(log hclog.Logger) {
		if r != v.record {
			s.change(func() { s.known, s.stale = r, true })
		}
		if len(key) > 0 {
			log.Warn("ZooKeeper has lost the key of a sequence. This node puts it back", "sequence", s.name)
		}
	}
	return st
}

// restoreKeys returns the operations that put back the keys of requests that ZooKeeper has lost. The strict sequence
// itself goes on only when an operator says where.
func (s *series) restoreKeys(v view) []store.Op {
	if v.keys == nil || s.known.ID != v.record.ID || v.record.Kind() == Tombstone {
		return nil
	}
	if merged, due := v.keys.merged(s.keys); due {
		return merged.ops(v.record.ID)
	}
	return nil
}
