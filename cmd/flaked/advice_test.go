package main

import (
	"cmp"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
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
	random := worker.SegmentRandom
	_, noSegment := node.Settings{SegmentStart: &random}.Record("u", time.Second)
	lease := time.Hour
	cl, err := node.Settings{}.Record("u", 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	fits := func(cfg node.Config) error {
		cfg.Heartbeat, cfg.Reserve = cmp.Or(cfg.Heartbeat, time.Second), time.Second
		return cfg.Fits(cl)
	}
	leaf := worker.Leaf().String()
	for _, row := range []struct {
		name string
		err  error
		text string
	}{
		{"not known", errors.New("boom"), "boom"},
		{"another setting, within a sentence", usageError("cluster c exists: %w. See `x --help`",
			fits(node.Config{Settings: node.Settings{Lease: &lease}})),
			"cluster c exists: --lease 1h0m0s differs from the cluster's 24h0m0s. A cluster keeps the settings that " +
				"it was created with. Leave the flag out, or give another --cluster. See `x --help`"},
		{"a slow heartbeat", fits(node.Config{Heartbeat: 10 * time.Second}),
			"the heartbeat interval 10s is too long for the confirming time 12s: a holder needs up to 10s (one " +
				"heartbeat) + 10s (a reconnect and a report) = 20s to notice that ZooKeeper lost data, which is more " +
				"than the confirming time, 12s. Give --heartbeat 6s or less"},
		{"no segment", noSegment, "--segment-start random needs a layout with a segment field, but " + leaf +
			" has none. Leave it out"},
		{"no rollback field", noField, "--on-rollback rollback-bits needs a layout with a rollback field, but " +
			leaf + " has none. Give a layout that has one, such as --layout leaf,time=40,rollback=1"},
		{"a part of a millisecond", tooLittle,
			"borrow 500µs must be a whole number of milliseconds. Correct --borrow"},
		{"the cluster created anew", &coordinator.OtherClusterError{Found: "a", Ours: "b"},
			"this ZooKeeper holds cluster a, but this node belongs to cluster b. Correct --zk, if it is another " +
				"ZooKeeper. Otherwise the cluster was created anew: read docs/troubleshooting.md before you empty " +
				"--state-dir"},
		{"another ZooKeeper", &node.OtherZooKeeperError{State: "a", Given: "b"},
			"the state directory was last used with ZooKeeper a, but ZooKeeper b has no record of its worker. Point " +
				"--zk at the first one. If that one is gone for good and this one replaces it, start once with " +
				"--zk-replaced"},
		{"frozen", fmt.Errorf("starting: %w", &coordinator.FrozenError{Until: 1_700_000_000_000}),
			"starting: registration is frozen until 2023-11-14T22:13:20Z because ZooKeeper lost data: earlier " +
				"holders of workers may come back. Start the missing nodes " +
				"again with their state directories, and wait. Ending the freeze early can repeat IDs: see flaked " +
				"cluster thaw --help"},
		{"said already", exitWith(exitUnreachable, "%w. Start one", store.ErrUnreachable),
			"ZooKeeper cannot be reached. Start one"},
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
