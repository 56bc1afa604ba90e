package losses

import (
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/timeguard"
)

// Read is a read of /cluster and /seq.
type Read struct {
	record.Snapshot
	// Leader is a time of ZooKeeper's leader before the read, Unix ms.
	Leader         int64
	Sent, Answered timeguard.Moment
	// Confirmed: the node's worker allowed it to take positions when the read was sent (S11). Beat is the incarnation
	// that the node had read before its last heartbeat then.
	Confirmed bool
	Beat      int64
}

// Finding says what /cluster and /seq show of a loss of data. Without a sync only record.Good counts: the server may
// lag behind, or v may be from before. The rounds read anything else again after a sync, so what they read then counts.
// Good needs none: reads of one session do not go back, and a write that goes by old data fails (S10).
//
// Before the node has read /cluster, a missing one is no loss to it. Nothing is written by such a read, because
// record.Snapshot.CheckClusterOp fails.
func (k State) Finding(v record.Snapshot) record.Finding {
	known := k.seq()
	switch {
	case v.Incarnation() < k.incarnation:
		return record.Lost
	case v.Incarnation() > k.incarnation:
		return record.Later
	case v.State == nil && known == nil:
		return record.Absent
	case known == nil, k.Owes():
		return record.Good
	case v.State == nil, v.State.Older(known.state):
		return record.Lost
	}
	return record.Good
}

// Reaction has the actions that a node takes after a read of /cluster and /seq.
type Reaction struct {
	Kind Kind
	// Entered: they are of a later incarnation than the node knew, so all records must be read again.
	Entered bool
	// Write is /seq as the node writes it, of WritesState.
	Write record.State
	// Changed are the sequences that operators have changed, of Follows.
	Changed []string
}

// Kind is the kind of a Reaction.
type Kind int

const (
	// ReportsLoss: they are missing, or older than before.
	ReportsLoss Kind = iota
	// Waits: others may know more, or a heartbeat must come first.
	Waits
	// WritesState: /seq must be written, and then read again.
	WritesState
	// Follows: the node has applied them.
	Follows
)

// Observe applies what was read of /cluster and /seq, or says what comes before. uuid and confirm are the UUID and the
// confirming time of the node's cluster.
func (k *State) Observe(v Read, uuid string, confirm time.Duration) (r Reaction) {
	switch k.Finding(v.Snapshot) {
	case record.Lost:
		return Reaction{Kind: ReportsLoss}
	case record.Later:
		k.enter(v.Incarnation(), v.Answered)
		r.Entered = true
	}
	if _, ok := k.phase.(behind); ok && !k.fixTime(v.Answered, v.Leader, v.Beat) {
		r.Kind = Waits
		return r
	}
	switch at := k.phase.(type) {
	case stateUnknown:
		if v.State != nil && v.State.PutIn >= v.Incarnation() {
			break
		}
		if r.Kind = Waits; v.Confirmed && k.PutBackLeft(v.Answered, confirm) == 0 {
			r.Kind, r.Write = WritesState, putBackUnknown(v, uuid)
		}
		return r
	case puttingBackState:
		if next, due := record.PutBackState(v.State, at.state, v.Incarnation(), at.least); due {
			r.Kind, r.Write = WritesState, next
			return r
		}
	case unsettled, settled: // follow the changes of operators (S28)
		//mutant:s28-no-follow by internal/core/seq:TestNameCreatedAgainWithAHigherStart -> names, all := []string(nil), false
		names, all := v.State.Since(k.seq().state.Changes)
		if r.Changed = names; all {
			k.reopen()
		}
	}
	k.Learn(*v.State, Reading{v.State.Time, v.Sent, v.Leader}, v.Answered, v.Confirmed)
	r.Kind = Follows
	return r
}

// enter notes a later incarnation: ZooKeeper has lost data. In the first one nobody has.
func (k *State) enter(incarnation int64, now timeguard.Moment) {
	if incarnation > 0 {
		k.entered = now
	}
	k.incarnation = incarnation
	if known := k.seq(); known != nil {
		k.phase = behind{known}
	}
}

// fixTime fixes the sequence time that the node puts back, if a heartbeat has followed (S24). It reports whether that
// is so. The leader must have stamped a heartbeat since the incarnation has grown: a machine that stood still may know
// by nothing else how long that was. beat is the incarnation that the node had read before its last heartbeat. now is a
// moment since that heartbeat, and leader a time of ZooKeeper's leader since then.
func (k *State) fixTime(now timeguard.Moment, leader, beat int64) bool {
	//mutant:s24-before-a-heartbeat by TestTimeIsPutBackByThreeClocks -> if false {
	if beat < k.incarnation {
		return false
	}
	known := k.seq()
	//mutant:s24-time-as-read by TestTimeIsPutBackByThreeClocks -> least := known.state.Time
	least := max(known.trusted.atMost(now, leader), known.last.atMost(now, leader))
	k.phase = puttingBackState{known, least}
	return true
}

// Learn applies a state, from a read that was answered at this time, or from a write. trusted: it was sent while the
// node might take positions. A node that had settled is unsettled again if another one still puts records back (S36).
func (k *State) Learn(st record.State, read Reading, answered timeguard.Moment, trusted bool) {
	next, before := &seqRead{st, answered.Least, read, read}, k.seq()
	if before != nil && before.state.Time == st.Time {
		next.first = before.first
	}
	if before != nil && !trusted && !k.Owes() {
		next.trusted = before.trusted
	}
	late := hearsOfPutBack(before, st)
	if late {
		k.heard = answered
	}
	//mutant:s36-put-back-late by internal/core/seq:TestNodeReadsAgainWhatIsPutBackLate -> if k.HasSettled() {
	if k.HasSettled() && !late {
		k.phase = settled{next}
		return
	}
	//mutant:s36-read-before by internal/core/seq:TestFollowedCountsForOneSession -> k.phase = settled{next}
	k.phase = unsettled{next}
}

// hearsOfPutBack reports whether a node that knew before, nil for nothing, learns from st that another one still puts
// records back.
func hearsOfPutBack(before *seqRead, st record.State) bool {
	if before != nil {
		return st.ToldPutBack() != before.state.ToldPutBack()
	}
	return st.PutAt != nil && st.Time-*st.PutAt < putsBackFor.Milliseconds()
}

// putsBackFor is a sequence time. Until it has passed since record.State.PutAt, a node that has just started assumes
// that another node still puts records back.
const putsBackFor = time.Minute

// reopen makes the node read all records again: there were more changes than /seq has names of (S28).
func (k *State) reopen() { k.phase = unsettled{k.seq()} }

// putBackUnknown returns the state that a node writes when the confirming time is over and nobody has put the state
// back. It knows none of its own. The data may be older by what has passed on the clock of ZooKeeper's leader since the
// state was written. The node's last heartbeat is of this incarnation, so no data that were lost are later.
func putBackUnknown(v Read, cluster string) record.State {
	if v.State == nil {
		return record.State{Cluster: cluster, PutIn: v.Incarnation()}
	}
	next := *v.State
	next.Time += max(0, v.Leader-v.StateWritten) + 2*record.MostRaise.Milliseconds()
	next.Jumped, next.PutIn = next.Time, v.Incarnation()
	return next
}
