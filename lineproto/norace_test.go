//go:build !race

package lineproto

const raceEnabled = false
