package judge

import "github.com/flaked/flaked/worker"

// Flat puts the fields of IDs into the one order in which those of a reply
// follow on each other, whatever their layout: time, segment, datacenter, worker,
// sequence. A worker that has counted a rollback stands for another: its IDs
// before and after are no more in order than those of two.
type Flat struct{ from, to worker.Layout }

// Flatten is how IDs of a layout are put so.
func Flatten(l worker.Layout) Flat {
	to := l
	to.Order, to.RollbackBits, to.WorkerBits = worker.Order{}, 0, l.WorkerBits+l.RollbackBits
	return Flat{l, to}
}

// Layout is that of the IDs that ID makes.
func (f Flat) Layout() worker.Layout { return f.to }

// ID puts one. What is no ID of the layout becomes -1, which is none of any.
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

// begins reports whether a flat ID is the first of a worker's tick or segment.
func (f Flat) begins(id worker.ID) bool { return id&(1<<f.to.SequenceBits-1) == 0 }

// Workers are the highest IDs by worker, whatever rollbacks it has counted.
func (f Flat) Workers(highest map[int64]worker.ID) map[int64]worker.ID {
	all := map[int64]worker.ID{}
	for w, id := range highest {
		w &= 1<<f.from.WorkerBits - 1
		all[w] = max(all[w], id)
	}
	return all
}
