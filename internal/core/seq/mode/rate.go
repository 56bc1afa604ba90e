package mode

import "time"

// minuteRate measures the rate at which a node issues positions. It begins with the first block, and begins
// anew with a block that is taken more than windowTime later.
type minuteRate struct {
	// beganAt is the time at which the window began, in ns of AtMost, 0 for no window. issued is the number of
	// positions that were issued before.
	beganAt, issued int64
	// before is the rate in the window before, negative if there was none.
	before float64
}

const windowTime = time.Minute

// PerSecond returns the number of positions issued in a second, over the last windowTime or longer.
func (c *Counts) PerSecond(now int64) float64 {
	w := c.minuteRate
	if w.beganAt == 0 {
		return 0
	}
	n, elapsed := float64(c.Issued-w.issued), time.Duration(now-w.beganAt)
	switch {
	case elapsed >= windowTime:
		return n / elapsed.Seconds()
	case w.before < 0:
		return n / windowTime.Seconds() // a burst of some seconds does not tell what comes
	}
	return (n + w.before*(windowTime-elapsed).Seconds()) / windowTime.Seconds()
}

// BeginMinute begins the next window if it is time. A mode calls it when it decides to take a block.
func (c *Counts) BeginMinute(now int64) {
	switch began := c.minuteRate.beganAt; {
	case began == 0:
		c.minuteRate = minuteRate{now, c.Issued, -1}
	case time.Duration(now-began) >= windowTime:
		c.minuteRate = minuteRate{now, c.Issued, c.PerSecond(now)}
	}
}
