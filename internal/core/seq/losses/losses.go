// Package losses says what a node knows about losses of ZooKeeper's data, and what it does after one. A node sees a
// loss when /cluster or /seq is older than it knows, or in a later incarnation. Then it puts back what it knows better,
// waits until all others have done so, and reads all records again. The package does no I/O: the rounds of package seq
// read, ask what to do, and do it. docs/design.md has the reasons. Marks like (S9) name its rules.
//
// The invariant: a node has settled only by data that no loss known to it has touched. It may take positions only then.
//
// Three types to read:
//
//   - State has the node's knowledge, in one of five phases.
//   - Read has one read of /cluster and /seq. State.Observe applies it and returns a Reaction, the next action.
//   - Reading is a read of the sequence time. By it a node finds a time that is above all that were used before a loss.
package losses

import (
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/timeguard"
)

// State has what a node knows about /cluster and /seq, and so about losses of data. It is always in one phase:
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
//	stateUnknown, puttingBackState ── Learn ──► unsettled ── Settle ──► settled
//	settled ── reopen, or Learn that another one still puts back ──► unsettled
//	all but stateUnknown ── enter ──► behind ── fixTime ──► puttingBackState
//
// The invariant: what is known of /seq is of the present incarnation, but in behind and puttingBackState, where it is
// of an earlier one. So a node settles by data that no loss known to it has touched, and positions are taken in settled
// alone.
type State struct {
	// incarnation is the highest one of /cluster that the node has seen. It is the constant never until then.
	incarnation int64
	phase
	// entered is the time at which the node entered the incarnation, and heard that at which it first read the present
	// record.State.PutAt. In the first incarnation nobody has lost data, and both are longAgo.
	entered, heard timeguard.Moment
}

// never is the incarnation of a node that has not read /cluster.
const never = -1

// longAgo is a moment since which every confirming time has passed.
var longAgo = timeguard.Moment{Least: -1 << 62, Most: -1 << 62}

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

// seqRead has the facts that a node knows about /seq. It does not change: Learn makes a new one.
type seqRead struct {
	// state is /seq as it was last read or written. In behind and puttingBackState it is from an earlier incarnation.
	state record.State
	// first is the time at which the node had first read the present sequence time, in ns of AtLeast.
	first int64
	// trusted is the last read that was sent while the node might take positions: its heartbeats had shown no loss
	// until then. A read after a restart may be of older data. last is the last read, trusted or not: in one
	// incarnation several nodes may put the time back, the later ones further.
	trusted, last Reading
}

func (stateUnknown) seq() *seqRead { return nil }

func (s *seqRead) seq() *seqRead { return s }

// New returns the state of a node that has read nothing of its cluster.
func New() State {
	return State{incarnation: never, phase: stateUnknown{}, entered: longAgo, heard: longAgo}
}

// Incarnation returns the highest incarnation of /cluster that the node has seen, and a negative number if none.
func (k State) Incarnation() int64 { return k.incarnation }

// Entered returns the time at which the node entered that incarnation.
func (k State) Entered() timeguard.Moment { return k.entered }

// Known returns /seq as it was last read or written, nil if the node knows none. If the node Owes, that was in an
// earlier incarnation. The caller does not change it.
func (k State) Known() *record.State {
	if known := k.seq(); known != nil {
		return &known.state
	}
	return nil
}

// Owes reports whether the node knows /seq of an earlier incarnation, and has not compared it in this one.
func (k State) Owes() bool {
	switch k.phase.(type) {
	case behind, puttingBackState:
		return true
	}
	return false
}

// HasSettled reports whether the node has begun to read all records since others have put back what they know better.
func (k State) HasSettled() bool {
	_, ok := k.phase.(settled)
	return ok
}

// PutBackLeft returns the time for which other nodes may still put back what they know better (S9).
func (k State) PutBackLeft(now timeguard.Moment, confirm time.Duration) (left time.Duration) {
	for _, since := range []timeguard.Moment{k.entered, k.heard} {
		//mutant:s9-at-most by internal/core/seq:TestFastBootClock -> passed := time.Duration(now.Most - since.Most)
		passed := time.Duration(now.Least - since.Least)
		//mutant:s9-no-confirming-time by internal/core/seq:TestPutBackTakesLongerThanTheConfirmingTime -> left = max(left, -passed)
		left = max(left, confirm-passed)
	}
	return left
}

// MaySettle reports whether the node may settle, and so begin to read all records again: it is unsettled, and the time
// is over in which others put back what they know better (S36). A record that this node has put back itself may be
// another one by now.
func (k State) MaySettle(now timeguard.Moment, confirm time.Duration) bool {
	_, ok := k.phase.(unsettled)
	return ok && k.PutBackLeft(now, confirm) == 0
}

// Settle notes that the node begins to read all records again (S36).
func (k *State) Settle() { k.phase = settled{k.seq()} }
