//go:build linux

// Command generators measures flaked's generator beside those of other Go
// libraries, in one process and one run: at the ceiling of the layout, where
// most of them read the clock until it moves, and far below it, where a call
// costs what it costs. It checks all IDs that it was given. It also measures
// what making IDs in advance would bring, with a ring buffer of its own.
// `make bench-generators` runs it.
//
// It is a module of its own, so that flaked depends on none of the libraries.
package main
