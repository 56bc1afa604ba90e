package seq

import (
	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// progress is how far a node has read what all its sequences share. It does not change: the goroutine of rounds
// publishes a new one, and any goroutine loads it. It answers three questions, each for somebody else:
//
//   - Requests ask knewAllAt: the hold counts from it (S5).
//   - Nodes that wait for this one ask comparison (S12).
//   - Operators ask followed (S25). A disk that hangs keeps only them waiting.
type progress struct {
	// knowsState: the node has read /seq in this cluster, or remembers it.
	knowsState bool
	// compared is how far the node had read when it had last compared all records that it knows, nil if it has not.
	compared *following
	// saved is the same when the disk had it, too, and the node had read all records since the last loss of data.
	saved *following
	// knewAllAt is when the last read of /seq was sent after which the node knew all changes, in ns of AtMost. longAgoNs:
	// there was none.
	knewAllAt int64
}

// following is how far a node has followed the changes of operators.
type following struct {
	coordinator.Change
	session int64
	state   record.State // as it was read
}

// noProgress is that of a node that has read nothing.
func noProgress() progress { return progress{knewAllAt: longAgoNs} }

// comparison says whether the node has compared all records that it knows in this session: in is the incarnation, nil if
// it has not. compares: it has some to compare. In a new cluster a node has none: else all would wait for each other.
func (p *progress) comparison(session int64) (in *int64, compares bool) {
	if f := p.compared; f != nil && f.session == session {
		return &f.Incarnation, false
	}
	return nil, p.knowsState
}

// followed returns the last change that the node has followed in this session. Before the session, ZooKeeper may have
// lost changes.
func (p *progress) followed(session int64) coordinator.Change {
	if f := p.saved; f != nil && f.session == session {
		return f.Change
	}
	return coordinator.Change{}
}

// isIn reports whether a witness file that was written after saved has what f reports: the changes, and the
// last jump of the sequence time (S24).
func (f following) isIn(saved *following) bool {
	return saved != nil && f.Change == saved.Change && f.jumpedWith(saved.state)
}

// jumpedWith reports whether f is of the cluster of st, and has its last jump of the sequence time.
func (f following) jumpedWith(st record.State) bool {
	//mutant:s25-of-another-cluster by TestWitnessOfAnotherCluster -> return f.state.Jumped == st.Jumped
	return f.state.Jumped == st.Jumped && f.state.Cluster == st.Cluster
}
