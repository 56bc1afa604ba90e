package timeguard

import "time"

// BadRounds is how many rounds in a row must find the clock wrong before a
// running node stops issuing.
const BadRounds = 3

// Offset is how far a clock is ahead of ZooKeeper's leader's, give or take
// Error.
type Offset struct {
	Ahead time.Duration
	Error time.Duration
}

// MeasureOffset is the offset of a clock that read sent when a write began and
// acked when it was acknowledged, where the leader stamped the write with
// stamp: the leader's clock read that at some moment in between. All are Unix
// milliseconds; the stamp's millisecond counts into the error.
func MeasureOffset(sent, acked, stamp int64) Offset {
	half := time.Duration(max(0, acked-sent)) * time.Millisecond / 2
	return Offset{
		Ahead: time.Duration(sent-stamp)*time.Millisecond + half,
		Error: half + time.Millisecond,
	}
}

// Sub is the offset of a against b.
func (a Offset) Sub(b Offset) Offset {
	return Offset{Ahead: a.Ahead - b.Ahead, Error: a.Error + b.Error}
}

// Beyond tells whether the clocks surely differ by more than d.
func (a Offset) Beyond(d time.Duration) bool { return a.Ahead.Abs()-a.Error > d }

// Verdict is what the voters say of a clock.
type Verdict struct {
	Voters  int
	Against int // voters from whom it differs by more than the tolerance
	// Worst is the largest offset from a voter.
	Worst Offset
}

// Judge compares a clock with the voters': ZooKeeper's leader, whose offset is
// zero, and the peers that have reported lately.
func Judge(own Offset, voters []Offset, tolerance time.Duration) Verdict {
	v := Verdict{Voters: len(voters)}
	for _, voter := range voters {
		diff := own.Sub(voter)
		if diff.Beyond(tolerance) {
			v.Against++
		}
		if diff.Ahead.Abs() > v.Worst.Ahead.Abs() {
			v.Worst = diff
		}
	}
	return v
}

// Verified: there was somebody to compare with.
func (v Verdict) Verified() bool { return v.Voters > 0 }

// Wrong: more than half of the voters say that it is. A node errs on the side
// of going on.
func (v Verdict) Wrong() bool { return 2*v.Against > v.Voters }

// Rounds counts the rounds in a row that found the clock wrong. The zero value
// is ready.
type Rounds struct{ bad int }

// Add takes a round's verdict and tells whether the clock is to be refused.
func (r *Rounds) Add(v Verdict) bool {
	if v.Wrong() {
		r.bad++
	} else if v.Verified() {
		r.bad = 0
	}
	return r.bad >= BadRounds
}
