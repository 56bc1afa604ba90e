//go:build !linux

package timeguard

// Boot is Mono where the system has no clock that counts suspend: waking up
// then looks like a leap of the wall clock, which is not followed until
// ZooKeeper or the peers confirm it.
func (c systemClock) Boot() int64 { return c.Mono() }
