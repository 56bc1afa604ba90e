package campaign

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

type deck struct {
	rng   *rand.Rand
	kinds []*kind
	left  []*kind
}

func (d *deck) deal() *kind {
	if len(d.left) == 0 {
		d.left = slices.Clone(d.kinds)
		d.rng.Shuffle(len(d.left), func(i, j int) { d.left[i], d.left[j] = d.left[j], d.left[i] })
	}
	k := d.left[0]
	d.left = d.left[1:]
	return k
}

// chosen returns the kinds that -chaos.only selects. It leaves out faults of disks if the
// machines have no disks of their own, those that take longer than the run, and in a soak losses of data.
func (c *campaign) chosen(kinds []*kind) []*kind {
	return slices.DeleteFunc(kinds, func(k *kind) bool {
		wanted := slices.ContainsFunc(strings.Split(*chaosOnly, ","),
			func(part string) bool { return strings.Contains(k.name, part) })
		return !wanted || k.least > *chaosFor || soaks() && k.loses() || strings.HasPrefix(k.name, "disk") && c.machines[0].Disk == nil
	})
}

// fits reports whether the remaining time suffices for a fault of the kind.
func fits(ctx context.Context, k *kind) bool {
	end, _ := ctx.Deadline()
	return time.Until(end) > k.least
}

// faultTrack makes one fault after the other on a machine until ctx ends. After each fault it waits
// until the node is well.
func (c *campaign) faultTrack(ctx context.Context, m *machine) {
	rng := rand.New(rand.NewPCG(*chaosSeed, uint64(m.ID)+1))
	d := &deck{rng: rng, kinds: c.chosen(nodeKinds(m.release))}
	if soaks() && m.ID == len(c.machines)-1 { // its process lives as long as the run
		d.kinds = slices.DeleteFunc(d.kinds, func(k *kind) bool { return !k.serves })
	}
	for len(d.kinds) > 0 && ctx.Err() == nil {
		c.turn(ctx, time.Duration(rng.IntN(2000))*time.Millisecond)
		k := d.deal()
		if !fits(ctx, k) {
			continue
		}
		c.calm.RLock()
		x := &attack{ctx: ctx, rng: rng, kind: k, m: m, c: c}
		c.calm.RUnlock()
		err := k.run(x)
		c.done(x, err)
		if x.fault == nil {
			continue
		}
		if !harness.Waits(c.t.Context(), healthyWithin(), c.serving(m, &x.fault.served)) {
			c.violated(m.Name, "does not serve %s after %s", healthyWithin(), k.name)
		}
		if harness.Waits(c.t.Context(), healthyWithin(), m.connected) {
			m.caughtUp()
		} else {
			c.violated(m.Name, "not well %s after %s", healthyWithin(), k.name)
		}
		c.set(&x.fault.well)
		if k.untilWell || k.fromDisk && c.away(x.fault.injected, x.fault.served) {
			c.set(&x.fault.leased)
		}
	}
}

// serving returns a function that reports whether the node has served for the last 300 ms. It
// stores in since when the node began to serve. The 300 ms are needed because a node may serve
// for a moment before it notices that its clock or its disk is bad.
func (c *campaign) serving(m *machine, since *int64) func() bool {
	var from int64
	return func() bool {
		if !m.serves() {
			from = 0
			return false
		}
		if from == 0 {
			from = c.now()
			c.set(since)
		}
		return c.now()-from > int64(300*time.Millisecond)
	}
}

func (c *campaign) done(x *attack, err error) {
	if err != nil {
		c.violated("campaign", "%s cannot be done: %v", x.kind.name, err)
	}
	if x.fault != nil {
		c.set(&x.fault.healed)
		c.note(x.fault.target(), "%s: over", x.kind.name)
	}
}

