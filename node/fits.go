package node

import "github.com/flaked/flaked/coordinator"

// Fits tells why a node of these settings cannot live in a cluster. All of the
// configuration that it looks at is Settings, Heartbeat, Reserve and
// SegmentStart.
func (cfg Config) Fits(cl coordinator.Cluster) error {
	_, err := (&Node{cfg: cfg}).fits(cl)
	return err
}
