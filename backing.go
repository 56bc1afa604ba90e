package flaked

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/internal/core/seq"
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
	// cache and files are the state directory. Both are empty until lock has succeeded.
	cache lateCache
	files lateFiles
	dir   string
	// temporary is the state directory that close removes, "" if there is none.
	temporary string
}

// lateCache and lateFiles are parts of a state directory that is opened later.
type (
	lateCache struct{ *localcache.Cache }
	lateFiles struct{ seq.Dir }
)

// open opens the store. It is not connected yet.
func open(cfg Config) (*backing, error) {
	b := &backing{reconnected: make(chan struct{}, 1)}
	if err := b.openStore(cfg); err != nil {
		return nil, &ConfigError{err}
	}
	if b.dir = cfg.StateDir; b.dir == "" {
		var err error
		if b.dir, err = temporaryDir(); err != nil {
			return nil, &StateDirError{os.TempDir(), err}
		}
		b.temporary = b.dir
	}
	return b, nil
}

// lock opens the state directory, and locks it. The error is a *StateDirError.
func (b *backing) lock(log hclog.Logger) error {
	cache, err := localcache.Open(b.dir)
	if err != nil {
		return &StateDirError{b.dir, err}
	}
	b.cache.Cache, b.files.Dir = cache, cache.Dir()
	if mode := cache.Dir().WasOpen(); mode != 0 {
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

func (b *backing) openStore(cfg Config) error {
	if cfg.InMemory {
		b.store = store.NewMem(nil).Session()
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

// lockEvery is the time between two looks at a state directory that another process has.
const lockEvery = 100 * time.Millisecond

// awaitLock waits for the state directory if another process has it: that may be the one in whose place this one was
// started. It returns nil if this process has it now.
func (n *Node) awaitLock(limit time.Duration) error {
	var err error
	if e := n.locked.Load(); e != nil {
		err = e
		n.log.Warn("waiting for the state directory, because another process uses it", "state_dir", e.Dir,
			"error", e.Err, "at_most_s", limit.Seconds())
	}
	began := time.Now()
	for err != nil {
		_ = n.rounds.Round(n.ending) // the node has joined no cluster, so this only refuses requests that wait
		select {
		case <-n.ending.Done():
			return err
		case <-time.After(lockEvery):
		}
		if err = n.backing.lock(n.log); err != nil && (!errors.Is(err, ErrLocked) || time.Since(began) >= limit) {
			return err
		}
	}
	n.locked.Store(nil)
	return nil
}

func (b *backing) close() {
	if b.temporary != "" {
		if b.cache.Cache != nil {
			_ = b.cache.Remove()
		}
		_ = os.Remove(b.temporary) // unless it has files that are not ours
	}
	if b.cache.Cache != nil {
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
