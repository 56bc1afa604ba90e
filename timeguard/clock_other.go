//go:build !linux

package timeguard

// Boot returns Mono, because this system has no clock that counts suspend. Waking up then
// looks like a leap of the wall clock. The issuing clock follows it only after ZooKeeper's
// leader and most peers have confirmed it.
func (c systemClock) Boot() int64 { return c.Mono() }
