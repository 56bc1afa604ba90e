package poll

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/web"
	"github.com/flaked/flaked/internal/ops/words"
)

// The nodes of a cluster have clusterTime to answer, all together. Each address has addressTime of it at least.
const (
	clusterTime = 800 * time.Millisecond
	addressTime = 100 * time.Millisecond
)

// AskWorkers adds what the nodes themselves say to the workers of a report. It asks the nodes of
// workers that are live or disconnected. Each answer names its cluster, which must be ours.
func (a *Asker) AskWorkers(ctx context.Context, ours health.ClusterReport, workers []health.WorkerReport) {
	var running []*health.WorkerReport
	var addresses [][]string
	for i := range workers {
		if w := &workers[i]; w.State == health.Live || w.State == health.Disconnected {
			running, addresses = append(running, w), append(addresses, a.dialAddresses(w.Address, w.Host))
		}
	}
	for i, replies := range a.askNodes(ctx, addresses) {
		w := running[i]
		got := bestReply(replies, w.Address, w.Host)
		// Another node may answer at the address by now, or the node may hold another worker.
		switch s, itsCluster := got.doc.Node, got.doc.Cluster; {
		case got.outcome != health.Answered:
		case itsCluster.UUID != "" && itsCluster.UUID != ours.UUID:
			got.outcome, got.why = health.AnotherNode, otherCluster(itsCluster, nameAndUUID(ours.Name, ours.UUID))
		case s.Node == w.Node && s.Worker != nil && *s.Worker == w.Worker:
			w.Says = answerOf(got.doc)
		default:
			got.outcome = health.AnotherNode
		}
		w.Outcome, w.Why = got.outcome, got.why
	}
}

// askNodes asks nodes at all of their addresses, each node until one address answers: another may require TLS, or hang.
// It returns the outcome at each address.
func (a *Asker) askNodes(ctx context.Context, nodes [][]string) [][]statusReply {
	ctx, cancel := context.WithTimeout(ctx, clusterTime)
	defer cancel()
	perAddress := timePerAddress(len(slices.Concat(nodes...)))
	var asks []func()
	got := make([][]statusReply, len(nodes))
	for i, addresses := range nodes {
		got[i] = make([]statusReply, len(addresses))
		open, answered := context.WithCancel(ctx)
		defer answered()
		for k, addr := range addresses {
			asks = append(asks, func() {
				bounded, cancel := context.WithTimeout(open, perAddress)
				defer cancel()
				if got[i][k] = a.ask(bounded, addr, false, "STATUS"); got[i][k].outcome == health.Answered {
					answered()
				}
			})
		}
	}
	inParallel(len(asks), func(i int) { asks[i]() })
	return got
}

// timePerAddress returns the time that each of n addresses has to answer. If many hang, there must be time left for
// those behind them.
func timePerAddress(n int) time.Duration {
	if n <= maxParallel {
		return clusterTime
	}
	return max(clusterTime/time.Duration(n/maxParallel+2), addressTime)
}

// bestReply returns the one that says most of the replies at the addresses of a node on machine.
func bestReply(got []statusReply, addresses, machine string) statusReply {
	if i := mostTelling(got, func(s statusReply) health.Outcome { return s.outcome }); i >= 0 {
		return got[i]
	}
	none := statusReply{outcome: health.NoAddress, why: "its record names no address"}
	if addresses != "" {
		none.why = fmt.Sprintf("%s of %s cannot be reached from here", words.Short(addresses),
			cmp.Or(words.Short(machine), "its machine"))
	}
	return none
}

// mostTelling returns the index of the reply that says most of the replies at the addresses of a node: the first
// answer, else the first reply that is more than silence, else the first. It returns -1 if there are none.
func mostTelling[T any](replies []T, outcomeOf func(T) health.Outcome) int {
	for _, tells := range []func(health.Outcome) bool{
		func(o health.Outcome) bool { return o == health.Answered },
		func(o health.Outcome) bool { return o != health.NoAnswer },
		func(health.Outcome) bool { return true },
	} {
		if i := slices.IndexFunc(replies, func(r T) bool { return tells(outcomeOf(r)) }); i >= 0 {
			return i
		}
	}
	return -1
}

// AskAt asks a node at an address that the user named. cluster is that which the node names, empty for none.
func (a *Asker) AskAt(ctx context.Context, addr string) (asked health.AskedNode, cluster node.ClusterSnapshot) {
	got := a.ask(ctx, addr, true, "STATUS")
	asked = health.AskedNode{Address: addr, Outcome: got.outcome, Why: got.why}
	if got.outcome == health.Answered {
		asked.Says, asked.Snapshot, asked.Version = answerOf(got.doc), got.doc.Node, got.doc.Version
	}
	return asked, got.doc.Cluster
}

// AskAllAt asks the nodes at addresses that the user named, and compares their clusters. With wanted, a name or a UUID,
// a node of another cluster has failed. Nodes of two clusters are an ErrTwoClusters, which names both.
func (a *Asker) AskAllAt(ctx context.Context, wanted string, addrs []string) ([]health.AskedNode, error) {
	found, clusters := make([]health.AskedNode, len(addrs)), make([]node.ClusterSnapshot, len(addrs))
	inParallel(len(addrs), func(i int) { found[i], clusters[i] = a.AskAt(ctx, addrs[i]) })
	return found, cmp.Or(ctx.Err(), compareClusters(wanted, found, clusters))
}

// ErrTwoClusters means that addresses of the user belong to nodes of two clusters.
var ErrTwoClusters = errors.New("the addresses belong to two clusters")

// compareClusters compares the clusters of the nodes that were found: see AskAllAt.
func compareClusters(wanted string, found []health.AskedNode, clusters []node.ClusterSnapshot) error {
	first := -1
	for i, is := range clusters {
		switch {
		case is.UUID == "": // it has not answered, or has not joined its cluster
		case wanted != "" && is.Name != wanted && is.UUID != wanted:
			found[i] = health.AskedNode{Address: found[i].Address, Outcome: health.AnotherNode,
				Why: otherCluster(is, wanted)}
		case first < 0:
			first = i
		case is.UUID != clusters[first].UUID:
			return fmt.Errorf("%w: %s to %s and %s to %s", ErrTwoClusters, found[first].Address,
				nameAndUUID(clusters[first].Name, clusters[first].UUID), found[i].Address, nameAndUUID(is.Name, is.UUID))
		}
	}
	return nil
}

func otherCluster(is node.ClusterSnapshot, ours string) string {
	return fmt.Sprintf("it belongs to cluster %s, not to %s", nameAndUUID(is.Name, is.UUID), ours)
}

func nameAndUUID(name, uuid string) string {
	return fmt.Sprintf("%s (%s)", words.Short(name), words.Short(uuid))
}

// answerOf returns what a report shows of a node's own state.
func answerOf(doc web.Status) *health.Answer {
	a := health.NewAnswer(doc.Node, doc.IDs)
	a.Sequences = doc.Sequences
	a.Dev = slices.ContainsFunc(doc.Problems, func(p health.Problem) bool { return p.Cause == health.DevelopmentProblem.Cause })
	return a
}
