package seq

import (
	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

// A node that sees a later incarnation puts back what it knows better (S8), before it takes positions. No
// skip covers changes of operators, so those who know them come first.

// putsBack reports whether the record was read first in a later incarnation than before, so that the node puts back
// what it knows better. Mu is held.
func (s *series) putsBack(v view) bool {
	return v.Incarnation() > s.incarnation && s.Known != nil && (v.Record != nil || !s.Known.IsPurged(v.State.Purged))
}

// putBack returns the step that puts back the record, its map key or its request keys, if ZooKeeper has lost them
// and the node knows them. A record and its map key are put back in one write, so that no record is without it. Mu is
// held.
func (s *series) putBack(v view, sit mode.Situation) step {
	r, ops := v.Record, []store.Op(nil)
	if s.putsBack(v) {
		switch next, due := record.PutBack(v.Record, *s.Known, s.highest, v.Incarnation(), sit.SeqTime); {
		case !due:
			ops = s.putBackRequestKeys(v)
		case v.Record == nil:
			next.WriteCount = max(next.WriteCount, v.State.Purged)
			r = new(next.Stamped(sit.Nonce, sit.By))
			ops = []store.Op{record.CreateOp(s.Name, *r)}
		default:
			r = new(next.Stamped(sit.Nonce, sit.By))
			ops = record.SetOps(s.Name, *r, v.Stat.Version)
		}
	}
	if r == nil {
		return step{}
	}
	key := s.putBackMapKey(v, *r)
	if ops = append(ops, key...); len(ops) == 0 {
		return step{}
	}
	st := step{kind: putBackStep, ops: ops, dirs: r.Dirs(s.Name)}
	if r.Mode.HasRequestKeys() {
		st.dirs = append(st.dirs, record.RequestKeysDir)
	}
	st.done = func(log hclog.Logger) {
		if r != v.Record {
			s.change(func() {
				//mutant:s21-key-of-another-life by TestAnotherLifeDoesNotGetTheKeyOfTheOldOne -> s.Known = r
				s.setRecord(*r) // r may be of another life than what was known: see record.PutBack
				s.Stale = true
			})
		}
		if len(key) > 0 {
			log.Warn("ZooKeeper has lost the key of a sequence. This node puts it back", "sequence", s.Name)
		}
	}
	return st
}

// putBackRequestKeys returns the operations that put back the request keys that ZooKeeper has lost. The strict sequence
// itself goes on only when an operator says where.
func (s *series) putBackRequestKeys(v view) []store.Op {
	if v.RequestKeys == nil || s.Known.ID != v.Record.ID || v.Record.Kind() == record.Tombstone {
		return nil
	}
	if merged, due := v.RequestKeys.Merged(s.requestKeys()); due {
		return merged.Ops(v.Record.ID)
	}
	return nil
}
