package main

import (
	"os"
	"runtime"
)

// useTwoProcessors gives Go a second processor where it has chosen one. Go's monitor thread takes the only processor
// away from an event loop in each wait, and with two it leaves the loop its own.
func useTwoProcessors() {
	if onlyOne(runtime.GOMAXPROCS(0), os.Getenv("GOMAXPROCS")) {
		runtime.GOMAXPROCS(2)
	}
}

// onlyOne reports whether Go has chosen one processor itself: the process may run on one core only, and the variable
// GOMAXPROCS is empty. For a limit on CPU time, as containers have it, Go never chooses fewer than two.
func onlyOne(processors int, variable string) bool { return processors == 1 && variable == "" }
