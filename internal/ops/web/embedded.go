package web

import (
	"os"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked"
	"github.com/flaked/flaked/internal/ops/inside"
	"github.com/flaked/flaked/lineproto"
)

// Of returns a Config that shows a node inside this program: its IDs, its named sequences, its
// state and its cluster. Authenticate is nil, so everybody who reaches the server gets an answer.
func Of(n *flaked.Node) Config {
	parts := inside.Of(n)
	host, _ := os.Hostname() // a label: "" will do
	first := parts.Node.Snapshot()
	about := About{
		Version: parts.Node.Version(), Name: first.Name, Host: host, PID: os.Getpid(), Cluster: first.Cluster.Name,
		StartedMs: time.Now().UnixMilli(),
	}
	return Config{
		Ready: parts.Node.Ready, Live: n.Live, Node: parts.Node.Snapshot, Met: parts.Node.Met,
		Reserve: parts.Node.Reserve,
		Issuer:  parts.Issuer, Slots: parts.Cluster, About: about, Events: new(Events), Logger: hclog.NewNullLogger(),
		Counters: func() lineproto.Counters { return lineproto.Counters{} },
	}
}
