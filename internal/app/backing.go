package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/internal/core/entrylog"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/localcache"
)

// backing has the store and the state directory of a Node.
type backing struct {
	store store.Store
	// zookeeper identifies the ZooKeeper that store is in, "" for memory.
	zookeeper string
	// run keeps the store connected until the context is done.
	run func(context.Context) error
	// reconnected gets a value whenever the connection to ZooKeeper is back.
	reconnected chan struct{}
	// cache and files are the state directory. Both are empty until open has succeeded.
	cache lateCache
	files lateFiles
	dir   string
	// temporary is the state directory that close removes, "" if there is none.
	temporary string
}

// lateCache and lateFiles are parts of a state directory that is opened later.
type (
	lateCache struct{ *localcache.StateFile }
	lateFiles struct{ entrylog.Dir }
)

// newBacking returns a backing whose store is not connected yet, and whose state directory is not open.
func newBacking(cfg Config) (*backing, error) {
	b := &backing{reconnected: make(chan struct{}, 1), dir: cfg.StateDir}
	if cfg.Node.InMemory {
		b.store = store.NewMem(nil).Session()
		b.run = func(context.Context) error { return nil }
		return b, nil
	}
	zk, err := store.NewZK(cfg.ZooKeeper)
	if err != nil {
		return nil, err
	}
	b.store, b.zookeeper = zk, zk.Identity()
	b.run = func(ctx context.Context) error {
		var hinting sync.WaitGroup
		defer hinting.Wait()
		hinting.Go(func() { hintReconnects(ctx, zk, b.reconnected) })
		return zk.Run(ctx)
	}
	return b, nil
}

// open opens the state directory, and locks it. The error is a *StateDirError.
func (b *backing) open(log hclog.Logger) error {
	if b.dir == "" {
		var err error
		if b.dir, err = temporaryDir(); err != nil {
			return &StateDirError{os.TempDir(), err}
		}
		b.temporary = b.dir
	}
	cache, err := localcache.Open(b.dir)
	if err != nil {
		return &StateDirError{b.dir, err}
	}
	b.cache.StateFile, b.files.Dir = cache, cache.Dir()
	if mode := cache.Dir().WasOpenToOthers(); mode != 0 {
		log.Warn("other users had rights on the state directory. This node has taken them away", "state_dir", b.dir,
			"mode", fmt.Sprintf("%04o", mode))
	}
	if b.temporary == "" && cache.Load().Status == localcache.StatusEmpty && cache.Dir().CloneUnseen() {
		log.Warn("this machine has neither /etc/machine-id nor a readable product UUID: never clone the "+
			"volume of the state directory, because flaked could not tell a clone from it", "state_dir", b.dir)
	}
	return nil
}

// temporaryDir makes a temporary directory and returns its absolute path: TMPDIR may be relative, and
// the program may change its working directory.
func temporaryDir() (string, error) {
	parent, err := filepath.Abs(os.TempDir())
	if err != nil {
		return "", err
	}
	return os.MkdirTemp(parent, "flaked-")
}

func (b *backing) close() {
	if b.temporary != "" {
		if b.cache.StateFile != nil {
			_ = b.cache.Remove()
		}
		_ = os.Remove(b.temporary) // unless it has files that are not ours
	}
	if b.cache.StateFile != nil {
		_ = b.cache.Close()
	}
}

// hintReconnects tells the node whenever the connection to ZooKeeper is back.
func hintReconnects(ctx context.Context, zk *store.ZK, hint chan<- struct{}) {
	for {
		changed := zk.Changed()
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		if !zk.Connected() {
			continue
		}
		select {
		case hint <- struct{}{}:
		default:
		}
	}
}
