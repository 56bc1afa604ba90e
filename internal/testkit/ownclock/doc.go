// Package ownclock runs a real program with a wall clock of its own, which a test can step
// while the program runs. The program may be the shipped flaked, the JVM of a ZooKeeper server
// or a shell. The package needs no privileges and no stub process, and does not change the
// machine's clock.
//
//	var machine ownclock.Clock
//	machine.Start(cmd)           // true time
//	machine.Step(-time.Hour)     // an hour back, at once
//
// # How it works
//
// Programs read the time in the vDSO, a small library that the kernel maps into every process.
// There is no system call to intercept, and a preloaded library has no effect on a static Go
// binary. So Start stops the program at its exec, before its first instruction, and maps two
// pages into it. The first page holds code that calls the vDSO and adds an offset. The second
// page holds the offsets, and is shared with the Clock. Start points the vDSO's symbols for
// clock_gettime, gettimeofday and time to the first page. After Start has returned, the program
// is not traced, has no additional file open and depends on no goroutine of this process.
//
// The overhead is small. time.Now, which reads both clocks, takes 58 ns instead of 47. A reading
// of the monotonic clock takes 31 ns instead of 29, and a start half a millisecond more. The
// program's clock does not depend on this process, which may be busy, frozen or dead. (A seccomp
// listener that answers system calls costs some 10 us a reading, and far more while this process
// loads the machine.)
//
// # What follows the Clock
//
// CLOCK_REALTIME and CLOCK_REALTIME_COARSE of the program, and of processes that it forks,
// follow the Clock. CLOCK_MONOTONIC and CLOCK_BOOTTIME show true time, as on a machine whose
// wall clock is set. Only Pass moves them as well.
//
// These also show true time:
//   - a process that the program starts by exec, because the process gets its own vDSO;
//   - system calls made without the C library or Go's runtime;
//   - the kernel: the times of files, and waits until an absolute wall-clock time. Go waits
//     by the monotonic clock, and so does the JVM, except for LockSupport.parkUntil.
package ownclock
