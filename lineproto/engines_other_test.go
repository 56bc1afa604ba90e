//go:build !linux

package lineproto

// engines are those there are on this system.
var engines = []Engine{Goroutines}
