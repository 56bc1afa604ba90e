package seq

import (
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/timeguard"
)

// lossState has what a node knows about /cluster and /seq, and so about losses of data. It does no I/O: observe says
// what the node does about what it has read. It is always in one phase:
//
//	stateUnknown      The node knows no /seq. It uses that of others, or creates one when the confirming time has
//	                  passed since entered: until then others may know more.
//	behind            The node knows /seq, and has entered a later incarnation: a loss. It waits for a heartbeat,
//	                  because only the leader's stamp may show how long a pause was (S24).
//	puttingBackState  The sequence time to put back is fixed. The node writes /seq, if it knows it better than what it
//	                  reads.
//	unsettled         /seq is compared, but the node has not begun to read all records again. After a loss it and
//	                  others put records back meanwhile (S8). Nobody takes positions until the confirming time has
//	                  passed since entered and since heard (S9).
//	settled           The node has begun to read all records again since then (S36). It may take positions.
//
//	stateUnknown, puttingBackState ── learn ──► unsettled ── settle ──► settled
//	settled ── reopen, or learn that another one still puts back ──► unsettled
//	all but stateUnknown ── enter ──► behind ── fixTime ──► puttingBackState
//
// The invariant: what is known of /seq is of the present incarnation, but in behind and puttingBackState, where it is
// of an earlier one. So a node settles by data that no loss known to it has touched, and positions are taken in settled
// alone.
type lossState struct {
	// incarnation is the highest one of /cluster that the node has seen. It is the constant never until then.
	incarnation int64
	phase
	// entered is the time at which the node entered the incarnation, and heard that at which it first read the present
	// State.PutAt. In the first incarnation nobody has lost data, and both are longAgo.
	entered, heard timeguard.Moment
	// reported: the node has reported a loss of data in this incarnation.
	reported bool
}

// never is the incarnation of a node that has not read /cluster.
const never = -1

// longAgo is a moment since which every confirming time and every hold has passed. longAgoNs is its time, ns.
var longAgo = timeguard.Moment{Least: longAgoNs, Most: longAgoNs}

const longAgoNs = -1 << 62

// phase is stateUnknown, behind, puttingBackState, unsettled or settled.
type phase interface {
	// seq returns what the node knows of /seq, nil in stateUnknown.
	seq() *seqRead
}

type (
	stateUnknown     struct{}
	behind           struct{ *seqRead }
	puttingBackState struct {
		*seqRead
		least int64 // the sequence time that the node puts back, or a higher one
	}
	unsettled struct{ *seqRead }
	settled   struct{ *seqRead }
)

// seqRead has the facts that a node knows about /seq. It does not change: learn makes a new one.
type seqRead struct {
	// state is /seq as it was last read or written. In behind and puttingBackState it is from an earlier incarnation.
	state record.State
	// first is the time at which the node had first read the present State.Time, in ns of AtLeast.
	first int64
	// trusted is the last read that was sent while the node might take positions: its heartbeats had shown no loss
	// until then. A read after a restart may be of older data. last is the last read, trusted or not: in one
	// incarnation several nodes may put the time back, the later ones further.
	trusted, last reading
}

func (stateUnknown) seq() *seqRead { return nil }

func (s *seqRead) seq() *seqRead { return s }

// knowsNothing returns the state of a node that has read nothing of its cluster.
func knowsNothing() lossState {
	return lossState{incarnation: never, phase: stateUnknown{}, entered: longAgo, heard: longAgo}
}

// recalled returns what an earlier process of this node had known. It had settled, or it would have saved nothing.
func recalled(w Witness, atLeast int64) lossState {
	k := knowsNothing()
	k.incarnation, k.phase = w.Incarnation, settled{&seqRead{w.State, atLeast, w.Trusted, w.Last}}
	if w.Entered != nil {
		k.entered = *w.Entered
	}
	return k
}

// owes reports whether the node knows /seq of an earlier incarnation, and has not compared it in this one.
func (k lossState) owes() bool {
	switch k.phase.(type) {
	case behind, puttingBackState:
		return true
	}
	return false
}

// hasSettled reports whether the node has begun to read all records since others have put back what they know better.
func (k lossState) hasSettled() bool {
	_, ok := k.phase.(settled)
	return ok
}

// putBackLeft returns the time for which other nodes may still put back what they know better (S9).
func (k lossState) putBackLeft(now timeguard.Moment, confirm time.Duration) (left time.Duration) {
	for _, since := range []timeguard.Moment{k.entered, k.heard} {
		//mutant:s9-at-most by TestFastBootClock -> passed := time.Duration(now.Most - since.Most)
		passed := time.Duration(now.Least - since.Least)
		//mutant:s9-no-confirming-time by TestPutBackTakesLongerThanTheConfirmingTime -> left = max(left, -passed)
		left = max(left, confirm-passed)
	}
	return left
}

