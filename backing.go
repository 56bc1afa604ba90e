package flaked

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

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
	cache       *localcache.Cache
	// temporary is the state directory that close removes, "" if there is none.
	temporary string
}

// open opens the store and the state directory. The store is not connected yet.
func open(cfg Config) (*backing, error) {
	b := &backing{reconnected: make(chan struct{}, 1)}
	if err := b.openStore(cfg); err != nil {
		return nil, &ConfigError{err}
	}
	dir := cfg.StateDir
	if dir == "" {
		var err error
		if dir, err = temporaryDir(); err != nil {
			return nil, &StateDirError{os.TempDir(), err}
		}
		b.temporary = dir
	}
	var err error
	if b.cache, err = localcache.Open(dir); err != nil {
		b.close()
		return nil, &StateDirError{dir, err}
	}
	if b.temporary == "" && !b.cache.TellsMachines() {
		cfg.HCLogger.Warn("this machine has neither /etc/machine-id nor a readable product UUID: never clone the "+
			"volume of the state directory, because flaked could not tell a clone from it", "state_dir", dir)
	}
	return b, nil
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

func (b *backing) openStore(cfg Config) error {
	if cfg.InMemory {
		b.store = store.NewMem(func() int64 { return time.Now().UnixMilli() }).Session()
		b.run = func(context.Context) error { return nil }
		return nil
	}
	zk, err := store.NewZK(store.ZKConfig{
		Connect: cfg.ZooKeeper, Cluster: cfg.Cluster, SessionTimeout: cfg.SessionTimeout,
		DigestAuth: cfg.ZooKeeperAuth, TLS: cfg.ZooKeeperTLS, Logger: cfg.HCLogger,
	})
	if err != nil {
		return err
	}
	b.store, b.zookeeper = zk, zk.Identity()
	b.run = func(ctx context.Context) error {
		var hinting sync.WaitGroup
		defer hinting.Wait()
		hinting.Go(func() { hintReconnects(ctx, zk, b.reconnected) })
		return zk.Run(ctx)
	}
	return nil
}

func (b *backing) close() {
	if b.temporary != "" {
		if b.cache != nil {
			_ = b.cache.Remove()
		}
		_ = os.Remove(b.temporary) // unless it has files that are not ours
	}
	if b.cache != nil {
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
