package doctor

import (
	"errors"
	"testing"

	"github.com/flaked/flaked/coordinator"
)

// What the node says that runs on the state directory counts, and doctor's own settings only without one.
func TestDoctorGoesByTheRunningNode(t *testing.T) {
	says := coordinator.Labels{Name: "ids-1", Address: "10.0.0.7:7609", Admin: "10.0.0.7:7610"}
	entry := func(worker int, node string) []coordinator.Entry {
		return []coordinator.Entry{{Worker: 1}, {Worker: worker, Slot: coordinator.Slot{Node: node, Labels: says}}}
	}
	runs := holds(func(d *stateDir) { d.look.Locked, d.record.Claim.Node = true, "me" })
	for name, c := range map[string]struct {
		entries []coordinator.Entry
		dir     stateDir
		found   bool
	}{
		"it runs":           {entry(7, "me"), runs, true},
		"none runs":         {entry(7, "me"), holds(func(d *stateDir) { d.record.Claim.Node = "me" }), false},
		"another holder":    {entry(7, "other"), runs, false},
		"another worker":    {entry(8, "me"), runs, false},
		"the record is new": {nil, runs, false},
	} {
		own := runningNode(c.entries, c.dir)
		if (own == says) != c.found {
			t.Errorf("%s: %+v", name, own)
		}
		flags := Config{Address: "127.0.0.1:7609", Listen: [][2]string{{"tcp", "127.0.0.1:0"}},
			Refuses: func(string) error { return nil },
			Fits:    func(coordinator.Cluster) error { return errors.New("differs") }}
		cfg := flags.asRunning(own)
		want, ports, level := "127.0.0.1:7609", "is free", Warn
		if c.found {
			want, ports, level = "10.0.0.7:7609", "serves 10.0.0.7:7609, and its admin port is 10.0.0.7:7610", OK
		}
		if cfg.Address != want || (cfg.Fits(coordinator.Cluster{}) == nil) != c.found {
			t.Errorf("%s: it goes by %s", name, cfg.Address)
		}
		checkPorts(flags, true, own)[0].wants(t, name, level, ports)
	}
}
