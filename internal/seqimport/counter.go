package seqimport

import (
	"errors"
	"fmt"
	"math"
)

// Counter is one row of a source.
type Counter struct {
	// Line is the number of the row's line.
	Line int
	Name string
	// First is the lowest number that the source has not issued and will not issue. After it come First +
	// Increment, and so on.
	First     int64
	Increment int64
	// Step is how many numbers the source reserves at once.
	Step int64
}

// Start returns the lowest number, 0 or more, from which steps of the increment lead to First. It is 0 only if First is.
func (c Counter) Start() int64 {
	if c.First == 0 {
		return 0
	}
	return (c.First-1)%c.Increment + 1
}

var (
	errNegative = errors.New("the next number is below 0. A sequence has no negative numbers")
	errTooLarge = errors.New("the counter has reached the greatest 64-bit number")
)

// aligned returns the lowest number from least on that leaves this remainder when it is divided by increment.
func aligned(least, increment, remainder int64) (int64, error) {
	if least < 0 {
		return 0, errNegative
	}
	up := (remainder - least%increment + increment) % increment
	return plus(least, up)
}

// plus returns a + b, of which b is not negative.
func plus(a, b int64) (int64, error) {
	if a > math.MaxInt64-b {
		return 0, errTooLarge
	}
	return a + b, nil
}

// ofLeaf returns the first free number of a row of leaf_alloc. Leaf issues [max_id - step, max_id).
func ofLeaf(f *fields) (Counter, error) {
	c := Counter{Increment: 1, Step: f.number("step", 1), First: f.number("max_id")}
	if c.Step < 1 {
		return c, fmt.Errorf("step must be 1 or more, not %d", c.Step)
	}
	return c, f.err
}

// ofTinyID returns the first free number of a row of tiny_id_info. tinyid issues (max_id - step, max_id], of which it
// leaves out all numbers with another remainder.
func ofTinyID(f *fields) (Counter, error) {
	c := Counter{Increment: f.number("delta", 1), Step: f.number("step", 1)}
	remainder := f.number("remainder", 0)
	switch {
	case c.Increment < 1 || c.Step < 1:
		return c, errors.New("delta and step must be 1 or more")
	case remainder < 0 || remainder >= c.Increment:
		return c, fmt.Errorf("remainder must be 0 to %d, below delta, not %d. No number has it", c.Increment-1, remainder)
	}
	c.Step /= c.Increment
	return c.from(f, f.number("max_id"), 1, remainder)
}

// ofMySQL returns the first free number of an AUTO_INCREMENT column. The counter may be behind the rows: statistics
// of tables are kept for a day, and MySQL 5.7 forgets it at a restart.
func ofMySQL(f *fields) (Counter, error) {
	c := Counter{Increment: f.number("auto_increment_increment", 1)}
	offset := f.number("auto_increment_offset", 1)
	if c.Increment < 1 || offset < 1 || offset > c.Increment {
		return c, errors.New("auto_increment_increment must be 1 or more, and auto_increment_offset 1 to that")
	}
	highest := f.orZero("max_id")
	counter := f.orZero("auto_increment")
	if counter > highest {
		return c.from(f, counter, 0, offset%c.Increment)
	}
	return c.from(f, highest, 1, offset%c.Increment)
}

// ofPostgres returns the first free number of a sequence.
func ofPostgres(f *fields) (Counter, error) {
	c := Counter{Increment: f.number("increment", 1)}
	if c.Increment < 1 {
		return c, fmt.Errorf("increment must be 1 or more, not %d. A sequence does not count down", c.Increment)
	}
	last, called := f.number("last_value"), f.truth("is_called")
	if !called {
		c.First = last
		return c, f.err
	}
	next, err := plus(last, c.Increment)
	c.First = next
	return c, errors.Join(f.err, err)
}

// ofRedis returns the first free number of a key that INCR has counted.
func ofRedis(f *fields) (Counter, error) {
	return Counter{Increment: 1}.from(f, f.number("value"), 1, 0)
}

// from sets First to the lowest number from base + more on with this remainder.
func (c Counter) from(f *fields, base, more, remainder int64) (Counter, error) {
	if f.err != nil {
		return c, f.err
	}
	least, err := plus(base, more)
	if err == nil {
		c.First, err = aligned(least, c.Increment, remainder)
	}
	return c, err
}
