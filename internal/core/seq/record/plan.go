package record

import (
	"time"

	"github.com/flaked/flaked/internal/core/positions"
)

// Finding says what a record that was read shows, compared with the one that the node knows.
type Finding int

const (
	// Absent: there is no record, and the node knows of none.
	Absent Finding = iota
	// Good: the record is the known one or a later one.
	Good
	// Lost: ZooKeeper has lost the known record, or a later one.
	Lost
	// Later: the cluster has a later incarnation, so a node has noticed that ZooKeeper has lost data.
	Later
)

// Compare compares a record that was read after a sync with the one that the node knows. purged is
// State.Purged, as it was read together with the record. In a later incarnation than that of known, a node may have
// written Purged from memory. Then the caller must have put back a record that is missing: see series.restore.
func Compare(found, known *Record, purged int64) Finding {
	switch {
	case found == nil && known == nil:
		return Absent
	case known == nil:
		return Good
	case found == nil && known.Gen <= purged: // every record that was made after a purge has a higher Gen
		return Absent
	case found == nil, known.Newer(*found):
		return Lost
	//mutant:s12-equal-count-is-good by TestCompare -> case false:
	case known.Rivals(*found):
		return Lost
	}
	return Good
}

// IsPurged reports whether a node takes it that the tombstone r, which is missing, was purged: State.Purged, which
// another name may have raised, allows that, and nothing is lost if it was not. One with a wait comes back in any case,
// because nodes that are cut off may issue its values. If it was purged, it can be purged again.
func (r Record) IsPurged(purged int64) bool {
	//mutant:s18-wait-is-purged by internal/core/seq:TestTombstoneThatWaitsComesBack -> return r.Kind() == Tombstone && r.Gen <= purged
	return r.Kind() == Tombstone && r.Gen <= purged && r.WaitMs == 0
}

// savedParts divides the ceiling: while less than this part of a second's positions may be taken, nobody takes a
// block. Else clients that ask for more than the ceiling make a node write as fast as ZooKeeper answers.
const savedParts = 10

// Write is a record that takes a block. Without a block it renews the record's time, or gives positions or the
// ownership back.
type Write struct {
	Record Record
	Block  positions.Block
}

// Plan decides the write that takes a block, or returns the refusal. want is the size that the node would like, and
// need >= 1 the size below which the block is of no use. now is a sequence time, as in all of this file.
func (r Record) Plan(incarnation, want, need, now int64) (Write, *Refusal) {
	left := r.Positions() - r.Next
	lost := r.Incarnation < incarnation
	switch {
	//mutant:s1-past-the-max by TestPlan -> case false:
	case left < 1 || left < need && !lost: // the values end at the max (S1)
		return Write{}, r.Exhausted()
	case lost:
		return r.planAfterLoss(incarnation, want, now)
	}
	n := max(need, min(want, left, r.CeilingInForce().At(r.Budget(), now).Credit))
	saved := min(left, int64(r.CeilingInForce())/savedParts)
	if _, wait := r.CeilingInForce().Spend(r.Budget(), max(n, saved), now); wait > 0 {
		return Write{}, r.overCeiling(wait)
	}
	budget, _ := r.CeilingInForce().Spend(r.Budget(), n, now)
	return r.withBlock(positions.Block{First: r.Next, End: r.Next + n}, budget), nil
}

// planAfterLoss is Plan for the first block in an incarnation. The block is of use at any size, because it ends the
// loss for this sequence.
func (r Record) planAfterLoss(incarnation, want, now int64) (Write, *Refusal) {
	hard, left := positions.Ceiling(r.HardCeiling), r.Positions()-r.Next
	skip, wait := r.skip(incarnation, now)
	switch {
	case wait > 0:
		return Write{}, r.overCeiling(wait)
	case skip > left/10:
		return Write{}, frozen(skip)
	}
	//mutant:s14-first-block by seqsim -> n := min(want, left-skip)
	n := min(want, left-skip, max(1, r.CeilingInForce().Burst()/firstBlockPart))
	block := positions.Block{First: r.Next + skip, End: r.Next + skip + n}
	//mutant:s13-peak-falls by TestPeak -> r.Incarnation, r.PeakFrom, r.PeakAt = incarnation, block.First, now
	r.Incarnation = incarnation
	paid := hard.Pay(r.Budget(), n, now)
	return r.withBlock(block, paid), nil
}

