package main

import (
	"context"
	"time"

	"github.com/flaked/flaked/lineproto"
)

// leaveTime is how long a node that stops may take to give its ordered sequences to other nodes.
const leaveTime = time.Second

// giveSequencesAway gives the ordered sequences of the node to other nodes, while it still answers those that ask it.
func (p *process) giveSequencesAway() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	p.node.Leave(ctx)
}

// drainEvery is how often a node that drains counts its connections.
const drainEvery = 50 * time.Millisecond

// drain waits for a signal of `flaked drain`: see drain.go. The node then reports that it is not ready, accepts no
// more connections and serves the open ones. drain returns when none is open or --drain-time has
// passed, and when ctx is done. The caller must then stop the node.
func (p *process) drain(ctx context.Context, server *lineproto.Server) {
	var release bool
	select {
	case <-ctx.Done():
		return
	case s := <-p.drains:
		release = s == releaseSignal
	}
	if release && p.node.Core().Snapshot().FrozenUntilMs != nil {
		release = false
		p.log.Warn("registration is frozen, so no other node can acquire the worker: keeping it")
	}
	p.log.Info("draining: an operator asked for it", "conns_open", server.Counters().ConnsOpen, "limit_s",
		p.drainTime.Seconds(), "release_worker", release)
	p.node.Drain(release)
	server.CloseListeners()
	end := time.NewTimer(p.drainTime)
	defer end.Stop()
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	for server.Counters().ConnsOpen > 0 {
		select {
		case <-ctx.Done():
			return
		case <-end.C:
			p.log.Info("draining took as long as --drain-time allows, closing the remaining connections",
				"conns_open", server.Counters().ConnsOpen)
			return
		case <-tick.C:
		}
	}
}
