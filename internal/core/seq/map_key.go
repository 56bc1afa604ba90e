package seq

import (
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
)

// mapKey is the secret by which a position becomes a value, as this node knows it: see record.MapKeyPath. checkedAt is
// the time at which the node last read it in ZooKeeper, ns of AtMost.
type mapKey struct {
	key       sequence.Key
	checkedAt int64
}

// valuesOf returns the map of r with its key. A plain map has no key: k is nil.
func (k *mapKey) valuesOf(r record.Record) sequence.Values {
	if k == nil {
		return sequence.NewValues(r.Map, sequence.Key{})
	}
	return sequence.NewValues(r.Map, k.key)
}

// mapKeyDue reports whether the node must look for the map key of r in ZooKeeper. Mu is held.
func (s *series) mapKeyDue(r record.Record, now int64) bool {
	learned := s.Known != nil && s.Known.ID == r.ID && s.mapKey != nil
	return !learned || s.Stale || now-s.mapKey.checkedAt >= int64(minRefreshAge)
}

// putBackMapKey returns the operation that puts back the map key of r, if ZooKeeper has lost it and the node knows
// it. Mu is held.
func (s *series) putBackMapKey(v view, r record.Record) []store.Op {
	if v.MapKey == nil || s.mapKey == nil || s.Known.ID != r.ID {
		return nil
	}
	if _, ok := r.MapKeyIn(*v.MapKey); ok {
		return nil
	}
	write := record.WriteMapKey(r.ID, s.mapKey.key)
	if v.MapKey.Found {
		return []store.Op{store.SetOp{Path: write.Path, Data: write.Data, Version: v.MapKey.Stat.Version}}
	}
	return []store.Op{write}
}

// learnMapKey notes the map key of the known record, if it was read. The read was sent at sent, ns of AtMost.
func (s *series) learnMapKey(v view, sent int64) {
	if v.MapKey == nil {
		return
	}
	if k, ok := s.Known.MapKeyIn(*v.MapKey); ok {
		s.mapKey = &mapKey{k, sent}
		s.Values = s.mapKey.valuesOf(*s.Known)
	}
}
