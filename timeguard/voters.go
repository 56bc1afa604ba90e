package timeguard

import "time"

// BadRounds is the number of rounds in a row that must find the clock wrong before a
// running node stops issuing.
const BadRounds = 3

// Offset says how far a clock is ahead of the clock of ZooKeeper's leader: by Ahead, give
// or take Uncertainty. Ahead is negative for a clock that is behind.
type Offset struct {
	Ahead       time.Duration
	Uncertainty time.Duration
}

// MeasureOffset returns the offset of a clock, measured by one write. The clock showed sent
// when the write began, and acked when the write was acknowledged. At some moment in
// between, the leader's clock showed stamp, the timestamp of the write. All three are Unix
// milliseconds. Uncertainty is half the duration of the write, plus 1 ms because stamp is in
// whole milliseconds.
func MeasureOffset(sent, acked, stamp int64) Offset {
	half := time.Duration(max(0, acked-sent)) * time.Millisecond / 2
	return Offset{
		Ahead:       time.Duration(sent-stamp)*time.Millisecond + half,
		Uncertainty: half + time.Millisecond,
	}
}

// Sub returns the offset of a against b. The uncertainties add up.
func (a Offset) Sub(b Offset) Offset {
	return Offset{Ahead: a.Ahead - b.Ahead, Uncertainty: a.Uncertainty + b.Uncertainty}
}

// Beyond reports whether the clocks certainly differ by more than d.
func (a Offset) Beyond(d time.Duration) bool { return a.Ahead.Abs()-a.Uncertainty > d }

// Verdict is the result of comparing a clock with those of the voters.
type Verdict struct {
	Voters  int
	Against int // voters from whom it differs by more than the tolerance
	// Worst is the offset from the voter that differs most.
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

// Verified reports whether there was a voter to compare with.
func (v Verdict) Verified() bool { return v.Voters > 0 }

// Wrong reports whether the clock differs from those of more than half of the voters. In a
// tie the node goes on.
func (v Verdict) Wrong() bool { return 2*v.Against > v.Voters }

// Rounds counts the rounds in a row that found the clock wrong. The zero value
// is ready.
type Rounds struct{ bad int }

// Add counts a round's verdict and reports whether the node must refuse its clock. A round
// without voters does not change the count.
func (r *Rounds) Add(v Verdict) bool {
	if v.Wrong() {
		r.bad++
	} else if v.Verified() {
		r.bad = 0
	}
	return r.Wrong()
}

// Wrong reports what the last call of Add has returned.
func (r Rounds) Wrong() bool { return r.bad >= BadRounds }
