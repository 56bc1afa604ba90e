package doctor

import (
	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/dialog"
)

// runningNode returns what the node that uses the state directory says of itself in its record. It is zero if none
// does, or if its record does not show.
func runningNode(entries []coordinator.Entry, d stateDir) coordinator.Labels {
	if !d.look.Locked || !d.belongs() {
		return coordinator.Labels{}
	}
	for _, e := range entries {
		if e.Worker == d.record.Claim.Worker && !e.Missing && e.Slot.Node == d.record.Claim.Node {
			return e.Slot.Labels
		}
	}
	return coordinator.Labels{}
}

// asRunning returns the Config with what the running node says in place of doctor's own settings: in a container,
// doctor has the node's environment, and not its flags.
func (cfg Config) asRunning(own coordinator.Labels) Config {
	if own == (coordinator.Labels{}) {
		return cfg
	}
	cfg.Address = dialog.PeerAddress(own.Address)
	cfg.Fits = func(coordinator.Cluster) error { return nil } // it has joined
	return cfg
}
