package health

import (
	"context"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
)

// Draft is a Report that is not complete: it lacks what Complete adds. Before that, poll.Asker.AskWorkers and
// ReadSequences may add to a draft of ZooKeeper's records.
type Draft Report

// ReadDraft reads the workers that ZooKeeper has recorded in st for the cluster of this name.
func ReadDraft(ctx context.Context, st store.Store, name string) (Draft, error) {
	cl, err := coordinator.ReadCluster(ctx, st)
	if err != nil {
		return Draft{}, err
	}
	entries, err := coordinator.ReadSlots(ctx, st, cl)
	if err != nil {
		return Draft{}, err
	}
	return DraftOf(name, cl, entries, time.Now()), nil
}

// DraftOf returns the draft of these records, which were read at the time local by this machine's clock.
func DraftOf(name string, cl coordinator.Cluster, entries []coordinator.Entry, local time.Time) Draft {
	now, suspect := presentTime(entries, local.UnixMilli())
	d := Draft{
		Source:    SourceZooKeeper,
		Cluster:   DescribeCluster(name, cl, time.UnixMilli(now)),
		Workers:   []WorkerReport{},
		suspectMs: suspect,
	}
	var epoch int64 // of the present leader
	for _, e := range entries {
		epoch = max(epoch, e.Stat.Epoch())
	}
	for _, e := range entries {
		state := stateOf(cl, e, now)
		if state == RecordMissing || e.Slot.Term != 0 { // else no node has held it
			d.Workers = append(d.Workers, recordedWorker(e, state, now, suspect, epoch))
		}
	}
	d.Summary = CountWorkers(cl, entries, now)
	d.Summary.Used = len(d.Workers)
	return d
}

// Complete returns the report of a draft: it adds the shortest lease, what nodes say of sequences, and the problems.
func (d Draft) Complete() Report {
	r := Report(d)
	for _, w := range r.Workers {
		if r.usesLease(w) {
			r.Summary.ShortestLeaseMs = shorter(r.Summary.ShortestLeaseMs, w.LeaseLeft())
		}
	}
	r.Sequences = merge(r.Sequences, r.Source == SourceZooKeeper && r.SequencesError == "", r.Workers)
	r.Summary.Problems = problems(r)
	r.Summary.Degraded = len(r.Summary.Problems) > 0
	return r
}

// shorter returns the pointer to the smaller of two times. nil counts as unlimited.
func shorter(a, b *int64) *int64 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}
