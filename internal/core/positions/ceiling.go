package positions

import (
	"math"
	"math/bits"
	"time"
)

// Burst is the time whose positions may be taken at once after a pause.
const Burst = 10 * time.Second

// Ceiling bounds the positions of a sequence that are taken in a second (S6). Because of it, the
// age of a record that ZooKeeper lost bounds the positions that the record had advanced.
type Ceiling int64

// Budget is the part of a record about the ceiling: Credit positions may be taken at the time At, in milliseconds of
// sequence time, which is the same for all nodes. The credit is negative for a while after a loss of data (S14).
type Budget struct{ Credit, At int64 }

// Burst returns the most credit that a sequence saves up.
func (c Ceiling) Burst() int64 { return c.over(Burst.Milliseconds()) }

// over returns the positions of ms milliseconds, rounded down, at most math.MaxInt64.
func (c Ceiling) over(ms int64) int64 {
	if c <= 0 || ms <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(c), uint64(ms))
	if hi >= 1000 {
		return math.MaxInt64
	}
	positions, _ := bits.Div64(hi, lo, 1000)
	return int64(min(positions, math.MaxInt64))
}

// lasts returns the time for n positions in milliseconds, rounded up.
func (c Ceiling) lasts(n int64) int64 {
	hi, lo := bits.Mul64(uint64(max(n, 0)), 1000)
	if c <= 0 || hi >= uint64(c) {
		return math.MaxInt64
	}
	ms, rest := bits.Div64(hi, lo, uint64(c))
	if rest > 0 {
		ms++
	}
	return int64(min(ms, math.MaxInt64))
}

// At returns the budget at now. A time that went back earns nothing.
func (c Ceiling) At(b Budget, now int64) Budget {
	lacking := max(0, saturate(c.Burst(), max(0, -b.Credit))-max(0, b.Credit))
	return Budget{b.Credit + min(c.over(now-b.At), lacking), max(b.At, now)}
}

// Spend returns the budget after n positions were taken at now. If the credit is too small, wait
// is the time in milliseconds until it may suffice, and the budget must not be used.
func (c Ceiling) Spend(b Budget, n, now int64) (after Budget, wait int64) {
	after = c.At(b, now)
	//mutant:s6-no-ceiling by seqsim -> if false {
	if after.Credit < n {
		return Budget{}, saturate(max(0, b.At-now), c.lasts(saturate(n, max(0, -after.Credit))-max(0, after.Credit)))
	}
	after.Credit -= n
	return after, 0
}

// Skip returns the most positions that may have been taken beyond a record that ZooKeeper has lost
// since, if an older copy of it has budget b. If the copy has not paid for an earlier skip, wait is the
// time in milliseconds until it may be skipped from, else losses of data in a row would add up (S13, S14). c must be
// the hard ceiling of the sequence.
func (c Ceiling) Skip(b Budget, now int64) (skip, wait int64) {
	earned := c.over(now - b.At)
	if b.Credit >= 0 {
		return saturate(b.Credit, earned), 0
	}
	if skip = b.Credit + earned; skip < 0 {
		return 0, saturate(max(0, b.At-now), c.lasts(-skip))
	}
	return skip, 0
}

// Pay returns the budget after a skip and a block of n positions. The credit is negative, so that the
// sequence gives nothing more until the block is paid for. A later loss is covered too then.
func (c Ceiling) Pay(b Budget, n, now int64) Budget { return Budget{-n, max(b.At, now)} }

// saturate returns a+b, at most math.MaxInt64. Neither may be negative.
func saturate(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