// zkFaultTrack makes one fault of ZooKeeper after the other until ctx ends. It must run on the test's
// goroutine, because zktest may end the test.
func (c *campaign) zkFaultTrack(ctx context.Context) {
	rng := rand.New(rand.NewPCG(*chaosSeed, 100))
	d := &deck{rng: rng, kinds: c.chosen(zkKinds())}
	for len(d.kinds) > 0 && ctx.Err() == nil {
		c.turn(ctx, time.Second+time.Duration(rng.IntN(5000))*time.Millisecond)
		k := d.deal()
		if !fits(ctx, k) {
			continue
		}
		x := &attack{ctx: ctx, rng: rng, kind: k, c: c}
		if k.loses() {
			harness.Waits(ctx, healthyWithin(), c.nobodyHeldUp)
			c.calm.Lock()
		}
		if !k.loses() || harness.Waits(ctx, 20*time.Second, c.witnessed) {
			c.done(x, k.run(x))
		}
		if k.loses() {
			c.calm.Unlock()
		}
		if x.fault != nil {
			c.set(&x.fault.served)
		}
		// All leases must be fresh before the next fault.
		var short []string
		ok := harness.Waits(ctx, healthyWithin(), func() bool {
			short = nil
			for _, m := range c.machines {
				if c.hasToServe(m.ID) && !c.leaseIsFresh(m) {
					short = append(short, m.Name)
				}
			}
			return short == nil
		})
		if !ok && ctx.Err() == nil {
			c.violated("ZooKeeper", "%s after %s leases have not been extended: %v", healthyWithin(), k.name, short)
		}
		if x.fault != nil {
			c.set(&x.fault.well)
		}
	}
}

// hasToServe reports whether the node has no fault now for which it may refuse, at once or when
// its bound has run down.
func (c *campaign) hasToServe(node int) bool {
	now := c.now()
	return !c.anyFault(func(f *fault) bool {
		// For a fault with a bound, impaired is the time at which the bound ends. A
		// node with such a fault is left out before that time too.
		return f.node == node && f.well == 0 && (f.impaired != 0 && f.impaired <= now || f.bound != 0)
	})
}

// away reports whether ZooKeeper had a fault at any time between from and to. A fault of
// ZooKeeper lasts until the nodes have fresh leases again.
func (c *campaign) away(from, to int64) bool {
	return c.anyFault(func(f *fault) bool { return f.node < 0 && f.touches(from, to) })
}

// nobodyHeldUp reports whether all faults of nodes that began before the end of the last freeze
// are over. A node with such a fault may wait for a worker. Without this
// wait, repeated losses of data could freeze registration for ever.
func (c *campaign) nobodyHeldUp() bool {
	var thawed int64 // the end of the last freeze
	c.anyFault(func(f *fault) bool {
		if f.kind.loses() {
			thawed = max(thawed, cmp.Or(f.well, c.now())+int64(frozenFor()))
		}
		return false
	})
	return !c.anyFault(func(f *fault) bool { return f.node >= 0 && f.well == 0 && f.injected <= thawed })
}

// frozen reports whether registration may have been frozen at any time between from and to.
func (c *campaign) frozen(from, to int64) bool {
	return c.anyFault(func(f *fault) bool {
		return f.kind.loses() && f.injected <= to && (f.well == 0 || f.well+int64(frozenFor()) >= from)
	})
}

// witnessed reports whether at least two nodes have no fault and have recovered from all earlier ones, so that they
// notice a loss of data.
func (c *campaign) witnessed() bool {
	well := 0
	for _, m := range c.machines {
		if !c.anyFault(func(f *fault) bool { return f.node == m.ID && f.well == 0 }) {
			well++
		}
	}
	return well >= 2
}

// leaseIsFresh is machine.freshLease for other goroutines than that of faultTrack.
func (c *campaign) leaseIsFresh(m *machine) bool {
	other := &machine{Node: m.Node, c: c, probe: &harness.Client{Node: m.Node, Timeout: clientTimeout}}
	defer other.probe.Close()
	return other.freshLease()
}
