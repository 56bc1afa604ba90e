package campaign

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"context"
	"errors"
	"strings"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// zkKinds returns the kinds of faults of ZooKeeper. No node may refuse because of any of them.
// Their run must be called on the test's goroutine, because zktest may end the test.
func zkKinds() []*kind { return append(outages(), dataKinds()...) }

// outages are kinds that take some servers away for a time and bring them back.
func outages() []*kind {
	outage := func(name string, most time.Duration, away, back func(*zktest.Ensemble, int), which ...int) *kind {
		return &kind{name: name, serves: true, least: time.Second, run: func(x *attack) error {
			d, leader := x.between(time.Second, most), x.c.zk.Leader(x.c.t)
			x.begin("for %s, the leader is %d", d, leader)
			for _, i := range which {
				away(x.c.zk, (leader+i)%3)
			}
			x.hold(d)
			for _, i := range which {
				back(x.c.zk, (leader+i)%3)
			}
			x.c.zk.WaitServing(x.c.t)
			return nil
		}}
	}
	kill, start := (*zktest.Ensemble).Kill, (*zktest.Ensemble).Start
	freeze, thaw := (*zktest.Ensemble).Freeze, (*zktest.Ensemble).Thaw
	return []*kind{ // the numbers are places after the leader
		outage("leader killed", 10*time.Second, kill, start, 0),
		outage("a follower killed", 10*time.Second, kill, start, 1),
		outage("quorum lost", 20*time.Second, kill, start, 0, 1),
		outage("all servers killed", 20*time.Second, kill, start, 0, 1, 2),
		outage("leader frozen", 10*time.Second, freeze, thaw, 0),
		outage("all servers frozen", 20*time.Second, freeze, thaw, 0, 1, 2),
		{name: "restarted one by one", serves: true, least: 5 * time.Second, run: func(x *attack) error {
			x.begin("")
			for i := range 3 {
				x.c.zk.Stop(i)
				x.c.zk.Start(i)
				x.c.zk.WaitServing(x.c.t)
			}
			return nil
		}},
	}
}

// dataKinds are kinds that lose data, and one that takes the copy for them.
func dataKinds() []*kind {
	return []*kind{
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
		{name: "a copy taken, all servers restarted for it", serves: true, least: 5 * time.Second,
			run: func(x *attack) error {
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
			x.begin("worker %d, of %s", number, m.Name)
			return x.c.withZooKeeper(func(ctx context.Context, zk *store.ZK) error {
				err := zk.Delete(ctx, harness.SlotPath(number), store.AnyVersion)
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
	ok := harness.Waits(context.WithoutCancel(ctx), 30*time.Second, func() bool {
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
	zk, stop, err := harness.Connect(c.zk.Addr(), c.auth, 10*time.Second)
	if err != nil {
		return err
	}
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return do(ctx, zk)
}
