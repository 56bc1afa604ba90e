// Package mode has the types that the rounds of a node and the modes of its sequences share. A mode says how a node
// issues: from a stock of positions, after each write, or as the owner. It does no I/O: rounds read, ask for the one
// write that is due, make it, and say what came of it.
//
// The invariant: between NextWrite and Wrote, a mode gives no request a position of that write. Each method is called
// with the mutex of the sequence held.
//
// Three types to read:
//
//   - Issuing is a mode: segment, strict or ordered.
//   - Series is the state of one sequence: the record that the node knows, the Queue of requests, and when a round must
//     work on it.
//   - Write is a write that a mode wants, over the records that were read: a View.
package mode

import (
	"sync"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// Issuing is a mode at work on one sequence, with the state that this needs. Each life of a name has an Issuing of its
// own. Series.Mu is held when a method is called.
type Issuing interface {
	// Serve appends the values of a request to to, refuses the request, or makes it wait. needsRound means that
	// a round should come soon. knewAllAt is the time at which the node last knew all changes of operators, ns of
	// AtMost.
	Serve(r Request, now, knewAllAt int64, to []worker.Run) (_ []worker.Run, needsRound bool, _ error)
	// Oversized returns the refusal of a request for n values if no request ever gets so many, else nil.
	Oversized(n int64) *record.Refusal
	// Lacks reports whether requests wait that the node cannot answer without a write.
	Lacks() bool
	// TakesAhead reports whether the node takes blocks of the sequence also when nobody waits.
	TakesAhead() bool
	// Urgency returns how soon a round must work on a sequence for which nobody waits.
	Urgency(sit Situation) Urgency
	// Saw applies what was read, after the series has set its known record. before is the record that the series knew
	// until then.
	Saw(v View, before *record.Record, sit Situation)
	// NextWrite returns the write that is due, nil for none. Strict moves the requests that the write answers from
	// Waiting to Write.Requests. The other modes leave them in Waiting.
	NextWrite(v View, sit Situation) *Write
	// Wrote ends the write w, which NextWrite has returned for v. It was sent at sent and ended at now, ns of AtMost.
	// err is nil if ZooKeeper has acknowledged it: see NotMade. Wrote returns the requests that the caller must wake.
	// If leaveUpTo is above 0, rounds leave the sequence to other nodes for a random part of that time.
	Wrote(w Write, v View, sent, now int64, err error) (woken []Request, leaveUpTo time.Duration)
	// Pause returns the longest pause after tries in which other nodes were faster.
	Pause(now int64) time.Duration
	// Drop drops what the node holds.
	Drop()
	// Report notes what the node holds in u, and returns it for the line of SEQ.
	Report(u *Use) string
}

// Host is the sequence that a mode issues, as rounds keep it. Mu of the Series is held when KnowWritten is called.
// WakeAt needs no mutex.
type Host interface {
	// KnowWritten makes the record of w the known one: ZooKeeper has it. ackedAt is the time of the acknowledgement, ns
	// of AtMost. It is 0 if there was none, and a later read has shown the record.
	KnowWritten(w Write, ackedAt int64)
	// WakeAt makes a round look at the sequence at this time, ns of AtMost, or AtOnce.
	WakeAt(at int64)
}

// Series is the state of one sequence that rounds and all modes use. Package seq adds what only rounds and the
// segment mode use.
type Series struct {
	// These never change. Trace may be nil.
	Name  string
	Trace coordinator.Trace
	Host  Host

	Mu sync.Mutex // guards all that follows
	// Only the Host writes these three. Known is the latest record that the node has read or written, nil for none.
	// Values is the map of Known. If the map needs a key, Values is wrong until the node knows that. Issuing is the
	// mode that issues Known, nil if no record is known.
	Known   *record.Record
	Values  sequence.Values
	Issuing Issuing
	// Requests enter the Queue, and rounds and modes take them out. Rounds and modes set the Schedule. Modes count, and
	// the Host counts blocks.
	Queue
	Schedule
	Counts
	// Last has the records in ZooKeeper, if the next decision needs no read: as the last write left them or, of a
	// section that this node owns, as they were read since. Else it is nil. A mode sets it,
	// and the Host clears it with each other record.
	Last *View
	// Stale: the record may have changed since it was read: by an operator, or in a loss of data. Rounds and modes set
	// it, and rounds clear it with a read.
	Stale bool
}

// Oversized is Issuing.Oversized of all modes but strict: no block is larger than the burst.
func (s *Series) Oversized(n int64) *record.Refusal {
	if most := s.Known.CeilingInForce().Burst(); n > most {
		return TooMany(most, ", or raise its ceiling, up to the hard one")
	}
	return nil
}

// Schedule says when rounds work on a sequence. Its times are ns of AtMost.
type Schedule struct {
	// FailedRounds counts the rounds that used up all tries since the node last took a block or, as an owner, last
	// wrote.
	FailedRounds int
	// PausedUntil is the time before which no round works on the sequence, whatever waits.
	PausedUntil int64
	// DueAt is the time at which a round must look at the sequence again, 0 for no time of its own. Of a lease, a round
	// may look from DueFrom on, together with others.
	DueFrom, DueAt int64
}

// Urgency says how soon a round must work on a series.
type Urgency int

// In rising order.
const (
	Idle    Urgency = iota // there is nothing to do
	Reread                 // the sequence was exhausted a while ago
	Refresh                // the credit of the record is old
	Needed                 // a block must be taken, the record be read, or a lease be renewed
	Awaited                // requests wait
)

// AtOnce is a time for Host.WakeAt that has passed.
const AtOnce = 1
