//go:build race

package lineproto

// raceEnabled: under the race detector sync.Pool drops items at random, so
// allocations are not counted.
const raceEnabled = true
