package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/clusterview"
	"github.com/flaked/flaked/internal/seqstore"
	"github.com/flaked/flaked/internal/zkstore"
)

// guardTime is the longest time that a command waits for the nodes. Only tests change it.
var guardTime = 30 * time.Second

const guardText = `Before the next value jumps, and before a name is deleted or created, the command waits for
up to 30 s until the connected nodes have followed the last change of that name. If they do
not, nothing is changed. Nodes that are cut off from ZooKeeper may issue by what they knew
before, until the hold has passed.`

// errNotFollowed: nodes do not follow the changes of operators.
var errNotFollowed = errors.New("not all nodes have followed the last change")

// seqGuard has the guard of a seqstore.Operator.
type seqGuard struct {
	c   *cli.Context
	now func() int64 // Unix ms
}

// check blocks until all connected nodes have followed the last change of the sequence. It returns an error if they do
// not within guardTime.
func (g seqGuard) check(ctx context.Context, store zkstore.Store, after seqstore.Followed) error {
	last := coordinator.Change{At: coordinator.Followed(after), MadeMs: g.now()}
	behind, err := g.await(ctx, func() ([]string, error) { return g.behind(ctx, store, last) })
	if err == nil && len(behind) > 0 {
		err = exitWith(exitFailure, "%w within %s. Nothing was changed. Connected, but behind: %s. Look at the log there, or restart the node", errNotFollowed, guardTime, listed(behind))
	}
	return err
}

// behind returns the workers of connected nodes that have not followed a change.
func (g seqGuard) behind(ctx context.Context, store zkstore.Store, change coordinator.Change) (names []string, err error) {
	cl, err := coordinator.ReadCluster(ctx, store)
	if err != nil {
		return nil, err
	}
	slots, err := coordinator.ReadSlots(ctx, store, cl)
	for _, b := range coordinator.NotFollowed(slots, change, g.now()) {
		if b.Connected() {
			names = append(names, workerText(b.Entry))
		}
	}
	return names, err
}

// await calls look until it returns nobody, or guardTime has passed. ZooKeeper may fail meanwhile.
func (g seqGuard) await(ctx context.Context, look func() ([]string, error)) ([]string, error) {
	began := time.Now()
	for said := false; ; {
		behind, err := look()
		if err == nil && len(behind) == 0 || err != nil && !errors.Is(err, zkstore.ErrUnreachable) || time.Since(began) > guardTime {
			return behind, err
		}
		if !said && time.Since(began) > time.Second {
			said = true
			fmt.Fprintf(g.c.App.ErrWriter, "flaked: waiting up to %s until the nodes have followed\n", guardTime)
		}
		select {
		case <-ctx.Done():
			return behind, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// workerText names a worker and its node.
func workerText(e coordinator.Entry) string {
	return clusterview.Whom([]clusterview.WorkerReport{{Worker: e.Worker, Name: e.Slot.Name}})
}
