package main

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/node"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
	"github.com/flaked/flaked/zkstore"
)

// Packages name no flags. advised adds advice to their errors, even if another error wraps them.
func TestAdvised(t *testing.T) {
	borrow := 500 * time.Microsecond
	_, tooLittle := node.Settings{Borrow: &borrow}.Record("u", time.Second)
	counts, err := timeguard.ParseRollbackPolicy("rollback-bits")
	if err != nil {
		t.Fatal(err)
	}
	_, noField := node.Settings{OnRollback: &counts}.Record("u", time.Second)
	lease := time.Hour
	cl, err := node.Settings{}.Record("u", 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	fits := func(cfg node.Config) error {
		if cfg.Heartbeat == 0 {
			cfg.Heartbeat = time.Second
		}
		if cfg.Reserve == 0 {
			cfg.Reserve = time.Second
		}
		return cfg.Fits(cl)
	}
	leaf := worker.Leaf().String()
	for _, row := range []struct {
		name string
		err  error
		text string
	}{
		{"not known", errors.New("node: boom"), "boom"},
		{"another setting, within a sentence", usageError("cluster c exists: %w (see x)", fits(node.Config{Settings: node.Settings{Lease: &lease}})),
			"cluster c exists: --lease 1h0m0s was asked for, where the cluster has 24h0m0s: a cluster keeps the settings it was made with; leave the flag out, or take another --cluster (see x)"},
		{"a slow heartbeat", fits(node.Config{Heartbeat: 10 * time.Second}),
			"a heartbeat every 10s is too slow for a cluster that settles in 12s: an owner needs up to 10s (one heartbeat) + 10s (a reconnect and a report) = 20s to notice that ZooKeeper lost data, which is more than the settling time, 12s; give --heartbeat 6s or less"},
		{"no segment", fits(node.Config{SegmentStart: worker.SegmentRandom}), "--segment-start random is for layouts with a segment field, and " + leaf + " has none: leave it out"},
		{"no rollback field", noField, "--on-rollback rollback-bits is for layouts with a rollback field, and " + leaf + " has none: take one with it, as --layout leaf,time=40,rollback=1"},
		{"a part of a millisecond", tooLittle, "borrowing 500µs is not a whole number of milliseconds; correct --borrow"},
		{"another cluster", &node.OtherClusterError{Ours: "a", Found: "b"}, "the state directory belongs to cluster a, and this is b: give this cluster a --state-dir of its own, or point --zk and --cluster at the one it belongs to"},
		{"another ZooKeeper", &node.OtherZooKeeperError{State: "a", Given: "b"}, "the state directory was last used with ZooKeeper a, and b does not have the record of its worker: point --zk at the first one; or, if that one is gone for good and this one has taken its place, start once with --zk-replaced"},
		{"frozen", fmt.Errorf("node: %w", &coordinator.FrozenError{Until: 1_700_000_000_000}),
			"ZooKeeper lost data, so registration is frozen until 2023-11-14T22:13:20Z, while owners of the slots come back; `flaked cluster thaw` ends it early if you know that none are left"},
		{"frozen by hand", &coordinator.FrozenError{Until: 1_700_000_000_000, By: "me"},
			"registration is frozen until 2023-11-14T22:13:20Z, by me: wait, or have them say whether `flaked cluster thaw` may end it early"},
		{"said already", exitWith(exitUnreachable, "%w: start one", zkstore.ErrUnreachable), "ZooKeeper cannot be reached: start one"},
	} {
		if row.err == nil {
			t.Errorf("%s: no error", row.name)
			continue
		}
		if text := plain(advised(row.err)); text != row.text {
			t.Errorf("%s:\n%s\nwant\n%s", row.name, text, row.text)
		}
	}
}
