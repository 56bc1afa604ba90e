package admin

import (
	"github.com/flaked/flaked"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/seqstore"
)

// Of returns a Config that shows a node inside this program: its IDs, its named sequences, its
// state and its cluster. Set About.Name, which is the heading of the page. Authenticate is nil, so
// everybody who reaches the server gets an answer.
func Of(n *flaked.Node) Config {
	backend, sequences := n.LineProtocol()
	return Config{
		Ready: backend.Ready, Live: n.Live, Workers: n.Status, Reserve: backend.Reserve,
		Sequences: n.Sequences, Issuer: issuerOf{sequences, n}, Slots: n.Cluster, Until: n.Until, About: About{Version: backend.Version()},
	}
}

// issuerOf is the Issuer of a node.
type issuerOf struct {
	lineproto.Sequences
	n *flaked.Node
}

func (i issuerOf) Use(name string) (seqstore.Use, bool) { return i.n.Use(name) }
