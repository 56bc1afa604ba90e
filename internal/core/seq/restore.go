package seq

import (
	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

// docs/sequences.md: a node that sees a later incarnation puts back what it knows better, before it takes positions. No
// skip covers changes of operators, so those who know them come first.

// restores reports whether the record was read first in a later incarnation than before, so that the node puts back
// what it knows better. mu is held.
func (s *series) restores(v view) bool {
	return v.Incarnation() > s.incarnation && s.known != nil && (v.Record != nil || !s.known.IsPurged(v.State.Purged))
}

// restore returns the step that puts back the record, its key or the keys of its requests, if ZooKeeper has lost them
// and the node knows them. A record and its key are put back in one write, so that no record is without its key. mu is
// held.
func (s *series) restore(v view, e situation) step {
	r, ops := v.Record, []store.Op(nil)
	if s.restores(v) {
		switch next, due := record.PutBack(v.Record, *s.known, s.highest); {
		case !due:
			ops = s.restoreKeys(v)
		case v.Record == nil:
			next.Gen = max(next.Gen, v.State.Purged)
			r = new(next.Written(e.nonce, e.by))
			ops = []store.Op{record.CreateOp(s.name, *r)}
		default:
			r = new(next.Written(e.nonce, e.by))
			ops = record.SetOps(s.name, *r, v.Stat.Version)
		}
	}
	if r == nil {
		return step{}
	}
	key := s.putBackSecret(v, *r)
	if ops = append(ops, key...); len(ops) == 0 {
		return step{}
	}
	st := step{kind: restoreStep, ops: ops, dirs: r.Dirs(s.name)}
	if r.Mode.HasKeys() {
		st.dirs = append(st.dirs, record.KeysDir)
	}
	st.done = func(log hclog.Logger) {
		if r != v.Record {
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
	if v.keys == nil || s.known.ID != v.Record.ID || v.Record.Kind() == record.Tombstone {
		return nil
	}
	if merged, due := v.keys.Merged(s.keys); due {
		return merged.Ops(v.Record.ID)
	}
	return nil
}
