package node

import (
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq"
)

// Tenure returns the node's hold on its worker, for named sequences.
func (n *Node) Tenure() seq.Tenure { return seqTenure{n} }

type seqTenure struct{ n *Node }

// Slot is part of seq.Tenure. The node must be confirmed, so that it notices a loss of data, and the chain of its
// heartbeats must be older than the confirming time. In a new session the node waits for its peers' word.
func (t seqTenure) Slot(session int64) seq.Slot {
	n, s := t.n, t.n.peek()
	if s.tenure == nil {
		return seq.Slot{Wait: n.cfg.Heartbeat}
	}
	slot := seq.Slot{
		Path: coordinator.SlotPath(s.tenure.Worker), Version: s.Claim.Chain.Version, Incarnation: s.Claim.Incarnation,
	}
	slot.Wait = max(0, s.Cluster.ConfirmTime()-s.Claim.Chain.Unbroken(n.elapsed.Now(), n.cfg.Heartbeat))
	slot.Wait = max(slot.Wait, s.Peers.AskAgainIn) // any heartbeat may end it
	if s.Stage != coordinator.Confirmed || s.phase == Stopping || s.Peers.Session != session {
		slot.Wait = max(slot.Wait, seq.StartsIn)
	}
	return slot
}

// foundLoss is a loss of data that named sequences have found. known is the incarnation that they knew, and claim the
// node's claim at that time.
type foundLoss struct {
	known int64
	found string
	claim coordinator.Claim
}

// ReportLoss is part of seq.Tenure.
func (t seqTenure) ReportLoss(known int64, found string) {
	n := t.n
	n.mu.Lock()
	n.loss = &foundLoss{known, found, n.view.Load().Claim}
	n.mu.Unlock()
	wake(n.wakeKeeper)
}

// Cluster is part of seq.Tenure.
func (t seqTenure) Cluster() (seq.ClusterInfo, bool) {
	s := t.n.peek()
	if s.tenure == nil {
		return seq.ClusterInfo{}, false
	}
	return seq.ClusterInfo{
		UUID: s.Cluster.UUID, ConfirmTime: s.Cluster.ConfirmTime(), Nodes: s.Peers.Live,
		Self: s.Claim.Node, Resumed: s.resumed, Journal: s.journal,
	}, true
}

// ReleasesAtStop is part of seq.Tenure.
func (t seqTenure) ReleasesAtStop() bool { return t.n.releasesAtStop() }

// waitsForSequences reports whether Ready must wait until the node takes values of named sequences. It waits for twice
// the confirming time at most. When waitsForSequences first returns false, it sets sequencesReady, and returns false
// from then on.
func (n *Node) waitsForSequences() bool {
	s, session := n.peek(), n.cfg.Store.SessionID()
	if s.sequencesReady {
		return false
	}
	late := n.monotonic()-s.beganAt > int64(2*s.Cluster.ConfirmTime())
	if !late && n.cfg.HasSequences() && s.leavesSequencesToOthers(session, (seqTenure{n}).Slot(session).Wait) {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sequencesReady = true
	return false
}

// leavesSequencesToOthers reports whether another node takes values of named sequences, and this one has to wait before
// it does. If nodes are restarted one after the other, each when the one before is ready, one of them can always take
// values. A node that nobody else stands in for, or that is cut off from ZooKeeper, must not wait: IDs come first.
func (s peeked) leavesSequencesToOthers(session int64, wait time.Duration) bool {
	cutOff := session == 0 || s.Stage == coordinator.Alone || s.reports.err != nil
	return !cutOff && s.Peers.MayLeaveToOthers && wait > 0
}