// withBlock returns the write that takes a block and leaves a budget.
func (r Record) withBlock(b positions.Block, left positions.Budget) Write {
	r.Next, r.Credit, r.CreditAt = b.End, left.Credit, left.At
	return Write{r, b}
}

// skip returns the positions that the first block after a loss of data leaves out (S13). Usually they are
// what may have been taken since this record was written. There may also have been an incarnation between the
// record's and the present one, of which all is lost: the first block of that incarnation skipped from an
// older copy, perhaps of an earlier incarnation, and perhaps further than this record would.
//
// wait is the time in milliseconds until the sequence has paid for an earlier skip. Until then no block may be taken.
func (r Record) skip(incarnation, now int64) (skip, wait int64) {
	hard := positions.Ceiling(r.HardCeiling)
	//mutant:s13-no-skip by seqsim -> _, wait = hard.Skip(r.Budget(), now)
	skip, wait = hard.Skip(r.Budget(), now)
	if r.Incarnation < incarnation-1 {
		peak, _ := hard.Skip(positions.Budget{Credit: r.PeakFrom - r.Next, At: r.PeakAt}, now)
		skip = max(skip, peak)
	}
	return skip, wait
}

// firstBlockPart divides the burst: the first block after a loss of data is no larger (S14). If data is lost
// again, and nobody knows of that block, the next skip covers it: the confirming time lies between
// the two, which is longer than the time for which the ceiling gives the block.
const firstBlockPart = 8

// Renewal returns the record with its time set to now. due is false if
// the time is younger than after, or if the record is from before a loss of data.
func (r Record) Renewal(incarnation, now int64, after time.Duration) (renewed Record, due bool) {
	if r.Incarnation != incarnation || now-r.CreditAt < after.Milliseconds() {
		return Record{}, false
	}
	return r.Renewed(now), true
}

// Renewed returns the record with its budget as it is now.
func (r Record) Renewed(now int64) Record {
	budget := r.CeilingInForce().At(r.Budget(), now)
	r.Credit, r.CreditAt = budget.Credit, budget.At
	return r
}

// Remainder is the end of a block that a node took from the record with this ID, in this incarnation. The node has
// issued nothing of it.
type Remainder struct {
	ID          string
	Incarnation int64
	Block       positions.Block
}

// ReturnOf returns the record that gives back the rest of the last block that a node took. It is possible only if
// nobody has taken a block since. Within an incarnation, the next position shows that. Where data were lost since the
// block was taken, the next skip counts on the credit as it is.
func (r Record) ReturnOf(rest Remainder, incarnation int64) (after Record, possible bool) {
	b := rest.Block
	switch {
	case r.ID != rest.ID, r.Kind() != Sequence, b.First < r.From, b.Len() <= 0:
		return Record{}, false
	case r.Incarnation != incarnation, rest.Incarnation != incarnation:
		return Record{}, false
	//mutant:s4-return-below-others by seqsim -> case false:
	case r.Next != b.End: // a return moves no next value below what others took (S4)
		return Record{}, false
	}
	r.Credit = max(r.Credit, min(r.CeilingInForce().Burst(), r.Credit+b.Len()))
	r.Next = b.First
	return r, true
}

// Raised returns the record with a higher next position.
func (r Record) Raised(next int64) Record {
	r.PeakFrom += next - r.Next
	r.Next = next
	return r
}

