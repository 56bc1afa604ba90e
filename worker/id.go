package worker

import "strconv"

// ID is one snowflake identifier: a 64-bit integer that is never negative. A Layout decodes
// its fields. IDs of one cluster sort by the time when they were made, as far as the clocks of
// its nodes agree and do not go back.
//
// Programs should carry an ID as a string if the other side may read numbers as doubles:
// JavaScript loses the low bits above 2^53. JSON has it as a string, database/sql as an integer of 64 bits. A column
// that may be NULL is read with sql.Null[ID].
type ID int64

// String returns the ID in decimal.
func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// Run is a reservation: Len IDs of one tick with consecutive sequence numbers, from First
// upwards. The zero Run holds no IDs.
type Run struct {
	First ID
	// Step is the distance between neighbours: 1 if the sequence is the lowest field of the
	// layout, more if other fields are below it.
	Step ID
	Len  int
}

// At returns the run's i-th ID, 0 <= i < r.Len.
func (r Run) At(i int) ID { return r.First + ID(i)*r.Step }
