package audit

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/zkstore"
)

// Every is how often a node looks for new entries.
const Every = 10 * time.Second

// Follow logs each entry that is added, until ctx is done. It looks whenever tick gets a value,
// and reads one small record if nothing was added. Entries that are there at its first look are
// not logged.
func Follow(ctx context.Context, store zkstore.Store, tick <-chan time.Time, log hclog.Logger) {
	f := follower{store: store, log: log}
	for {
		f.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

type follower struct {
	store zkstore.Store
	log   hclog.Logger
	// looked: children and names are those of an earlier look.
	looked   bool
	children int32 // as in zkstore.Stat; -1 if there is no list
	names    []string
}

// look logs what is new. If ZooKeeper cannot be reached, the next look does.
func (f *follower) look(ctx context.Context) {
	children := int32(-1)
	_, stat, err := f.store.Get(ctx, path)
	switch {
	case err == nil:
		children = stat.Children
	case !errors.Is(err, zkstore.ErrNoNode):
		return
	}
	if f.looked && children == f.children {
		return
	}
	var names []string
	if children >= 0 {
		if names, err = f.store.Children(ctx, path); err != nil {
			return
		}
	}
	added := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, old := slices.BinarySearch(f.names, name)
		return old
	})
	if f.looked && len(added) > 0 {
		entries, err := read(ctx, f.store, added)
		if err != nil {
			return
		}
		for _, e := range entries {
			f.log.Info("an operator changes the cluster", "by", e.By, "command", e.Command, "at", time.UnixMilli(e.AtMs).UTC().Format(time.RFC3339))
		}
	}
	f.looked, f.children, f.names = true, children, names
}
