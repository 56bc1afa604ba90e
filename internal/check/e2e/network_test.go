package e2e

import (
	"testing"

	"github.com/flaked/flaked/internal/testkit/faultnet"
)

func newNetwork(t testing.TB, target string) *faultnet.Link {
	t.Helper()
	l, err := faultnet.New(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// network inserts a link between the node and its ZooKeeper, which must be a single server, and
// returns the link. The node uses it from its next start on.
func (n *node) network() *faultnet.Link {
	n.site.t.Helper()
	server, chroot, _ := cutChroot(n.connect)
	l := newNetwork(n.site.t, server)
	n.connect = l.Addr() + chroot
	return l
}
