// Package sequence has the pure part of named sequences: names, the map from positions to values,
// blocks of positions, their sizes, and the rate ceiling.
//
// A position is a number 0, 1, 2, ... of a sequence. No position is given out twice. The map turns
// a position into the value that clients get.
package sequence
