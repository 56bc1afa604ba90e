package node

import "github.com/flaked/flaked/coordinator"

// Fits returns why a node of this configuration cannot join a cluster, nil if it can. It reads
// only Settings, Heartbeat, Reserve and InMemory, and fills in no defaults.
func (cfg Config) Fits(cl coordinator.Cluster) error {
	_, err := (&Node{cfg: cfg}).fits(cl)
	return err
}
