package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/internal/audit"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/node"
	"github.com/flaked/flaked/zkstore"
)

// drainEvery is how often a node that drains counts its connections.
const drainEvery = 50 * time.Millisecond

// recordDrainTime is how long a node that drains tries to write to the audit list.
const recordDrainTime = 2 * time.Second

// drain waits for a signal of `flaked drain`. The node then reports that it is not ready, accepts no
// more connections and serves the open ones. drain returns when none is open or limit has
// passed, and when ctx is done. The caller must then stop the node. signals has the signals of
// drainSignals. record writes to the cluster's audit list.
func drain(ctx context.Context, signals <-chan os.Signal, limit time.Duration, nodes *node.NodeGroup, server *lineproto.Server, record func(ctx context.Context, release bool), log hclog.Logger) {
	var release bool
	select {
	case <-ctx.Done():
		return
	case s := <-signals:
		release = s == releaseSignal
	}
	log.Info("draining: an operator asked for it", "conns_open", server.Counters().ConnsOpen, "limit_s", limit.Seconds(), "release_worker", release)
	nodes.Drain(release)
	server.CloseListeners()
	var recording sync.WaitGroup
	recording.Go(func() { record(ctx, release) })
	defer recording.Wait()
	end := time.NewTimer(limit)
	defer end.Stop()
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	for server.Counters().ConnsOpen > 0 {
		select {
		case <-ctx.Done():
			return
		case <-end.C:
			log.Info("draining took as long as --drain-time allows, closing the remaining connections", "conns_open", server.Counters().ConnsOpen)
			return
		case <-tick.C:
		}
	}
}

// recordDrain returns a function that writes to the cluster's audit list that this node drains. A
// signal does not say who sent it.
func (o options) recordDrain(store zkstore.Store, log hclog.Logger) func(context.Context, bool) {
	return func(ctx context.Context, release bool) {
		ctx, cancel := context.WithTimeout(ctx, recordDrainTime)
		defer cancel()
		e := audit.Entry{By: "a signal on " + o.node.Labels.Host, Command: "flaked drain", Outcome: audit.Done}
		if release {
			e.Command += " --release"
		}
		e.Command += " (node " + o.node.Labels.Name + ")"
		if _, err := audit.Add(ctx, store, e); err != nil {
			log.Warn("the cluster's audit list lacks this drain", "error", err)
		}
	}
}

// drainSignals returns a channel that gets the signals of `flaked drain`, and a function that ends
// that.
func drainSignals() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, drainSignal, releaseSignal)
	return c, func() { signal.Stop(c) }
}
