package audit

import (
	"context"
	"sync"

	"github.com/flaked/flaked/zkstore"
)

// Recorder is a store that adds an entry to the list before the first write. Ephemeral records
// do not count: commands make and delete them only to read the leader's clock.
type Recorder struct {
	zkstore.Store
	// Entry has the operator and the command.
	Entry Entry
	// Failed is called if the list cannot be written. The command goes on.
	Failed func(error)

	once      sync.Once
	at        string   // path of the entry, empty if there is none
	ephemeral sync.Map // paths of the ephemeral records that were created
}

// Begin adds the entry, once. Only commands call it that change ZooKeeper by other calls than
// those of a Store.
func (r *Recorder) Begin(ctx context.Context) {
	r.once.Do(func() {
		var err error
		if r.at, err = Add(ctx, r.Store, r.Entry); err != nil {
			r.Failed(err)
		}
	})
}

// End writes the command's outcome if the entry was added. err is the error of the command.
func (r *Recorder) End(ctx context.Context, err error) {
	r.once.Do(func() {}) // from now on no write adds an entry
	if r.at == "" {
		return
	}
	r.Entry.Outcome = Done
	if err != nil {
		r.Entry.Outcome = err.Error()
	}
	if err := Finish(ctx, r.Store, r.at, r.Entry); err != nil {
		r.Failed(err)
	}
}

// Create implements zkstore.Store.
func (r *Recorder) Create(ctx context.Context, path string, data []byte, kind zkstore.Kind) (string, error) {
	if kind == zkstore.Ephemeral {
		r.ephemeral.Store(path, nil)
	} else {
		r.Begin(ctx)
	}
	return r.Store.Create(ctx, path, data, kind)
}

// Set implements zkstore.Store.
func (r *Recorder) Set(ctx context.Context, path string, data []byte, version int32) (zkstore.Stat, error) {
	r.Begin(ctx)
	return r.Store.Set(ctx, path, data, version)
}

// Multi implements zkstore.Store.
func (r *Recorder) Multi(ctx context.Context, ops ...zkstore.Op) error {
	r.Begin(ctx)
	return r.Store.Multi(ctx, ops...)
}

// Delete implements zkstore.Store.
func (r *Recorder) Delete(ctx context.Context, path string, version int32) error {
	if _, own := r.ephemeral.Load(path); !own {
		r.Begin(ctx)
	}
	return r.Store.Delete(ctx, path, version)
}
