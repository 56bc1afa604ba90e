package flaked

import (
	"github.com/flaked/flaked/internal/ops/access"
	"github.com/flaked/flaked/internal/ops/peer"
)

// peers returns the Caller of other nodes.
func (c Config) peers() *peer.Caller {
	return peer.New(func() (creds access.Client) {
		if c.PeerAccess != nil {
			creds.Token, creds.TLS = c.PeerAccess()
		}
		return creds
	})
}
