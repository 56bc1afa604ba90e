package node

import (
	"context"
	"time"

	"github.com/flaked/flaked/timeguard"
)

// extendLoop keeps the reserved bound ahead of the clock, on the local disk,
// until the context ends. It also publishes a tenure that waits for its floor:
// the keeper may be waiting for ZooKeeper then.
func (n *Node) extendLoop(ctx context.Context) {
	timer := time.NewTimer(n.cfg.extendEvery())
	defer timer.Stop()
	last := n.mono()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.poke:
		case <-timer.C:
		}
		now := n.mono()
		n.extend(time.Duration(now - last))
		last = now
		n.publish()
		timer.Reset(min(n.cfg.extendEvery(), n.untilFloor()))
	}
}

// untilFloor is how long the clock takes to the floor that is waited for.
func (n *Node) untilFloor() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.phase != Waiting || n.held == nil {
		return time.Hour
	}
	return max(ms(n.held.lo-n.now()), time.Millisecond)
}

// extend raises the reserved bound M, makes it durable, and only then lets the
// generator use it. elapsed is added to the time served.
func (n *Node) extend(elapsed time.Duration) {
	n.saveMu.Lock()
	defer n.saveMu.Unlock()
	n.mu.Lock()
	t := n.held
	if t == nil || t.node != n.claim.Node || t.worker != n.claim.Worker || !n.claim.Settled || n.clockWrong || n.phase == Stopping {
		n.mu.Unlock()
		return
	}
	if n.serving.Load() != nil {
		n.served += elapsed
	}
	rec := n.record(n.claim)
	rec.M = timeguard.NextReserved(n.m, n.now(), n.claim.H, n.cfg.Reserve)
	n.mu.Unlock()

	gen, err := n.cfg.Cache.Save(rec)

	n.mu.Lock()
	defer n.mu.Unlock()
	if (err != nil) != (n.diskErr != nil) {
		if err != nil {
			n.log.Error("the state directory cannot be written: serving what is reserved, then refusing", "error", err, "left", ms(n.m-n.now()).String())
		} else {
			n.log.Info("the state directory can be written again")
		}
	}
	n.diskErr = err
	if err != nil {
		return
	}
	n.generation = gen
	n.m = rec.M
	n.applyBounds()
	if t := n.held; t != nil {
		n.behindOnce(n.behind(t))
	}
}

// applyBounds lets the generator use what both bounds allow: whole ticks below
// the lower of them. mu is held.
func (n *Node) applyBounds() {
	if n.held != nil {
		n.held.gen.Extend(n.layout.FloorTick(min(n.m, n.claim.H)))
	}
}

// behind is how far the clock is behind the last ID of a tenure.
func (n *Node) behind(t *tenure) time.Duration {
	return ms(n.layout.Start(t.gen.End()-1) - n.now())
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
