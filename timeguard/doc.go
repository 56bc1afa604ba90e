// Package timeguard decides how far a node may trust its clocks. IssuingClock is the clock that IDs are made by, and
// does not follow an unconfirmed leap. Elapsed measures how much time has passed at least and at most (C31).
// RollbackPolicy says what to do when the clock goes back. Lease and NextReserved set the bounds of a tenure's
// timestamps. Judge compares a clock with those of ZooKeeper's leader and of the peers. The package reads clocks and
// does no other I/O.
//
// Clocks and moments are nanoseconds. Bounds, the leader's stamps, and names that end in Ms are Unix milliseconds.
//
// This package is not part of the API of flaked: its exported names may change in any release.
package timeguard
