package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/zkstore"
)

// backing has the store and the state directories of this process's nodes.
type backing struct {
	store zkstore.Store
	// zookeeper identifies the ZooKeeper that store is in, "" for memory.
	zookeeper string
	// run keeps the store connected. It is nil for memory.
	run func(context.Context) error
	// reconnected and caches have one element for each node.
	reconnected []chan struct{}
	caches      []*localcache.Cache
	cleanup     func()
}

func (b *backing) close() {
	for _, cache := range b.caches {
		_ = cache.Close()
	}
	if b.cleanup != nil {
		b.cleanup()
	}
}

// open opens the state directories and the store.
func (o options) open(c *cli.Context, log hclog.Logger) (*backing, error) {
	if o.dev {
		return o.openDev(log)
	}
	zkCfg, err := zkConfig(c, log)
	if err != nil {
		return nil, err
	}
	zk, err := zkstore.NewZK(zkCfg)
	if err != nil {
		return nil, err
	}
	b := &backing{store: zk, zookeeper: zk.Identity()}
	if err := b.openCaches(o.stateDir, o.workers); err != nil {
		return nil, err
	}
	if !b.caches[0].TellsMachines() {
		log.Warn("this machine has neither /etc/machine-id nor a readable product UUID: never clone the volume of the state directory, because flaked could not tell a clone from it", "state_dir", o.stateDir)
	}
	for range o.workers {
		b.reconnected = append(b.reconnected, make(chan struct{}, 1))
	}
	b.run = func(ctx context.Context) error {
		var hinting sync.WaitGroup
		hinting.Go(func() { hintReconnects(ctx, zk, b.reconnected) })
		defer hinting.Wait()
		return zk.Run(ctx)
	}
	return b, nil
}

// stateDirs returns the state directories of so many nodes. The first is dir itself, so that
// the first worker stays when the number of workers changes.
func stateDirs(dir string, workers int) []string {
	dirs := []string{dir}
	for i := 2; i <= workers; i++ {
		dirs = append(dirs, filepath.Join(dir, fmt.Sprintf("worker-%d", i)))
	}
	return dirs
}

// openCaches opens the state directories of the nodes.
func (b *backing) openCaches(dir string, workers int) error {
	for _, at := range stateDirs(dir, workers) {
		cache, err := localcache.Open(at)
		if err != nil {
			b.close()
			return stateDirError(at, err)
		}
		b.caches = append(b.caches, cache)
	}
	return nil
}

// hintReconnects tells the nodes whenever the connection to ZooKeeper is back.
func hintReconnects(ctx context.Context, zk *zkstore.ZK, nodes []chan struct{}) {
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
		for _, hint := range nodes {
			select {
			case hint <- struct{}{}:
			default:
			}
		}
	}
}

// openDev opens a store in memory and state directories that close removes.
func (o options) openDev(log hclog.Logger) (*backing, error) {
	dir, err := os.MkdirTemp("", "flaked-dev-")
	if err != nil {
		return nil, err
	}
	b := &backing{cleanup: func() { _ = os.RemoveAll(dir) }, reconnected: make([]chan struct{}, o.workers)}
	if err := b.openCaches(dir, o.workers); err != nil {
		return nil, err
	}
	log.Warn("DEVELOPMENT ONLY: no ZooKeeper, and the state is in memory only: another node, and this one after a restart, will issue the same IDs if the clock goes back")
	mem := zkstore.NewMem(func() int64 { return time.Now().UnixMilli() })
	b.store = mem.Session()
	return b, nil
}
