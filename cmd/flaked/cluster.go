package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/node"
	"github.com/flaked/flaked/worker"
)

func clusterCommand() *cli.Command {
	return &cli.Command{
		Name:  "cluster",
		Usage: "make a cluster, look at it, freeze registration",
		Subcommands: []*cli.Command{
			{
				Name:      "init",
				Usage:     "make the cluster's record in ZooKeeper",
				UsageText: "flaked cluster init --zk HOST:PORT [flags]",
				Description: `Makes a cluster, once: its layout and the rest of its settings stay as they are.
Where it exists already nothing is changed; if it differs from what the flags ask
for, that is an error. ` + "`flaked serve --bootstrap`" + ` does the same at a node's start.

Examples:
  flaked cluster init --zk zk1:2181,zk2:2181,zk3:2181
  flaked cluster init --zk zk1:2181/prod --cluster eu --layout twitter --datacenter 3`,
				Flags:  append(clusterFlags(), zkFlags("")...),
				Action: clusterInit,
			},
			{
				Name:      "show",
				Usage:     "print the cluster's record",
				UsageText: "flaked cluster show --zk HOST:PORT [flags]",
				Description: `Prints what all nodes of the cluster share. ` + "`flaked status`" + ` prints the nodes.

Examples:
  flaked cluster show --zk zk1:2181
  flaked cluster show -o json`,
				Flags:  append([]cli.Flag{outputFlag()}, zkFlags(localZK)...),
				Action: clusterShow,
			},
			{
				Name:      "freeze",
				Usage:     "keep new nodes off for a while, after ZooKeeper was restored",
				UsageText: "flaked cluster freeze --zk HOST:PORT [flags]",
				Description: `Keeps everybody off the workers, but those who hold them, for as long as an owner may
still live that ZooKeeper has forgotten: what nodes do by themselves when they notice
that ZooKeeper lost data. For when none of them was connected to notice: at once
after older data were put back, before new nodes come. Nodes that run go on, and
stopped ones may come back; new ones wait or exit. A freeze that lasts longer
already is left as it is. ` + "`flaked cluster thaw`" + ` ends it.

Examples:
  flaked cluster freeze --zk zk1:2181
  flaked cluster freeze --zk zk1:2181 --for 2h --up-to 63`,
				Flags: append([]cli.Flag{
					&cli.DurationFlag{Name: "for", Usage: "how long", DefaultText: "the longest lease and 10 s", EnvVars: env("for")},
					&cli.IntFlag{Name: "up-to", Usage: "freeze workers 0 to `NUMBER`: if it is known that none above was ever held", DefaultText: "all", EnvVars: env("up-to")},
					outputFlag(),
				}, zkFlags("")...),
				Action: clusterFreeze,
			},
			{
				Name:      "thaw",
				Usage:     "end a freeze of registration",
				UsageText: "flaked cluster thaw --zk HOST:PORT [flags]",
				Description: `When ZooKeeper has lost data its workers are kept for the owners that it may have
forgotten: no new node gets one of them until their leases must have ended. Ends
that early and frees the workers that were lost. Do it only if you know that no
owner is left that could come back, running cut off or stopped with its state: else
two nodes may issue the same IDs.

Example:
  flaked cluster thaw --zk zk1:2181`,
				Flags:  zkFlags(""),
				Action: clusterThaw,
			},
		},
	}
}

func clusterInit(c *cli.Context) error {
	settings, err := clusterSettings(c)
	if err != nil {
		return err
	}
	want, err := settings.Record(uuid.NewString(), coordinator.DefaultHeartbeat)
	if err != nil {
		return usageError("%w", err)
	}
	return withStore(c, func(ctx context.Context, store coordinator.Store) error {
		found, err := coordinator.CreateCluster(ctx, store, want)
		if err != nil {
			return err
		}
		name := c.String("cluster")
		if found.UUID == want.UUID {
			fmt.Fprintf(c.App.Writer, "cluster %s is made: %s\n", name, found.UUID)
		} else if err := settings.Agree(found); err != nil {
			return fmt.Errorf("cluster %s (%s) exists: %w", name, found.UUID, err)
		} else {
			fmt.Fprintf(c.App.Writer, "cluster %s exists already, and nothing was changed: %s\n", name, found.UUID)
		}
		return printFields(c.App.Writer, clusterRows(describeCluster(name, found, time.Now())))
	})
}

func clusterShow(c *cli.Context) error {
	format, err := outputFormat(c)
	if err != nil {
		return err
	}
	return withStore(c, func(ctx context.Context, store coordinator.Store) error {
		found, err := coordinator.ReadCluster(ctx, store)
		if err != nil {
			return err
		}
		report := describeCluster(c.String("cluster"), found, time.Now())
		if format == formatJSON {
			return printJSON(c.App.Writer, report)
		}
		return printFields(c.App.Writer, clusterRows(report))
	})
}

func clusterFreeze(c *cli.Context) error {
	format, err := outputFormat(c)
	if err != nil {
		return err
	}
	d := c.Duration("for")
	if c.IsSet("for") && d < time.Second {
		return usageError("--for %s: a second at least", d)
	}
	return withStore(c, func(ctx context.Context, store coordinator.Store) error {
		cl, err := coordinator.ReadCluster(ctx, store)
		if err != nil {
			return err
		}
		upTo := cl.Slots - 1
		if c.IsSet("up-to") {
			upTo = c.Int("up-to")
			if upTo < cl.Used || upTo >= cl.Slots {
				return usageError("--up-to %d: workers up to %d have been in use, and the layout has 0 to %d", upTo, cl.Used, cl.Slots-1)
			}
		}
		before, after, err := byHand(store).Freeze(ctx, upTo, d)
		if err != nil {
			return err
		}
		report := describeCluster(c.String("cluster"), after, time.Now())
		if format == formatJSON {
			return printJSON(c.App.Writer, report)
		}
		froze(c.App.Writer, report, before != after, d)
		return nil
	})
}

