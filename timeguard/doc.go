// Package timeguard decides how far a node may trust its clocks. Issuing is the clock that
// IDs are made by, and does not follow an unconfirmed leap. RollbackPolicy says what to do
// when the clock goes back. Lease and NextReserved set the bounds of a tenure's timestamps.
// Judge compares a clock with those of ZooKeeper's leader and of the peers. The package
// reads clocks and does no other I/O.
//
// Instants are Unix milliseconds in an int64 unless a name says nanoseconds.
//
// This package is not part of the API of flaked: its exported names may change in any release.
package timeguard
