package flaked

import (
	"net"
	"net/netip"
	"strings"

	"github.com/flaked/flaked/internal/ops/access"
	"github.com/flaked/flaked/internal/ops/peer"
)

// peerAddress returns the first address at which other nodes reach this one, "" for none. A unix socket and 0.0.0.0 are
// none, and a loopback address is the last resort: it reaches nodes on this machine only.
func (c Config) peerAddress() (found string) {
	for addr := range strings.SplitSeq(c.Address, ",") {
		network, address, err := access.SplitAddr(addr)
		if err != nil || network != "tcp" {
			continue
		}
		host, _, _ := net.SplitHostPort(address)
		ip, _ := netip.ParseAddr(host) // the zero Addr for a name
		switch {
		case host == "" || ip.IsValid() && ip.IsUnspecified():
		case host != "localhost" && !ip.IsLoopback():
			return address
		case found == "":
			found = address
		}
	}
	return found
}

// peers returns the Caller of other nodes.
func (c Config) peers() *peer.Caller {
	return peer.New(func() (creds access.Client) {
		if c.PeerAccess != nil {
			creds.Token, creds.TLS = c.PeerAccess()
		}
		return creds
	})
}
