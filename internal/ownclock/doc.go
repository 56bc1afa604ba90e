// Package ownclock runs a real program with a wall clock of its own, which a
// test can step while the program runs: the shipped flaked, a ZooKeeper's JVM,
// a shell. No privileges, no stub process, no change to the machine's clock.
//
//	var machine ownclock.Clock
//	machine.Start(cmd)           // true time
//	machine.Step(-time.Hour)     // an hour back, at once
//
// # How
//
// Programs read the time in the vDSO, a small library that the kernel maps into
// every process: there is no system call to catch, and a preloaded library
// does not reach a static Go binary. So Start has the program stop at its exec,
// before its first instruction, maps two pages into it, and points the vDSO's
// symbols of clock_gettime, gettimeofday and time to the first. It holds code
// that asks the vDSO and adds an offset; the second holds the offsets, and is
// shared with the Clock. Then Start lets go: nobody traces the program
// any more, no file is left open in it, and no goroutine serves it.
//
// time.Now, which reads both clocks, takes 58 ns instead of 47, the monotonic
// clock alone 31 instead of 29, and a start half a millisecond more: what is
// measured is the program. Nothing waits for this process: the program's clock
// goes on however busy, frozen or dead we are. (A seccomp listener that answers
// system calls in our place costs some 10 us a reading, and as long as our
// scheduler takes when it is we who load the machine.)
//
// # What goes by the Clock and what does not
//
// CLOCK_REALTIME and CLOCK_REALTIME_COARSE of the program and of processes it
// forks go by it. What counts intervals does not: CLOCK_MONOTONIC and
// CLOCK_BOOTTIME are true, as on a machine whose wall clock is set. Pass is the
// exception: it moves them all.
//
// True time is also what these see: a process that the program starts by exec
// (it gets a vDSO of its own), system calls made without the C library or Go's
// runtime, and the kernel itself, that is the times of files and waits until an
// absolute wall-clock time. Go waits by the monotonic clock, as the JVM does but
// for LockSupport.parkUntil.
package ownclock
