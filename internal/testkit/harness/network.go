//go:build unix

package harness

import (
	"os"
	"path/filepath"
	"strings"
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

// links are the links of a node to the servers of ZooKeeper.
type links []*faultnet.Link

func (ls links) Each(do func(*faultnet.Link)) {
	for _, l := range ls {
		do(l)
	}
}

func (ls links) Cut() { ls.Each((*faultnet.Link).Cut) }

// Heal lets the links carry everything at once.
func (ls links) Heal() {
	ls.Each(func(l *faultnet.Link) { l.Delay(0, 0) })
	ls.Each((*faultnet.Link).Heal)
}

// Network inserts a link between the node and each server of its ZooKeeper. The node uses them from its next start
// on.
func (n *Node) Network() links {
	n.Site.T.Helper()
	servers, chroot := cutChroot(n.connect)
	var addrs []string
	for server := range strings.SplitSeq(servers, ",") {
		l := newNetwork(n.Site.T, server)
		n.Links, addrs = append(n.Links, l), append(addrs, l.Addr())
	}
	n.connect = strings.Join(addrs, ",") + chroot
	return n.Links
}

// cutChroot splits a connect string.
func cutChroot(connect string) (servers, chroot string) {
	if i := strings.IndexByte(connect, '/'); i >= 0 {
		return connect[:i], connect[i:]
	}
	return connect, ""
}

// Heartbeats waits until the node's heartbeats reach ZooKeeper, or until they fail if reach is
// false.
func (n *Node) Heartbeats(reach bool) {
	n.Site.T.Helper()
	want := map[bool]string{true: "true", false: "false"}[reach]
	n.Until("zookeeper_ok "+want, func() bool { return n.Stat("zookeeper_ok") == want })
}

// OnSocket makes the node serve clients on a Unix socket, which never uses TLS and whose address is known before
// the node starts.
func (n *Node) OnSocket() *Node {
	dir, err := os.MkdirTemp("", "e2e") // short: socket paths have about 100 bytes
	if err != nil {
		n.Site.T.Fatal(err)
	}
	n.Site.T.Cleanup(func() { os.RemoveAll(dir) })
	n.Listen = "unix:" + filepath.Join(dir, "s")
	return n
}
