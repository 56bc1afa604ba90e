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

// cutChroot splits a connect string.
func cutChroot(connect string) (servers, chroot string, found bool) {
	for i := range connect {
		if connect[i] == '/' {
			return connect[:i], connect[i:], true
		}
	}
	return connect, "", false
}

// heartbeats waits until the node's heartbeats reach ZooKeeper, or until they fail if reach is
// false.
func (n *node) heartbeats(reach bool) {
	n.site.t.Helper()
	want := map[bool]string{true: "true", false: "false"}[reach]
	n.until("zookeeper_ok "+want, func() bool { return n.stat("zookeeper_ok") == want })
}
