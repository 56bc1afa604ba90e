package main

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// flagName returns the flag that gives a setting.
func flagName(s node.Setting) string {
	if s == node.SettingAddress { // the addresses of all --listen, as others see them
		return "--listen"
	}
	return "--" + string(s)
}

// clusterFlags returns the flags that readClusterSettings reads.
func clusterFlags() []cli.Flag {
	return append([]cli.Flag{layoutFlag("leaf"), leaseFlag("24h"), confirmTimeFlag("12s")}, recordFlags()...)
}

// recordFlags returns the flags for those settings of a cluster that only its record in ZooKeeper has.
func recordFlags() []cli.Flag {
	return []cli.Flag{
		&cli.Int64Flag{Name: node.SettingDatacenter, DefaultText: "0",
			Usage: "the datacenter `NUMBER` in IDs, if the layout has the field"},
		&cli.StringFlag{Name: node.SettingOnRollback, DefaultText: timeguard.RollbackPolicy{}.String(),
			Usage: "`POLICY` when the clock goes back. leaf: wait up to 5ms, else refuse. refuse: refuse at once. " +
				"wait=TIME: wait up to TIME. coast=TIME: continue, up to TIME ahead of the clock. rollback-bits: count " +
				"it in the layout's rollback field"},
		&cli.DurationFlag{Name: node.SettingBorrow, DefaultText: "0s", Usage: "let a burst use timestamps up to this " +
			"far ahead of the clock. A restart after a crash waits this much longer"},
		&cli.StringFlag{Name: node.SettingSequenceStart, DefaultText: worker.StartRandom.String(),
			Usage: "the first sequence `VALUE` of a tick: random (below 1,024), zero, or carry-on (where the last one " +
				"ended)"},
		&cli.StringFlag{Name: node.SettingSegmentStart, DefaultText: worker.SegmentZero.String(),
			Usage: "the first `SEGMENT` of a tick, if the layout has the field: zero, or random (as in PearFlower)"},
	}
}

func leaseFlag(fallback string) cli.Flag {
	return &cli.DurationFlag{Name: node.SettingLease, DefaultText: fallback, Usage: "the longest lease: " +
		"for so long a node may serve without ZooKeeper, and its worker stays reserved after it disconnects"}
}

func confirmTimeFlag(fallback string) cli.Flag {
	return &cli.DurationFlag{Name: node.SettingConfirmTime, DefaultText: fallback,
		Usage: "how long a new node waits for a holder that ZooKeeper lost: two heartbeats and a reconnect"}
}

// layoutFlag returns --layout, which worker.ParseLayout parses.
func layoutFlag(fallback string) cli.Flag {
	return &cli.StringFlag{Name: node.SettingLayout, DefaultText: fallback, Usage: "how an ID's bits are divided: " +
		"a `NAME` (leaf, twitter, sonyflake, js53, ...), fields from the top, as " +
		"time=41@1ms,worker=10,sequence=12,epoch=2020-01-01, or both, as leaf,epoch=2020-01-01. See flaked layout"}
}

// readClusterSettings returns the settings that clusterFlags give, nil for each that no flag gives.
func readClusterSettings(c *cli.Context) (s node.Settings, err error) {
	s.Datacenter, s.Borrow = flagOrNil(c, node.SettingDatacenter, c.Int64), flagOrNil(c, node.SettingBorrow, c.Duration)
	s.Lease = flagOrNil(c, node.SettingLease, c.Duration)
	s.ConfirmTime = flagOrNil(c, node.SettingConfirmTime, c.Duration)
	err = node.Texts{
		Layout: flagOrNil(c, node.SettingLayout, c.String), OnRollback: flagOrNil(c, node.SettingOnRollback, c.String),
		SequenceStart: flagOrNil(c, node.SettingSequenceStart, c.String),
		SegmentStart:  flagOrNil(c, node.SettingSegmentStart, c.String),
	}.Read(&s)
	if err == nil && s.Layout != nil {
		if unusable := checkUsable(*s.Layout, time.Now()); unusable != nil {
			err = &node.ValueError{Setting: node.SettingLayout, Err: unusable}
		}
	}
	if err != nil {
		return s, usageError("%w", err)
	}
	return s, nil
}
