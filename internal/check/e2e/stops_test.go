package e2e

import (
	"github.com/flaked/flaked/worker"
)

// firstAfter waits until the node is ready, and fails the test if an ID has a timestamp below
// bound.
func (n *node) firstAfter(bound int64) {
	n.site.t.Helper()
	for _, id := range n.ready().get(100) {
		f, err := worker.Leaf().Decode(id)
		if err != nil {
			n.site.t.Fatal(err)
		}
		if at := worker.Leaf().Start(f.Tick); at < bound {
			n.site.t.Errorf("%s: %s is %d ms below what a predecessor had reserved", n.name, n.site.ids.describe(id), bound-at)
			return
		}
	}
}
