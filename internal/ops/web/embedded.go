package web

import (
	"context"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/internal/app"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/lineproto"
)

// Of returns a Config that shows a node inside this program: its IDs, its named sequences, its
// state and its cluster. Authenticate is nil, so everybody who reaches the server gets an answer.
func Of(n *app.Node) Config {
	node := n.Core()
	host, _ := os.Hostname() // a label: "" will do
	about := About{
		Version: node.Version(), Name: node.Snapshot().Name, Host: host, PID: os.Getpid(), Cluster: n.Cluster(),
		StartedMs: time.Now().UnixMilli(),
	}
	return Config{
		Ready: node.Ready, Live: node.Live, Node: node.Snapshot, Met: node.Met, Reserve: node.Reserve,
		Issuer: n.Issuer(), About: about, Events: new(Events), Logger: hclog.NewNullLogger(),
		Slots: func(ctx context.Context) (health.Report, error) {
			d, err := health.ReadDraft(ctx, n.Store(), n.Cluster())
			if err != nil {
				return health.Report{}, err
			}
			return d.Complete(), nil
		},
		Counters: func() lineproto.Counters { return lineproto.Counters{} },
	}
}
