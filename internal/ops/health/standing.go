package health

import "github.com/flaked/flaked/internal/core/node"

// standing says whether a worker's node serves.
type standing int

const (
	gone       standing = iota // no node holds the worker, or its node is down
	unheard                    // a node holds the worker and may serve, but nothing shows whether it does
	starts                     // the node does not serve yet, and will soon
	serves                     // the node serves
	refuses                    // the node has the worker and must not use it, or is not ready because it drains
	notServing                 // the node does not serve for another reason: it stops, or it needs ZooKeeper to start
)

// standing returns whether a worker's node serves, as far as the report shows. The node's own answer counts more than
// its last report to ZooKeeper.
func (w WorkerReport) standing() standing {
	switch says := w.Says; {
	case says == nil:
		return w.recordedStanding()
	case says.Ready:
		return serves
	case Starting(says.Cause):
		return starts
	case says.Phase == node.Refusing, says.Phase == node.Serving:
		return refuses
	}
	return notServing
}

// recordedStanding is standing for a node that has not answered.
func (w WorkerReport) recordedStanding() standing {
	switch {
	case w.State == Live && w.Phase == node.Refusing:
		return refuses
	case w.State == Live && w.gaveNoAnswer(), w.State == Disconnected && !w.gaveNoAnswer(), w.State == RecordMissing:
		return unheard
	case w.State == Live && w.Phase == node.Serving:
		return serves
	case w.State == Live:
		return starts
	}
	return gone
}

// Refuses reports whether a live worker's node refuses to serve.
func (w WorkerReport) Refuses() bool { return w.State == Live && w.standing() == refuses }

// mayServe reports whether the worker's node may give IDs, now or soon. A node that drains still does.
func (w WorkerReport) mayServe() bool {
	s := w.standing()
	return s == serves || s == starts || s == unheard || w.Says != nil && stillAnswers(w.Says.Cause)
}

// showsRefusal reports whether the report of a worker names a refusal as its problem. If ZooKeeper was not read, the
// user has named the node, and wants to know of any reason for which it does not serve.
func (r Report) showsRefusal(w WorkerReport) bool {
	if r.Source == SourceNodes && w.Says != nil {
		return w.standing() != serves
	}
	return w.Refuses()
}

// usesLease reports whether a worker's node serves under its lease, or may do so. Summary.ShortestLeaseMs is the
// shortest lease of these nodes.
func (r Report) usesLease(w WorkerReport) bool {
	if w.State == Live {
		return !w.Refuses()
	}
	return r.Source == SourceNodes && w.standing() == serves
}

// countServing returns how many nodes serve, how many start, and how many should serve.
func (r Report) countServing() (serving, starting, wanted int) {
	for _, w := range r.Workers {
		if w.State != Live && w.State != Disconnected && r.Source != SourceNodes {
			continue
		}
		wanted++
		switch w.standing() {
		case serves:
			serving++
		case starts:
			starting++
		}
	}
	return serving, starting, wanted
}

// Starting reports whether the cause is that a node acquires or confirms a worker, waits for its floor, or takes no
// values of sequences yet. All of these usually pass by themselves.
func Starting(cause node.Cause) bool {
	switch cause {
	case node.CauseNoWorkerYet, node.CauseConfirming, node.CauseLeaseExpiredAway, node.CauseBelowFloor,
		node.CauseNewWorker, node.CauseSequences:
		return true
	}
	return false
}

// stillAnswers reports whether a node that is not ready for this cause answers GET with an ID.
func stillAnswers(cause node.Cause) bool {
	return cause == node.CauseDraining || cause == node.CauseSequences
}
