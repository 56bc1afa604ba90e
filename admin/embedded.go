package admin

import (
	"os"
	"time"

	"github.com/flaked/flaked"
)

// Of returns a Config that shows a node inside this program: its IDs, its named sequences, its
// state and its cluster. Authenticate is nil, so everybody who reaches the server gets an answer.
func Of(n *flaked.Node) Config {
	backend, sequences := n.LineProtocol()
	host, _ := os.Hostname() // a label: "" will do
	first := n.Status()
	about := About{
		Version: backend.Version(), Name: first.Name, Host: host, PID: os.Getpid(), Cluster: first.Cluster.Name,
		StartedMs: time.Now().UnixMilli(),
	}
	return Config{
		Ready: backend.Ready, Live: n.Live, Node: n.Status, Reserve: backend.Reserve,
		Sequences: n.Sequences, Issuer: sequences, Slots: n.Cluster, About: about,
	}
}
