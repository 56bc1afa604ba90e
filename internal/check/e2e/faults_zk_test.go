package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
)

// zkKinds returns the kinds of faults of ZooKeeper. No node may refuse because of any of them.
// Their run must be called on the test's goroutine, because zktest may end the test.
func zkKinds() []*kind {
	all := []int{0, 1, 2}
	// outage is a kind that takes some servers away for up to most and brings them back.
	outage := func(name string, most time.Duration, away, back func(*campaign, int), which func(*campaign) []int) *kind {
		return &kind{name: name, serves: true, least: time.Second, run: func(x *attack) error {
			d, servers := x.between(time.Second, most), which(x.c)
			x.begin("%v for %s", servers, d)
			for _, i := range servers {
				away(x.c, i)
			}
			x.hold(d)
			for _, i := range servers {
				back(x.c, i)
			}
			x.c.zk.WaitServing(x.c.t)
			return nil
		}}
	}
	kill, start := func(c *campaign, i int) { c.zk.Kill(i) }, func(c *campaign, i int) { c.zk.Start(i) }
	freeze, thaw := func(c *campaign, i int) { c.zk.Freeze(i) }, func(c *campaign, i int) { c.zk.Thaw(i) }
	leader := func(c *campaign) []int { return []int{c.zk.Leader(c.t)} }
	two := func(c *campaign) []int { l := c.zk.Leader(c.t); return []int{l, (l + 1) % 3} }
	three := func(*campaign) []int { return all }
	follower := func(c *campaign) []int { return []int{(c.zk.Leader(c.t) + 1) % 3} }

	return []*kind{
		outage("leader killed", 10*time.Second, kill, start, leader),
		outage("a follower killed", 10*time.Second, kill, start, follower),
		outage("quorum lost", 20*time.Second, kill, start, two),
		outage("all servers killed", 20*time.Second, kill, start, three),
		outage("leader frozen", 10*time.Second, freeze, thaw, leader),
		outage("all servers frozen", 20*time.Second, freeze, thaw, three),
		{name: "restarted one by one", serves: true, least: 5 * time.Second, run: func(x *attack) error {
			x.begin("")
			for i := range 3 {
				x.c.zk.Stop(i)
				x.c.zk.Start(i)
				x.c.zk.WaitServing(x.c.t)
			}
			return nil
		}},
		{name: "wiped", serves: true, least: 5 * time.Second, run: func(x *attack) error {
			x.begin("")
			x.c.zk.Wipe(x.c.t)
			return x.c.noticed(x.ctx)
		}},
		{name: "old data restored", serves: true, least: 5 * time.Second, run: func(x *attack) error {
			x.begin("of %s ago", time.Duration(x.c.now()-x.c.copiedAt).Round(time.Second))
			x.c.zk.Restore(x.c.t, x.c.copied)
			return x.c.noticed(x.ctx)
		}},
		{name: "a copy taken, all servers restarted for it", serves: true, least: 5 * time.Second, run: func(x *attack) error {
			x.begin("")
			x.c.copiedAt = x.c.now()
			x.c.copied = x.c.zk.Snapshot(x.c.t)
			return nil
		}},
		{name: "a slot deleted", serves: true, least: time.Second, run: func(x *attack) error {
			m := x.c.machines[x.rng.IntN(len(x.c.machines))]
			number, err := m.holds()
			if err != nil {
				return nil // the node has no worker at present
			}
			x.begin("worker %d, of %s", number, m.name)
			return x.c.withZooKeeper(func(ctx context.Context, zk *store.ZK) error {
				err := zk.Delete(ctx, fmt.Sprintf("/workers/%04d", number), store.AnyVersion)
				if errors.Is(err, store.ErrNoNode) {
					return nil
				}
				return err
			})
		}},
	}
}

// loses reports whether the kind makes ZooKeeper lose data. No fault of a node may begin during
// such a fault, because flaked guarantees nothing if no live holder can notice a loss.
func (k *kind) loses() bool {
	return k.name == "wiped" || strings.HasPrefix(k.name, "old data") || k.name == "a slot deleted"
}

// noticed waits until ZooKeeper has a cluster record with a freeze, which shows that a holder
// has noticed the loss. After 30 s without one it records a finding. It always returns nil.
func (c *campaign) noticed(ctx context.Context) error {
	var last error
	ok := waits(context.WithoutCancel(ctx), 30*time.Second, func() bool {
		last = c.withZooKeeper(func(ctx context.Context, zk *store.ZK) error {
			cl, err := coordinator.ReadCluster(ctx, zk)
			switch {
			case err != nil:
				return err
			case cl.FrozenUntil == 0:
				return errors.New("it is not frozen")
			}
			return nil
		})
		return last == nil
	})
	if !ok {
		c.violated("ZooKeeper", "30 s after it lost data no holder had put the cluster back: %v", last)
	}
	return nil
}

// withZooKeeper calls do with a connection of its own to ZooKeeper. All of it must end within
// 10 s.
func (c *campaign) withZooKeeper(do func(context.Context, *store.ZK) error) error {
	return c.withZooKeeperFor(10*time.Second, do)
}

func (c *campaign) withZooKeeperFor(limit time.Duration, do func(context.Context, *store.ZK) error) error {
	zk, err := store.NewZK(store.ZKConfig{Connect: c.zk.Addr(), Cluster: "default", SessionTimeout: 2 * time.Second, CallTimeout: 10 * time.Second})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- zk.Run(ctx) }()
	err = do(ctx, zk)
	_ = zk.Close()
	<-done
	return err
}