// maySettle reports whether the node must begin to read all records again now, and so settles: it is unsettled, and the
// time is over in which others put back what they know better (S36). A record that this node has put back itself
// may be another one by now.
func (k lossState) maySettle(now timeguard.Moment, confirm time.Duration) bool {
	_, ok := k.phase.(unsettled)
	return ok && k.putBackLeft(now, confirm) == 0
}

// finding says what /cluster and /seq show of a loss of data. Without a sync only record.Good counts: the server may
// lag behind, or v may be a view from before. roundIO.readTwice reads anything else again after a sync, so its views
// count. Good needs none: reads of one session do not go back, and a write that goes by old data fails (S10).
func (k lossState) finding(v view) record.Finding {
	known := k.seq()
	switch {
	case v.Incarnation() < k.incarnation:
		return record.Lost
	case v.Incarnation() > k.incarnation:
		return record.Later
	case v.State == nil && known == nil:
		return record.Absent
	case known == nil, k.owes():
		return record.Good
	case v.State == nil, v.State.Older(known.state):
		return record.Lost
	}
	return record.Good
}

// reaction has the actions that a node takes after a read of /cluster and /seq.
type reaction struct {
	kind reactionKind
	// entered: they are of a later incarnation than the node knew, so all records must be read again.
	entered bool
	// write is /seq as the node writes it, of writesState.
	write record.State
	// changed are the sequences that operators have changed, of follows.
	changed []string
}

type reactionKind int

const (
	// reportsLoss: they are missing, or older than before.
	reportsLoss reactionKind = iota
	// waits: others may know more, or a heartbeat must come first.
	waits
	// writesState: /seq must be written, and then read again.
	writesState
	// follows: the node has applied them.
	follows
)

// observe applies what was read of /cluster and /seq, or says what comes before. The read was sent at sent, when the
// node's slot was slot, and answered now. c is the node's cluster.
func (k *lossState) observe(v view, sent, now timeguard.Moment, slot Slot, c ClusterInfo) (r reaction) {
	switch k.finding(v) {
	case record.Lost:
		return reaction{kind: reportsLoss}
	case record.Later:
		k.enter(v.Incarnation(), now)
		r.entered = true
	}
	if _, ok := k.phase.(behind); ok && !k.fixTime(now, v.leader, slot) {
		r.kind = waits
		return r
	}
	switch at := k.phase.(type) {
	case stateUnknown:
		if v.State != nil && v.State.PutIn >= v.Incarnation() {
			break
		}
		if r.kind = waits; slot.isConfirmed() && k.putBackLeft(now, c.ConfirmTime) == 0 {
			r.kind, r.write = writesState, putBackUnknown(v, c.UUID)
		}
		return r
	case puttingBackState:
		if next, due := record.PutBackState(v.State, at.state, v.Incarnation(), at.least); due {
			r.kind, r.write = writesState, next
			return r
		}
	case unsettled, settled: // follow the changes of operators (S28)
		//mutant:s28-no-follow by TestNameCreatedAgainWithAHigherStart -> names, all := []string(nil), false
		names, all := v.State.Since(k.seq().state.Changes)
		if r.changed = names; all {
			k.reopen()
		}
	}
	k.learn(*v.State, reading{v.State.Time, sent, v.leader}, now, slot.isConfirmed())
	r.kind = follows
	return r
}

// enter notes a later incarnation: ZooKeeper has lost data. In the first one nobody has.
func (k *lossState) enter(incarnation int64, now timeguard.Moment) {
	if incarnation > 0 {
		k.entered = now
	}
	k.incarnation, k.reported = incarnation, false
	if known := k.seq(); known != nil {
		k.phase = behind{known}
	}
}

// fixTime fixes the sequence time that the node puts back, if a heartbeat has followed (S24). It reports whether that
// is so. The leader must have stamped a heartbeat since the incarnation has grown: a machine that stood still may know
// by nothing else how long that was. now is a moment since then, and leader a time of ZooKeeper's leader since that
// heartbeat.
func (k *lossState) fixTime(now timeguard.Moment, leader int64, slot Slot) bool {
	//mutant:s24-before-a-heartbeat by TestTimeIsPutBackByThreeClocks -> if false {
	if slot.Incarnation < k.incarnation {
		return false
	}
	known := k.seq()
	//mutant:s24-time-as-read by TestTimeIsPutBackByThreeClocks -> least := known.state.Time
	least := max(known.trusted.atMost(now, leader), known.last.atMost(now, leader))
	k.phase = puttingBackState{known, least}
	return true
}

// learn applies a state, from a read that was answered at this time, or from a write. trusted: see seqRead. A node
// that had settled is unsettled again if another one still puts records back (S36).
func (k *lossState) learn(st record.State, read reading, answered timeguard.Moment, trusted bool) {
	next, before := &seqRead{st, answered.Least, read, read}, k.seq()
	if before != nil && before.state.Time == st.Time {
		next.first = before.first
	}
	if before != nil && !trusted && !k.owes() {
		next.trusted = before.trusted
	}
	late := before.hearsOfPutBack(st)
	if late {
		k.heard = answered
	}
	//mutant:s36-put-back-late by TestNodeReadsAgainWhatIsPutBackLate -> if k.hasSettled() {
	if k.hasSettled() && !late {
		k.phase = settled{next}
		return
	}
	//mutant:s36-read-before by TestFollowedCountsForOneSession -> k.phase = settled{next}
	k.phase = unsettled{next}
}

