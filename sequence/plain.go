package sequence

import (
	"fmt"
	"math"
)

// MaxJavaScript is the greatest integer that a JavaScript number holds exactly.
const MaxJavaScript = 1<<53 - 1

// Map turns positions into values: position p has the value Start + p*Increment. No value is
// above Max.
type Map struct {
	Start     int64 `json:"start"`
	Increment int64 `json:"increment"`
	Max       int64 `json:"max"`
}

// Check returns an error if the map is not usable. It must have 0 <= Start <= Max and
// Increment >= 1.
func (m Map) Check() error {
	switch {
	case m.Start < 0:
		return fmt.Errorf("start must be 0 or more, not %d", m.Start)
	case m.Increment < 1:
		return fmt.Errorf("increment must be 1 or more, not %d", m.Increment)
	case m.Max < m.Start:
		return fmt.Errorf("max (%d) must not be below start (%d)", m.Max, m.Start)
	}
	return nil
}

// Positions returns the number of positions that have a value: 0 to Positions()-1. It is at most
// math.MaxInt64.
func (m Map) Positions() int64 {
	steps := (m.Max - m.Start) / m.Increment
	if steps == math.MaxInt64 {
		return steps // one value less, instead of an overflow
	}
	return steps + 1
}

// Value returns the value of position p, 0 <= p < Positions().
func (m Map) Value(p int64) int64 { return m.Start + p*m.Increment }

// PositionAtOrAbove returns the first position whose value is v or more. It is Positions() if no
// position has one.
func (m Map) PositionAtOrAbove(v int64) int64 {
	if v <= m.Start {
		return 0
	}
	if v > m.Max {
		return m.Positions()
	}
	p := (v - m.Start) / m.Increment
	if (v-m.Start)%m.Increment != 0 {
		p++
	}
	return min(p, m.Positions())
}

// PositionAbove returns the first position whose value is above v. It is Positions() if no position has
// one.
func (m Map) PositionAbove(v int64) int64 {
	p := m.PositionAtOrAbove(v)
	if p < m.Positions() && m.Value(p) == v {
		p++
	}
	return p
}

// Used returns the part of the positions below next, from 0 to 1.
func (m Map) Used(next int64) float64 {
	return float64(min(next, m.Positions())) / float64(m.Positions())
}