func froze(w io.Writer, r clusterReport, changed bool, asked time.Duration) {
	until := instant(r.FrozenUntilMs, time.Now())
	if !changed {
		fmt.Fprintf(w, "cluster %s is frozen for longer already, workers 0 to %d until %s; nothing was changed\n", r.Name, r.FrozenUsed, until)
		return
	}
	fmt.Fprintf(w, "froze registration in cluster %s: nobody gets one of workers 0 to %d until %s\n", r.Name, r.FrozenUsed, until)
	if longest := millis(r.LeaseMs); asked != 0 && asked < longest {
		fmt.Fprintf(w, "an owner that ZooKeeper has forgotten may live for longer than that, %s: without --for it is long enough\n", longest)
	}
}

func clusterThaw(c *cli.Context) error {
	return withStore(c, func(ctx context.Context, store coordinator.Store) error {
		before, freed, err := coordinator.Thaw(ctx, store)
		if err != nil {
			return err
		}
		thawed(c.App.Writer, c.String("cluster"), before, time.Now())
		if freed > 0 {
			fmt.Fprintf(c.App.Writer, "freed %d workers whose records were lost\n", freed)
		}
		return nil
	})
}

func thawed(w io.Writer, name string, before coordinator.Cluster, now time.Time) {
	switch {
	case before.FrozenUntil == 0:
		fmt.Fprintf(w, "cluster %s was not frozen; nothing was changed\n", name)
	case before.FrozenUntil <= now.UnixMilli():
		fmt.Fprintf(w, "the freeze of cluster %s had ended by itself: %s\n", name, instant(before.FrozenUntil, now))
	default:
		fmt.Fprintf(w, "ended the freeze of cluster %s: workers 0 to %d were kept for their owners until %s\n",
			name, before.FrozenUsed, instant(before.FrozenUntil, now))
	}
}

// clusterReport is a cluster in the JSON of `cluster show` and of `status`.
// Instants are Unix milliseconds.
type clusterReport struct {
	Name       string `json:"name"`
	UUID       string `json:"uuid"`
	Layout     string `json:"layout"`
	Slots      int    `json:"slots"`
	Datacenter int64  `json:"datacenter"`
	LeaseMs    int64  `json:"lease_ms"`
	SettleMs   int64  `json:"settle_ms"`
	OnRollback string `json:"on_rollback"`
	BorrowMs   int64  `json:"borrow_ms"`
	// Settled: a node has served in it.
	Settled bool `json:"settled"`
	// Frozen: no worker up to FrozenUsed is handed out until FrozenUntilMs,
	// which is 0 when there is no freeze.
	Frozen        bool  `json:"frozen"`
	FrozenUntilMs int64 `json:"frozen_until_ms"`
	FrozenUsed    int   `json:"frozen_used"`
	// FrozenBy is who froze it by hand; empty where ZooKeeper lost data.
	FrozenBy string `json:"frozen_by"`
	// IDsEndMs is when the time field of the layout runs over; 0 for a layout
	// that this release cannot read.
	IDsEndMs int64 `json:"ids_end_ms"`
}

func describeCluster(name string, cl coordinator.Cluster, now time.Time) clusterReport {
	r := clusterReport{
		Name: name, UUID: cl.UUID, Layout: cl.Layout, Slots: cl.Slots, Datacenter: cl.Datacenter,
		LeaseMs: cl.LeaseMs, SettleMs: cl.SettleMs, Settled: cl.Settled, OnRollback: node.OnRollback(cl), BorrowMs: cl.BorrowMs,
	}
	if now.UnixMilli() < cl.FrozenUntil {
		r.Frozen, r.FrozenUntilMs, r.FrozenUsed, r.FrozenBy = true, cl.FrozenUntil, cl.FrozenUsed, cl.FrozenBy
	}
	if layout, err := worker.ParseLayout(cl.Layout); err == nil {
		r.IDsEndMs = layout.Expires().UnixMilli()
	}
	return r
}

// frozenWhy says why registration is frozen.
func (r clusterReport) frozenWhy() string {
	if r.FrozenBy != "" {
		return "by " + clean(r.FrozenBy)
	}
	return "as ZooKeeper lost data"
}

func clusterRows(r clusterReport) [][2]string {
	rows := [][2]string{
		{"cluster", r.Name},
		{"uuid", clean(r.UUID)},
		{"layout", clean(r.Layout)},
		{"workers", strconv.Itoa(r.Slots)},
		{"datacenter", strconv.FormatInt(r.Datacenter, 10)},
		{"lease", millis(r.LeaseMs).String()},
		{"settling time", millis(r.SettleMs).String()},
		{"on a rollback", clean(r.OnRollback)},
	}
	if r.BorrowMs > 0 {
		rows = append(rows, [2]string{"borrows", "up to " + millis(r.BorrowMs).String()})
	}
	if r.IDsEndMs != 0 {
		rows = append(rows, [2]string{"IDs end", time.UnixMilli(r.IDsEndMs).UTC().Format(time.DateOnly)})
	}
	if r.Frozen {
		rows = append(rows, [2]string{"frozen until", fmt.Sprintf("%s, workers 0 to %d, %s (see flaked cluster thaw --help)",
			time.UnixMilli(r.FrozenUntilMs).UTC().Format(time.RFC3339), r.FrozenUsed, r.frozenWhy())})
	}
	return rows
}
