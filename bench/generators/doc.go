//go:build linux

// Command generators measures flaked's generator beside those of other Go libraries, in one
// process and one run. It measures at the layout's ceiling, where most generators read the
// clock until it moves, and far below the ceiling, where only the call itself costs time. It
// checks the IDs. It also measures the effect of making IDs in advance, with a ring
// buffer of its own. `make bench-generators` runs it.
//
// It is a module of its own, so that flaked depends on none of the libraries.
package main
