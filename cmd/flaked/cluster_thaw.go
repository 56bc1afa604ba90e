package main

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/ops/view"
)

func clusterThaw(c *cli.Context) error {
	return withStore(c, func(ctx context.Context, st store.Store) error {
		cl, frozen, err := operator(st).Frozen(ctx)
		if err != nil {
			return err
		}
		if err := confirmThaw(ctx, c, st, cl, frozen); err != nil {
			return err
		}
		freed, err := coordinator.Thaw(ctx, st, cl)
		if err != nil {
			return err
		}
		fmt.Fprintln(c.App.Writer, thawed(c.String("cluster"), cl, time.Now()))
		if freed > 0 {
			fmt.Fprintf(c.App.Writer, "freed %d workers whose records were lost\n", freed)
		}
		return nil
	})
}

// confirmThaw asks for confirmation if there is a freeze to end or a lost worker to free.
func confirmThaw(ctx context.Context, c *cli.Context, st store.Store, cl coordinator.Cluster, frozen bool) error {
	entries, err := coordinator.ReadSlots(ctx, st, cl)
	if err != nil {
		return err
	}
	lost := 0
	for _, e := range entries {
		if e.Absent || e.Slot.Lost {
			lost++
		}
	}
	if !frozen && lost == 0 {
		return nil
	}
	name := c.String("cluster")
	missing := ""
	if lost > 0 {
		missing = fmt.Sprintf(" (%d of them have no record)", lost)
	}
	return confirm(c, fmt.Sprintf("all workers of cluster %s become available to new nodes%s. If a holder of one of them still runs while disconnected, or is ever started with its state directory, IDs will be issued twice",
		name, missing), fmt.Sprintf("no lost holder of cluster %s is left", name))
}

func thawed(name string, before coordinator.Cluster, now time.Time) string {
	until := view.Instant(before.FrozenUntil, now)
	switch {
	case before.FrozenUntil == 0:
		return fmt.Sprintf("cluster %s was not frozen", name)
	case before.FrozenUntil <= now.UnixMilli():
		return fmt.Sprintf("the freeze of cluster %s had ended by itself: %s", name, until)
	}
	return fmt.Sprintf("ended the freeze of cluster %s: its workers were reserved for their holders until %s", name, until)
}