// hearsOfPutBack reports whether a node that knew before learns from st that another one still puts records back.
func (before *seqRead) hearsOfPutBack(st record.State) bool {
	if before != nil {
		return st.ToldPutBack() != before.state.ToldPutBack()
	}
	return st.PutAt != nil && st.Time-*st.PutAt < putsBackFor.Milliseconds()
}

// putsBackFor is how long after State.PutAt, in sequence time, a node that has just started takes it for possible that
// another one still puts records back.
const putsBackFor = time.Minute

// reopen makes the node read all records again: there were more changes than /seq has names of (S28).
func (k *lossState) reopen() { k.phase = unsettled{k.seq()} }

// settle notes that the node begins to read all records again (S36).
func (k *lossState) settle() { k.phase = settled{k.seq()} }

// putBackUnknown returns the state that a node writes when the confirming time is over and nobody has put the state
// back. It knows none of its own. The data may be older by what has passed on the clock of ZooKeeper's leader since the
// state was written. The node's last heartbeat is of this incarnation, so no data that were lost are later.
func putBackUnknown(v view, cluster string) record.State {
	if v.State == nil {
		return record.State{Cluster: cluster, PutIn: v.Incarnation()}
	}
	next := *v.State
	next.Time += max(0, v.leader-v.StateWritten) + 2*record.MostRaise.Milliseconds()
	next.Jumped, next.PutIn = next.Time, v.Incarnation()
	return next
}

// soonPutBack is the number of records that a node usually puts back in its first round, so that it need not tell
// before.
const soonPutBack = 64

// tells returns /seq as the node writes it to tell the others what it does after a loss: that it still puts back so
// many records, lost (S9), unless it has just begun with few of them, and the names of those that it has put back. They
// count as changes, so that the others read them, also if that came when their time was over (S36). due is false if
// there is nothing to tell. follow is the time between two heartbeats.
func (k lossState) tells(lost int, names []string, now timeguard.Moment, follow time.Duration) (next record.State, due bool) {
	late := now.Most-k.entered.Most > int64(follow/2)
	puts := lost > 0 && (late || lost > soonPutBack)
	//mutant:s36-unheard by TestNodesHearOfALatePutBack -> next = k.seq().state
	next = k.seq().state.After(names...)
	if puts {
		next.PutAt = new(max(next.ToldPutBack()+1, k.seqTime(now.Least)))
	}
	return next, puts || len(names) > 0
}

// Sequence time is a count of milliseconds in /seq. Connected nodes raise it by what has passed at least, so it runs no
// faster than time. Records note it, and the skip after a loss of data goes by it.

// raiseEvery is the age of State.Time after which a node raises it.
const raiseEvery = 10 * time.Second

// reading is a read of /seq.
type reading struct {
	// Time was the sequence time, and the read was sent at Sent. Leader was a time of ZooKeeper's leader before, Unix
	// ms.
	Time   int64            `json:"time"`
	Sent   timeguard.Moment `json:"sent"`
	Leader int64            `json:"leader"`
}

// atMost returns a sequence time that is above all that any node has used until now (S24). leader is a time of
// ZooKeeper's leader since, Unix ms. When the read was sent, another node may have been about to raise the time by
// record.MostRaise, for what had passed before. And a node that reads a raise counts on from there.
func (r reading) atMost(now timeguard.Moment, leader int64) int64 {
	//mutant:s24-at-least by TestTimeIsPutBackByThreeClocks -> passed := time.Duration(now.Least - r.Sent.Least).Milliseconds()
	passed := time.Duration(now.Most - r.Sent.Most).Milliseconds()
	//mutant:s24-leader-not-asked by TestTimeIsPutBackByThreeClocks ->
	passed = max(passed, leader-r.Leader)
	return r.Time + max(passed, 0) + 2*record.MostRaise.Milliseconds()
}

// seqTime returns the present sequence time. least is the time of AtLeast.
func (k lossState) seqTime(least int64) int64 {
	return k.seq().state.At(time.Duration(least - k.seq().first))
}

// raisedTime returns /seq with the present sequence time. due is false if its time is young, or if nobody needs the
// time: the cluster has had no sequences.
func (k lossState) raisedTime(now timeguard.Moment) (next record.State, due bool) {
	//mutant:s23-at-most by TestFastBootClock -> age := time.Duration(now.Most - k.seq().first)
	age := time.Duration(now.Least - k.seq().first)
	next = k.seq().state
	next.Time = next.At(age)
	return next, age >= raiseEvery && next.Changes > 0
}
