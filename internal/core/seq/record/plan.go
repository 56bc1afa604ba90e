package record

import (
	"time"

	"github.com/flaked/flaked/internal/core/positions"
)

// savedParts: nobody takes a block while the credit is below 1/savedParts of what the ceiling gives in a second.
// Otherwise clients that ask for more than the ceiling would make a node write as fast as ZooKeeper answers.
const savedParts = 10

// Write is a record as a node writes it, and the block that the node takes by that. An empty block: the write
// refreshes the credit, or gives positions or the ownership back.
type Write struct {
	Record Record
	Block  positions.Block
}

// Plan decides the write that takes a block, or returns the refusal. want is the size that the node would like, and
// need >= 1 the size below which the block is of no use. seqTime is the present sequence time, as in all of this
// package.
func (r Record) Plan(incarnation, want, need, seqTime int64) (Write, *Refusal) {
	left := r.Positions() - r.Next
	lost := r.Incarnation < incarnation
	switch {
	//mutant:s1-past-the-max by TestPlan -> case false:
	case left < 1 || left < need && !lost: // the values end at the max (S1)
		return Write{}, r.Exhausted()
	case lost:
		return r.planAfterLoss(incarnation, want, seqTime)
	}
	n := max(need, min(want, left, r.CeilingInForce().At(r.Budget(), seqTime).Credit))
	saved := min(left, int64(r.CeilingInForce())/savedParts)
	if _, wait := r.CeilingInForce().Spend(r.Budget(), max(n, saved), seqTime); wait > 0 {
		return Write{}, r.overCeiling(wait)
	}
	budget, _ := r.CeilingInForce().Spend(r.Budget(), n, seqTime)
	return r.withBlock(positions.Block{First: r.Next, End: r.Next + n}, budget), nil
}

// planAfterLoss is Plan for the first block in an incarnation. The block is of use at any size, because it ends the
// loss for this sequence.
func (r Record) planAfterLoss(incarnation, want, seqTime int64) (Write, *Refusal) {
	hard, left := positions.Ceiling(r.HardCeiling), r.Positions()-r.Next
	skip, wait := r.skip(incarnation, seqTime)
	switch {
	case wait > 0:
		return Write{}, r.overCeiling(wait)
	case skip > left/10:
		return Write{}, frozen(skip)
	}
	//mutant:s14-first-block by seqsim -> n := min(want, left-skip)
	n := min(want, left-skip, max(1, r.CeilingInForce().Burst()/firstBlockPart))
	block := positions.Block{First: r.Next + skip, End: r.Next + skip + n}
	//mutant:s13-peak-falls by TestPeak -> r.Incarnation, r.PeakFrom, r.PeakAt = incarnation, block.First, seqTime
	r.Incarnation = incarnation
	paid := hard.Pay(r.Budget(), n, seqTime)
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
// It counts up to the present, not to the loss of data. So a first block that is lost itself, with the only node that
// knew it, is left out by the next one (S14): seed 1108465 of TestSimulation.
//
// wait is the time in milliseconds until the sequence has paid for an earlier skip. Until then no block may be taken.
func (r Record) skip(incarnation, seqTime int64) (skip, wait int64) {
	hard := positions.Ceiling(r.HardCeiling)
	//mutant:s13-no-skip by seqsim -> _, wait = hard.Skip(r.Budget(), seqTime)
	skip, wait = hard.Skip(r.Budget(), seqTime)
	if r.Incarnation < incarnation-1 {
		peak, _ := hard.Skip(positions.Budget{Credit: r.PeakFrom - r.Next, At: r.PeakAt}, seqTime)
		skip = max(skip, peak)
	}
	return skip, wait
}

// firstBlockPart divides the burst: the first block after a loss of data is no larger (S14). If data is lost
// again, and nobody knows of that block, the next skip covers it: the confirming time lies between
// the two, which is longer than the time for which the ceiling gives the block.
const firstBlockPart = 8

// Refresh returns the record with its credit as it is now. due is false if CreditAt is younger than after, or if the
// record is from before a loss of data.
func (r Record) Refresh(incarnation, seqTime int64, after time.Duration) (refreshed Record, due bool) {
	if r.Incarnation != incarnation || seqTime-r.CreditAt < after.Milliseconds() {
		return Record{}, false
	}
	return r.Refreshed(seqTime), true
}

// Refreshed returns the record with its credit as it is now.
func (r Record) Refreshed(seqTime int64) Record {
	budget := r.CeilingInForce().At(r.Budget(), seqTime)
	r.Credit, r.CreditAt = budget.Credit, budget.At
	return r
}

// Raised returns the record with a higher next position.
func (r Record) Raised(next int64) Record {
	r.PeakFrom += next - r.Next
	r.Next = next
	return r
}

// Stamped returns the record as it is written: every write raises the write count and has a fresh nonce.
func (r Record) Stamped(nonce, by string) Record {
	r.WriteCount++
	r.Nonce, r.WrittenBy = nonce, by
	return r
}

// PlanStrict decides the write that takes n positions of a strict sequence. After a loss of data, nothing bounds the
// positions that may have been taken since the record was written.
func (r Record) PlanStrict(incarnation, n, seqTime int64) (Write, *Refusal) {
	switch {
	//mutant:s15-strict by seqsim -> case false:
	case r.Incarnation < incarnation: // nothing bounds what was issued before the loss (S15)
		return Write{}, frozenStrict()
	case n > r.Positions()-r.Next:
		return Write{}, r.Exhausted()
	}
	b := positions.Block{First: r.Next, End: r.Next + n}
	return r.withBlock(b, positions.Budget{Credit: r.Credit, At: seqTime}), nil
}

// GoesOnAlone reports whether nodes go on with the record after a loss of data. With a strict sequence or a template,
// only an operator does (S15).
func (r *Record) GoesOnAlone() bool { return r.Mode != Strict && r.MaxNames == 0 }
