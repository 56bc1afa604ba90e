package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/localcache"
)

// backing is what a node keeps its slot in.
type backing struct {
	store coordinator.Store
	// run keeps the store connected; nil where there is nothing to.
	run         func(context.Context) error
	reconnected <-chan struct{}
	cache       *localcache.Cache
	cleanup     func()
}

func (b *backing) close() {
	_ = b.cache.Close()
	if b.cleanup != nil {
		b.cleanup()
	}
}

// open opens the state directory and the store of the records.
func (o options) open(c *cli.Context, log hclog.Logger) (*backing, error) {
	if o.dev {
		return openDev(log)
	}
	zkCfg, err := zkConfig(c, log)
	if err != nil {
		return nil, err
	}
	zk, err := coordinator.NewZK(zkCfg)
	if err != nil {
		return nil, err
	}
	cache, err := localcache.Open(o.stateDir)
	if err != nil {
		return nil, fmt.Errorf("--state-dir %s: %w", o.stateDir, err)
	}
	hints := make(chan struct{}, 1)
	return &backing{
		store: zk, cache: cache, reconnected: hints,
		run: func(ctx context.Context) error {
			var hinting sync.WaitGroup
			hinting.Go(func() { hintReconnects(ctx, zk, hints) })
			defer hinting.Wait()
			return zk.Run(ctx)
		},
	}, nil
}

// hintReconnects tells the node whenever ZooKeeper has been reached again.
func hintReconnects(ctx context.Context, zk *coordinator.ZK, hints chan<- struct{}) {
	for {
		changed := zk.Changed()
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		if zk.Connected() {
			select {
			case hints <- struct{}{}:
			default:
			}
		}
	}
}

// openDev is a node without ZooKeeper, whose memory ends with it.
func openDev(log hclog.Logger) (*backing, error) {
	dir, err := os.MkdirTemp("", "flaked-dev-")
	if err != nil {
		return nil, err
	}
	cache, err := localcache.Open(dir)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	log.Warn("DEVELOPMENT ONLY: no ZooKeeper, no lasting state; another node, and this one after a restart, will issue the same IDs if the clock goes back")
	mem := coordinator.NewMem(func() int64 { return time.Now().UnixMilli() })
	return &backing{
		store: mem.Session(), cache: cache,
		cleanup: func() { _ = os.RemoveAll(dir) },
	}, nil
}
