// Package embedded lets a program with a node of package flaked serve the node's IDs and sequences to other programs,
// as the daemon flaked does:
//
//	backend, sequences := embedded.Of(node)
//	server, err := lineproto.New(lineproto.Config{Backend: backend, Sequences: sequences})
//
// It is a package of its own, so that neither a program with a node links package lineproto, nor a program with package
// lineproto a node.
package embedded

import (
	"github.com/flaked/flaked"
	"github.com/flaked/flaked/internal/app"
	"github.com/flaked/flaked/lineproto"
)

// Of returns the Backend and the Sequences of a lineproto.Config that serve a node. The server must end before
// the node is closed.
func Of(n *flaked.Node) (lineproto.Backend, lineproto.Sequences) {
	parts := (*app.Node)(n)
	return parts.Core(), parts.Issuer()
}
