package seq

import (
	"time"
)

// minuteRate counts the positions that a node issues, to know their rate. It begins with the first block, and begins
// anew with a block that is taken more than windowTime later.
type minuteRate struct {
	// beganAt is the time at which the window began, in ns of AtMost, 0 for no window. issued is the number of
	// positions that were issued before.
	beganAt, issued int64
	// before is the rate in the window before, negative if there was none.
	before float64
}

const windowTime = time.Minute

// rate returns the number of positions issued in a second, over the last windowTime or longer. issued is the number
// of all positions that were issued until now.
func (w minuteRate) rate(issued, now int64) float64 {
	if w.beganAt == 0 {
		return 0
	}
	n, elapsed := float64(issued-w.issued), time.Duration(now-w.beganAt)
	switch {
	case elapsed >= windowTime:
		return n / elapsed.Seconds()
	case w.before < 0:
		return n / windowTime.Seconds() // a burst of some seconds does not tell what comes
	}
	return (n + w.before*(windowTime-elapsed).Seconds()) / windowTime.Seconds()
}

// roll begins the next window if it is time.
func (w *minuteRate) roll(issued, now int64) {
	switch {
	case w.beganAt == 0:
		*w = minuteRate{now, issued, -1}
	case time.Duration(now-w.beganAt) >= windowTime:
		*w = minuteRate{now, issued, w.rate(issued, now)}
	}
}

// secondRate counts what a sequence issues in a second.
type secondRate struct {
	beganAt, issued int64 // when the present second began, ns of AtMost, and what was issued before
	last            int64 // what was issued in a second before
}

// update returns what was issued in the last second, or in the present one if that is more.
func (p *secondRate) update(issued, now int64) int64 {
	n := issued - p.issued
	if passed := now - p.beganAt; passed >= int64(time.Second) {
		p.last = int64(float64(n) * float64(time.Second) / float64(passed))
		p.beganAt, p.issued = now, issued
		return p.last
	}
	return max(n, p.last)
}
