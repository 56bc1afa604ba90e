package seq

import (
	"context"
	"errors"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// A name that was deleted and is created again has another life: a record with an ID, a map and positions of its own.
// What the name has issued in all its lives binds each later life by value: Record.Above (S17). How long nodes that are
// cut off may issue old values is counted in sequence time, not by an operator's clock: Record.WaitMs (S18).

// deleted returns the tombstone of r. now is Unix ms.
func (r Record) deleted(st State, now int64) Record {
	if r.Kind() == Sequence && (r.Next > 0 || r.Incarnation < st.Incarnation) {
		// One mostRaise, because the next raise of the sequence time may add what had passed before the deletion.
		// Another one, because clocks may run too fast.
		r.WaitMs = max(r.IssuableFor(st).Milliseconds(), r.LongestHoldMs()+2*mostRaise.Milliseconds())
		r.WaitFrom = st.Time
	}
	r.DeletedAt, r.Gen = max(1, now), max(r.Gen, st.Purged)
	r.Owner, r.Address, r.OwnedAt = "", "", 0
	return r
}

// IssuableFor returns the sequence time for which nodes that are cut off may still issue values of a name that was
// deleted. 0: they issue none.
func (r Record) IssuableFor(st State) time.Duration {
	if r.WaitMs == 0 {
		return 0
	}
	//mutant:s18-put-back-late by TestPurgeAndStrictLivesWaitInSequenceTime -> passed := st.Time - max(r.WaitFrom, st.Jumped)
	passed := st.Time - max(r.WaitFrom, st.Jumped, st.PutAt)
	return time.Duration(max(0, r.WaitMs-passed)) * time.Millisecond
}

// highestIssued returns the highest value that this life or an earlier one may have issued, -1 for none. It does not
// know what ZooKeeper has lost since the record was written.
func (r Record) highestIssued() int64 {
	switch {
	case r.MaxNames > 0 && r.Scatter > 0:
		return max(r.Above, r.Highest(0)) // its sequences have keys of their own
	case r.Next == 0:
		return r.Above
	}
	return max(r.Above, r.Highest(min(r.Next, r.Positions())-1))
}

// forgets reports whether values may have been issued of which old, the record of an earlier life, does not know: data
// were lost. old is nil if there is no record.
func forgets(old *Record, st State) bool {
	return old == nil && st.Incarnation > 0 || old != nil && old.Incarnation < st.Incarnation
}

// newLife returns r, the record of a new life, as it begins after old, the tombstone of the last one. old is nil if
// there is none. lost means that old does not know all values that were issued, so that the operator has given a start
// above them.
func newLife(r Record, old *Record, lost bool) (Record, error) {
	if old != nil {
		r.Gen, r.WaitMs, r.WaitFrom = old.Gen, old.WaitMs, old.WaitFrom
		r.Credit, r.At = min(r.Credit, old.Credit), old.At // all lives together keep the ceiling (S6)
		r.Above = old.highestIssued()
	}
	//mutant:s17-begins-again by seqsim ->
	r.Next = r.PositionAbove(r.Above) // (S17)
	switch {
	case lost && r.Next > 0:
		return Record{}, refused("start must be above %d, the highest value that this name is known to have had",
			r.Above)
	case lost:
		r.Above = r.Value(0) - 1
	case goesOn(r, old):
		r.Above, r.Next, r.KeyCheck = old.Above, old.Next, old.KeyCheck
	case r.Next > 0 && r.Scatter > 0:
		return Record{}, refused("start must be above %d, the highest value that this name could have before, "+
			"because scattered values have no order. Or all of the map must be as before: "+
			"then the name keeps its key and goes on", r.Above)
	}
	if r.Next >= r.Positions() {
		return Record{}, refused("max must be above %d, the highest value that this name could have before "+
			"it was deleted", r.highestIssued())
	}
	return r.withPeak(), nil
}

// goesOn reports whether r, a scattered sequence, goes on with the key and the positions of its last life, old. The
// values of still earlier lives are below the start, or that life would not have been created.
func goesOn(r Record, old *Record) bool {
	return old != nil && r.Scatter > 0 && r.Map == old.Map && old.KeyCheck != ""
}

// secretFor returns a new record with the fingerprint of its key, and the operation that writes the key. old is
// the record whose place it takes, or nil.
func (o Operator) secretFor(ctx context.Context, r Record, old *Record) (Record, []store.Op, error) {
	if r.KeyCheck == "" {
		r, ops := r.withSecret()
		return r, ops, nil
	}
	k, err := o.Key(ctx, *old)
	if errors.Is(err, ErrNoKey) {
		err = refused("start must be above %d, because the key with which the name could go on is missing in ZooKeeper",
			r.Highest(0))
	}
	return r, []store.Op{writeSecret(r.ID, k)}, err
}
