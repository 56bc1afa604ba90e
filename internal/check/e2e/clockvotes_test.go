package e2e

import (
	"strconv"
)

// voters waits until the node compares its clock with those of ZooKeeper's leader and of so many
// peers.
func (n *node) voters(peers int) {
	n.site.t.Helper()
	n.until("it compares with all of the others", func() bool { return n.stat("clock_voters") == strconv.Itoa(peers+1) })
}
