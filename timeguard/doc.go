// Package timeguard decides how far a node may trust its clocks: the issuing
// clock that does not follow an unconfirmed leap, Leaf's rollback rule, the
// bounds that fence a tenure's timestamps, and the verdict on skew against
// ZooKeeper's clock and the peers'. It reads clocks and does no other I/O.
//
// Instants are Unix milliseconds in an int64 unless a name says nanoseconds.
package timeguard
