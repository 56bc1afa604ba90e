package e2e

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

func (ls links) each(do func(*faultnet.Link)) {
	for _, l := range ls {
		do(l)
	}
}

func (ls links) cut() { ls.each((*faultnet.Link).Cut) }

// heal lets the links carry everything at once.
func (ls links) heal() {
	ls.each(func(l *faultnet.Link) { l.Delay(0, 0) })
	ls.each((*faultnet.Link).Heal)
}

// network inserts a link between the node and each server of its ZooKeeper. The node uses them from its next start
// on.
func (n *node) network() links {
	n.site.t.Helper()
	servers, chroot := cutChroot(n.connect)
	var addrs []string
	for server := range strings.SplitSeq(servers, ",") {
		l := newNetwork(n.site.t, server)
		n.links, addrs = append(n.links, l), append(addrs, l.Addr())
	}
	n.connect = strings.Join(addrs, ",") + chroot
	return n.links
}

// cutChroot splits a connect string.
func cutChroot(connect string) (servers, chroot string) {
	if i := strings.IndexByte(connect, '/'); i >= 0 {
		return connect[:i], connect[i:]
	}
	return connect, ""
}

// heartbeats waits until the node's heartbeats reach ZooKeeper, or until they fail if reach is
// false.
func (n *node) heartbeats(reach bool) {
	n.site.t.Helper()
	want := map[bool]string{true: "true", false: "false"}[reach]
	n.until("zookeeper_ok "+want, func() bool { return n.stat("zookeeper_ok") == want })
}

// onSocket makes the node serve clients on a Unix socket, which never uses TLS and whose address is known before
// the node starts.
func (n *node) onSocket() *node {
	dir, err := os.MkdirTemp("", "e2e") // short: socket paths have about 100 bytes
	if err != nil {
		n.site.t.Fatal(err)
	}
	n.site.t.Cleanup(func() { os.RemoveAll(dir) })
	n.listen = "unix:" + filepath.Join(dir, "s")
	return n
}