// PutBack returns the record that a node writes after a loss of data (S8): the newer one of found and known. Its next
// position is the highest that the node has seen of this sequence. due is false if the record found is the same. found
// is nil if there is no record.
//
// Of two writes with one write count, either one will do if it has the higher next position. If they are of two lives
// of the name, the one whose values go further comes back. The write count then grows above both.
func PutBack(found *Record, known Record, highest int64) (next Record, due bool) {
	//mutant:s8-lower-put-back by TestPutBack -> known = known.Raised(known.Next)
	known = known.Raised(max(known.Next, highest))
	if found == nil {
		return known, true
	}
	next, older, rivals := *found, known.Newer(*found), known.Rivals(*found)
	if older || rivals && found.ID != known.ID && known.HighestIssued() > found.HighestIssued() {
		next = known
	}
	if found.ID == known.ID { // else it is another life of the name, with positions of its own
		next = next.Raised(max(found.Next, known.Next)).afterHoldsOf(known).afterHoldsOf(*found)
	}
	next.Gen = max(found.Gen, known.Gen)
	return next, older || rivals || next.Next > found.Next || next.EarlierHoldMs > found.EarlierHoldMs ||
		next.WaitMs > found.WaitMs
}

// afterHoldsOf returns the record with a purge that waits at least as long as that of known, another record of this
// life. An operator may have changed an old copy of it, from before its hold was longer.
func (r Record) afterHoldsOf(known Record) Record {
	//mutant:s18-shorter-hold-put-back by TestPutBackKeepsTheLongestHold -> return r
	r.EarlierHoldMs = max(r.EarlierHoldMs, known.EarlierHoldMs)
	if known.HoldMs > r.LongestHoldMs() {
		r.EarlierHoldMs = known.HoldMs
	}
	if r.Kind() == Tombstone && r.Next > 0 {
		r.WaitMs = max(r.WaitMs, known.WaitMs, waitAfter(r.LongestHoldMs()))
	}
	return r
}

// Written returns the record as it is written: every write raises the write count and has a fresh nonce.
func (r Record) Written(nonce, by string) Record {
	r.Gen++
	r.Nonce, r.By = nonce, by
	return r
}

// PlanStrict decides the write that takes n positions of a strict sequence. After a loss of data, nothing bounds the
// positions that may have been taken since the record was written. now is a sequence time.
func (r Record) PlanStrict(incarnation, n, now int64) (Write, *Refusal) {
	switch {
	//mutant:s15-strict by seqsim -> case false:
	case r.Incarnation < incarnation: // nothing bounds what was issued before the loss (S15)
		return Write{}, frozenStrict()
	case n > r.Positions()-r.Next:
		return Write{}, r.Exhausted()
	}
	b := positions.Block{First: r.Next, End: r.Next + n}
	return r.withBlock(b, positions.Budget{Credit: r.Credit, At: now}), nil
}

// GoesOnAlone reports whether nodes go on with the record after a loss of data. With a strict sequence or a template,
// only an operator does (S15).
func (r *Record) GoesOnAlone() bool { return r.Mode != Strict && r.MaxNames == 0 }

// Standing has the facts about the next block that follow from the record of a sequence.
type Standing struct {
	// Refusal is the reason for which a node gets no block now. It is empty if the node gets one.
	Refusal Reason
	// Skip is the number of positions that the next block leaves out, because they may have
	// been issued before ZooKeeper lost data. It is 0 if there is a Refusal.
	Skip int64
}

// Standing decides for a block of one position as a node does that has just read the state.
func (r Record) Standing(st State) Standing {
	var c Write
	var refusal *Refusal
	switch {
	case r.Sections > 0: // its sections have records of their own
		return Standing{}
	case r.MaxNames > 0:
		_, _, refusal = r.Create("", st)
		c.Block.First = r.Next // a template skips nothing
	case r.Mode == Strict:
		c, refusal = r.PlanStrict(st.Incarnation, 1, st.Time)
	default:
		c, refusal = r.Plan(st.Incarnation, 1, 1, st.Time)
	}
	if refusal != nil {
		return Standing{Refusal: refusal.Why()}
	}
	return Standing{Skip: c.Block.First - r.Next}
}
