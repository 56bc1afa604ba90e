package worker

import "strconv"

// ID is one snowflake identifier: a positive 64-bit integer whose fields a
// Layout takes apart. IDs of one cluster sort by the time of their making.
//
// Programs should carry an ID as a string where the other side may read
// numbers as doubles: JavaScript loses the low bits above 2^53.
type ID int64

// String is the ID in decimal.
func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// Run is a reservation: Len IDs of one tick with consecutive sequences, from
// First upwards.
// The zero Run holds none.
type Run struct {
	First ID
	// Step is the distance between neighbours: 1 where the sequence is the
	// lowest field of the layout, more where there are others below it.
	Step ID
	Len  int
}

// At returns the run's i-th ID, 0 <= i < r.Len.
func (r Run) At(i int) ID { return r.First + ID(i)*r.Step }
