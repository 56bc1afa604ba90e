// Package sequence has the pure part of named sequences: names, the map from positions to values,
// blocks of positions, their sizes, and the rate ceiling.
//
// A position is a number 0, 1, 2, ... of a sequence. No position is given out twice. The map turns
// a position into the value that clients get. Values turns a value back into its position, so that a
// program with the key can verify the values of a salted or scattered sequence without a lookup.
package sequence
