package judge

import "github.com/flaked/flaked/worker"

// Flat converts IDs of any layout to one field order: time, segment, datacenter, worker,
// sequence. In that order the IDs of one reply are consecutive numbers.
//
// The rollback field becomes the upper part of the worker field. A worker that has counted a
// rollback therefore appears as another worker, because its IDs before and after the rollback
// have no common order.
type Flat struct{ from, to worker.Layout }

// Flatten returns the Flat that converts IDs of layout l.
func Flatten(l worker.Layout) Flat {
	to := l
	to.Order, to.RollbackBits, to.WorkerBits = worker.Order{}, 0, l.WorkerBits+l.RollbackBits
	return Flat{l, to}
}

// Layout returns the layout of the IDs that ID returns.
func (f Flat) Layout() worker.Layout { return f.to }

// ID converts one ID. An ID that is invalid in its layout becomes -1, which is invalid in
// every layout. If the layout is flat already, ID returns id unchanged and unchecked.
func (f Flat) ID(id worker.ID) worker.ID {
	if f.from == f.to {
		return id
	}
	fields, err := f.from.Decode(id)
	if err != nil {
		return -1
	}
	fields.Worker |= fields.Rollback << f.from.WorkerBits
	fields.Rollback = 0
	if id, err = f.to.Encode(fields); err != nil {
		return -1
	}
	return id
}

// begins reports whether a converted ID is the first of its worker's tick or segment: its
// sequence field is 0.
func (f Flat) begins(id worker.ID) bool { return id&(1<<f.to.SequenceBits-1) == 0 }

// Workers merges the entries of highest that differ only in the rollback count of the worker,
// and keeps the highest ID of each worker.
func (f Flat) Workers(highest map[int64]worker.ID) map[int64]worker.ID {
	all := map[int64]worker.ID{}
	for w, id := range highest {
		w &= 1<<f.from.WorkerBits - 1
		all[w] = max(all[w], id)
	}
	return all
}
