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
		n.turns.extend.Store(now)
		stored := n.extend(time.Duration(now - last))
		n.turns.extend.Store(n.mono()) // it may have taken long
		last = now
		n.publish()
		timer.Reset(n.untilExtend(stored))
	}
}

// retryDisk is how soon a disk that failed is tried again: each try less is so
// much sooner served again.
const retryDisk = 100 * time.Millisecond

// untilExtend is the time to the next extension, after one that was stored or
// was not.
func (n *Node) untilExtend(stored bool) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	every := n.cfg.extendEvery()
	switch {
	case n.disk.err != nil:
		return min(every, retryDisk)
	case stored && n.shortOfBound() > every:
		return 0 // storing it took long, or the clock leapt: it is due again
	case n.phase == Waiting && n.held != nil:
		return min(every, max(ms(n.held.lo-n.now()), time.Millisecond))
	}
	return every
}

// extend raises the reserved bound M, makes it durable, and only then lets the
// generator use it. elapsed is added to the time served. It tells whether a
// bound was stored.
func (n *Node) extend(elapsed time.Duration) (stored bool) { return n.push(elapsed, 0) }

// push is extend for a clock that is about to be so much further on.
func (n *Node) push(elapsed, ahead time.Duration) (stored bool) {
	n.saveMu.Lock()
	defer n.saveMu.Unlock()
	n.mu.Lock()
	t := n.held
	if t == nil || t.node != n.claim.Node || t.worker != n.claim.Worker || !n.claim.Settled || n.skew.wrong || n.phase == Stopping {
		n.mu.Unlock()
		return false
	}
	if n.serving.Load() != nil {
		n.served += elapsed
	}
	rec := n.record(n.claim)
	rec.Claim.M = timeguard.NextReserved(n.m, n.now()+ahead.Milliseconds(), n.claim.H, n.window())
	n.mu.Unlock()

	gen, err := n.save(rec)

	n.mu.Lock()
	defer n.mu.Unlock()
	if (err != nil) != (n.disk.err != nil) {
		if err != nil {
			n.log.Error("the state directory cannot be written: serving what is reserved, then refusing", "error", err, "left", ms(n.m-n.now()).String())
		} else {
			n.log.Info("the state directory can be written again")
		}
	}
	n.disk.err = err
	if err != nil {
		return false
	}
	n.generation = gen
	n.m = rec.Claim.M
	n.applyBounds()
	if t := n.held; t != nil {
		n.behindOnce(t.gen.Behind())
	}
	return true
}

// save writes the local record and notes how long that takes: every writer waits
// for the one before it, so a stall of any of them keeps the bound from being
// pushed. saveMu is held, mu is not.
func (n *Node) save(rec LocalRecord) (generation uint64, err error) {
	local, err := rec.Encode()
	if err != nil {
		return 0, err
	}
	n.mu.Lock()
	n.disk.saving, n.disk.since = true, n.mono()
	n.mu.Unlock()
	stall := time.AfterFunc(stallAfter+time.Millisecond, n.noteStall) // both loops may be waiting for the disk
	defer stall.Stop()
	generation, err = n.cfg.Cache.Save(local)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.disk.saving = false
	if n.disk.stallSaid {
		n.disk.stallSaid = false
		n.log.Info("the state directory has answered", "after", time.Duration(n.mono()-n.disk.since).Round(time.Millisecond).String())
	}
	return generation, err
}

// stallAfter is how long a write of the bound takes when it is the disk that is
// to blame for a bound that runs out, and no longer the process, which may have
// been stopped and has just come to write.
const stallAfter = time.Second

// stalled: the disk neither takes the bound nor refuses it. mu is held.
func (n *Node) stalled() bool {
	return n.disk.saving && time.Duration(n.mono()-n.disk.since) > stallAfter
}

func (n *Node) diskStalls() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stalled()
}

// noteStall logs a stalled disk, once.
func (n *Node) noteStall() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stalled() && !n.disk.stallSaid {
		n.disk.stallSaid = true
		n.log.Error("the state directory does not answer: serving what is reserved, then refusing", "left", ms(n.m-n.now()).String())
	}
}

// applyBounds lets the generator use what both bounds allow: whole ticks below
// the lower of them. mu is held.
func (n *Node) applyBounds() {
	if n.held != nil {
		n.held.gen.Extend(n.layout.FloorTick(min(n.m, n.claim.H)))
	}
}

// window is how far ahead of the clock the reserved bound is kept: beyond what
// may be borrowed. mu is held.
func (n *Node) window() time.Duration { return n.cfg.Reserve + n.borrow }

// shortOfBound is by how much the reserved bound is short of what it could be.
// mu is held.
func (n *Node) shortOfBound() time.Duration {
	return ms(min(n.now()+n.window().Milliseconds(), n.claim.H) - n.m)
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
