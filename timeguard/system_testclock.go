//go:build testclock

package timeguard

import (
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// System returns the machine's own clocks, with a wall clock that a test can step: see
// internal/testkit/ownclock. Shipped binaries are built without this file.
func System() Clock { return steppedClock{newSystemClock()} }

type steppedClock struct{ systemClock }

func (c steppedClock) Wall() int64 { return c.systemClock.Wall() + offset.Load() }

// offset is the wall clock minus true time, in memory that a test shares with this process.
var offset = sharedOffset()

func sharedOffset() *atomic.Int64 {
	text := os.Getenv("TESTCLOCK_FD")
	if text == "" {
		return new(atomic.Int64)
	}
	fd, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	page, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return (*atomic.Int64)(unsafe.Pointer(&page[0]))
}
