package record

import (
	"time"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
)

// Fresh returns the record of a sequence that did not exist.
func Fresh(m sequence.Map, s Settings, st State) Record {
	return Record{
		ID: store.Nonce(), Map: m, Settings: s, Above: -1,
		Credit: s.CeilingInForce().Burst(), CreditAt: st.Time, WriteCount: st.Purged, Incarnation: st.Incarnation,
	}
}

// WithPeak returns a new record with its peak: nothing above Next plus the burst can have been issued.
func (r Record) WithPeak() Record {
	r.PeakFrom, r.PeakAt = r.Next+positions.Ceiling(r.HardCeiling).Burst(), r.CreditAt
	return r
}

// A name that was deleted and is created again has another life: a record with an ID, a map and positions of its own.
// What the name has issued in all its lives binds each later life by value: Record.Above (S17). How long nodes that are
// cut off may issue old values is counted in sequence time, not by an operator's clock: Record.WaitMs (S18).

// Deleted returns the tombstone of r. now is Unix ms.
func (r Record) Deleted(st State, now int64) Record {
	if r.Kind() == Sequence && (r.Next > 0 || r.Incarnation < st.Incarnation) {
		r.WaitMs = max(r.IssuableFor(st).Milliseconds(), waitAfter(r.LongestHoldMs()))
		r.WaitFrom = st.Time
	}
	r.DeletedAt, r.WriteCount = max(1, now), max(r.WriteCount, st.Purged)
	r.Owner, r.Address, r.OwnedAt = "", "", 0
	return r
}

// waitAfter returns the WaitMs of a deletion after a hold. The first MostRaise is there because the next raise of the
// sequence time may add what had passed before the deletion. The second one is there because clocks may run too fast.
func waitAfter(holdMs int64) int64 { return holdMs + 2*MostRaise.Milliseconds() }

// IssuableFor returns the sequence time for which nodes that are cut off may still issue values of a name that was
// deleted. 0: they issue none.
func (r Record) IssuableFor(st State) time.Duration {
	switch {
	case r.WaitMs == 0:
		return 0
	//mutant:s18-forever-passes by TestForeverNeverPasses -> case false:
	case r.WaitMs >= Forever.Milliseconds():
		return Forever
	}
	//mutant:s18-put-back-late by internal/core/seq:TestPurgeAndStrictLivesWaitInSequenceTime -> passed := st.Time - max(r.WaitFrom, st.Jumped)
	passed := st.Time - max(r.WaitFrom, st.Jumped, st.ToldPutBack())
	return time.Duration(max(0, r.WaitMs-passed)) * time.Millisecond
}

// HighestIssued returns the highest value that this life or an earlier one may have issued, -1 for none. It does not
// know what ZooKeeper has lost since the record was written.
func (r Record) HighestIssued() int64 {
	switch {
	case r.MaxNames > 0 && r.Scatter > 0:
		return max(r.Above, r.Highest(0)) // its sequences have keys of their own
	case r.Next == 0:
		return r.Above
	}
	return max(r.Above, r.Highest(min(r.Next, r.Positions())-1))
}
