package sequence

import (
	"errors"
	"fmt"
	"math"
)

// MaxJavaScript is the greatest integer that a JavaScript number holds exactly.
const MaxJavaScript = 1<<53 - 1

// Map turns positions into values, one to one. No value is above Max. A plain map gives position p the
// value Start + p*Increment. A salted or a scattered one has a key besides: see Values.
type Map struct {
	// Start is the lowest value, 0 or more.
	Start int64 `json:"start"`
	// Increment is the distance between values, 1 or more. It must be 1 with Salt or Scatter.
	Increment int64 `json:"increment"`
	// Max bounds the values. It must not be below Start.
	Max int64 `json:"max"`
	// Salt is the number of bits that a salted map appends to Start + p, 1 to MaxSalt, or 0 for none.
	Salt int `json:"salt,omitempty"`
	// Scatter is the width of a scattered map in bits, MinScatter to MaxScatter, or 0 for none: its values are Start to
	// Start + 2^Scatter - 1, in an order that only the key shows.
	Scatter int `json:"scatter,omitempty"`
}

// The bounds of Map.Salt and Map.Scatter.
const (
	MaxSalt    = 16
	MinScatter = 16
	MaxScatter = 63
)

// Check returns an error if the map is not usable. If the text is about a field, it begins with its name in JSON.
func (m Map) Check() error {
	switch {
	case m.Start < 0:
		return fmt.Errorf("start must be 0 or more, not %d", m.Start)
	case m.Increment < 1:
		return fmt.Errorf("increment must be 1 or more, not %d", m.Increment)
	case m.Max < m.Start:
		return fmt.Errorf("max (%d) must not be below start (%d)", m.Max, m.Start)
	case m.Salt < 0 || m.Salt > MaxSalt:
		return fmt.Errorf("salt must be 1 to %d bits, not %d", MaxSalt, m.Salt)
	case m.Scatter != 0 && (m.Scatter < MinScatter || m.Scatter > MaxScatter):
		return fmt.Errorf("scatter must be %d to %d bits, not %d", MinScatter, MaxScatter, m.Scatter)
	case m.Salt > 0 && m.Scatter > 0:
		return errors.New("salt must not be combined with scatter. Choose one of them")
	case m.Keyed() && m.Increment != 1:
		return fmt.Errorf("increment must be 1 with salt or scatter, not %d", m.Increment)
	case m.top() < m.Start:
		return fmt.Errorf("max (%d) must be at least (start + 1) * %d - 1 with %d bits of salt",
			m.Max, 1<<m.Salt, m.Salt)
	case m.Scatter > 0 && m.Max-m.Start < int64(1)<<(m.Scatter-1):
		return fmt.Errorf("scatter must have fewer than %d bits, because start (%d) to max (%d) are not more than "+
			"2^%d values. Or raise max", m.Scatter, m.Start, m.Max, m.Scatter-1)
	}
	return nil
}

// Keyed reports whether the values depend on a key.
func (m Map) Keyed() bool { return m.Salt > 0 || m.Scatter > 0 }

// MapName names the map: plain, salt-K or scatter-W.
func (m Map) MapName() string {
	switch {
	case m.Salt > 0:
		return fmt.Sprintf("salt-%d", m.Salt)
	case m.Scatter > 0:
		return fmt.Sprintf("scatter-%d", m.Scatter)
	}
	return "plain"
}

// top returns the greatest Start + p*Increment that the map allows. It is below 0 if there is none.
func (m Map) top() int64 {
	if m.Salt > 0 {
		return int64((uint64(m.Max)+1)>>m.Salt) - 1
	}
	return m.Max
}

// Positions returns the number of positions that have a value: 0 to Positions()-1. It is at most
// math.MaxInt64.
func (m Map) Positions() int64 {
	steps := (m.top() - m.Start) / m.Increment
	if m.Scatter > 0 {
		steps = min(steps, int64(1)<<m.Scatter-1)
	}
	if steps == math.MaxInt64 {
		return steps // one value less, instead of an overflow
	}
	return steps + 1
}

// Value returns the value of position p of a plain map, 0 <= p < Positions(). The values of other
// maps depend on the key: for them it returns the lowest value that the position can have.
func (m Map) Value(p int64) int64 {
	if m.Scatter > 0 {
		return m.Start
	}
	return (m.Start + p*m.Increment) << m.Salt
}

// Highest returns the highest value that the positions 0 to p can have, 0 <= p < Positions().
func (m Map) Highest(p int64) int64 {
	if m.Scatter > 0 {
		return m.Start + m.Positions() - 1
	}
	return m.Value(p) | (1<<m.Salt - 1)
}

// PositionAtOrAbove returns the first position from which on all values are v or more. It is
// Positions() if there is none. The values of a scattered map have no order, so there it is 0 or
// Positions().
func (m Map) PositionAtOrAbove(v int64) int64 {
	if m.Salt > 0 && v > 0 {
		v = (v-1)>>m.Salt + 1
	}
	switch {
	case v <= m.Start:
		return 0
	case v > m.top(), m.Scatter > 0:
		return m.Positions()
	}
	p := (v - m.Start) / m.Increment
	if (v-m.Start)%m.Increment != 0 {
		p++
	}
	return min(p, m.Positions())
}

// PositionAbove returns the first position from which on all values are above v. It is Positions() if
// there is none.
func (m Map) PositionAbove(v int64) int64 {
	if v == math.MaxInt64 {
		return m.Positions()
	}
	return m.PositionAtOrAbove(v + 1)
}

// Used returns the part of the positions below next, from 0 to 1.
func (m Map) Used(next int64) float64 {
	return float64(min(next, m.Positions())) / float64(m.Positions())
}
