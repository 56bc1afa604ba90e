package health

import (
	"time"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/words"
)

// AskedNode is the outcome of asking a node at an address that the user named.
type AskedNode struct {
	Address string
	Outcome Outcome
	// Why has the details for people if there is no answer.
	Why string
	// Says, Snapshot and Version are what the node has answered. Says is null if there is no answer.
	Says     *Answer
	Snapshot node.Snapshot
	Version  string
}

// AssessNodes returns the report of nodes that were asked because ZooKeeper was not read. why is the reason.
func AssessNodes(why string, nodes []AskedNode, now time.Time) Report {
	d := Draft{Source: SourceNodes, ZooKeeperError: why, Workers: make([]WorkerReport, 0, len(nodes)),
		Summary: Summary{NowMs: now.UnixMilli()}}
	for _, n := range nodes {
		d.Workers = append(d.Workers, n.worker())
	}
	return d.Complete()
}

// worker returns the report of the node's worker by its answer. recordedWorker is for a record in ZooKeeper.
func (n AskedNode) worker() WorkerReport {
	w := WorkerReport{Worker: UnknownWorker, State: UnknownState, Address: n.Address, Outcome: n.Outcome, Why: n.Why,
		Says: n.Says}
	if n.Says == nil {
		return w
	}
	s := n.Snapshot
	if s.Worker != nil {
		w.Worker, w.Term = *s.Worker, s.Term
	}
	if w.State = Disconnected; s.ZooKeeper.OK {
		w.State = Live
	}
	w.Name, w.Node, w.Version = words.Clean(s.Name), words.Clean(s.Node), words.Clean(n.Version)
	w.Phase = n.Says.Phase
	w.ReportAgeMs, w.HeartbeatMs = s.ZooKeeper.HeartbeatAgeMs, s.ZooKeeper.HeartbeatMs
	w.ClockOffsetMs, w.ClockUncertaintyMs = s.Clock.OffsetMs, s.Clock.UncertaintyMs
	return w
}
