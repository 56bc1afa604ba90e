package seqimport

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Margin is how many numbers are left out, because the source goes on while the rows are read.
type Margin struct {
	numbers int64
	percent int64 // -1: numbers counts
}

// leastSteps is how many steps of the source a margin in percent has at least.
const leastSteps = 10

// ParseMargin returns the margin of a text: a number of numbers, or a part as 10%.
func ParseMargin(text string) (Margin, error) {
	digits, percent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case err != nil || n < 0:
		return Margin{}, errors.New("must be a number such as 1000, or a part such as 10%")
	case percent && n > 100:
		return Margin{}, errors.New("must be at most 100%")
	case percent:
		return Margin{percent: n}, nil
	}
	return Margin{numbers: n, percent: -1}, nil
}

// After returns the number with which a sequence begins that continues the counter. A margin in percent is that
// part of the numbers that the counter has used, and ten of its steps at least.
func (m Margin) After(c Counter) (int64, error) {
	numbers := m.numbers
	if m.percent >= 0 {
		used := (c.First - c.Start()) / c.Increment
		part := used/100*m.percent + used%100*m.percent/100
		numbers = max(part, min(max(c.Step, 1), 1<<40)*leastSteps)
	}
	if numbers > (1<<63-1-c.First)/c.Increment {
		return 0, fmt.Errorf("the margin leads above the greatest 64-bit number. Give a smaller --margin")
	}
	return c.First + numbers*c.Increment, nil
}
