//go:build unix

// Package ownclock gives flaked's processes a wall clock of their own, which a test can step while
// they run. The program must be built with the tag testclock: then timeguard.System adds to the
// wall clock an offset in memory that it shares with the test. The shipped binary has no such code.
//
// Only timeguard's wall clock follows, because nodes issue by it and by no other. Monotonic clocks,
// timers and the times of log messages show true time.
package ownclock

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Tag is the build tag of programs that can run on a Clock.
const Tag = "testclock"

// Clock is the wall clock of a machine. All programs that are started on it share it, also
// those that run one after another. The zero value shows true time. A Clock must not be copied,
// and may be used by any goroutine.
type Clock struct {
	mu     sync.Mutex // guards the fields below
	offset time.Duration
	file   *os.File      // holds the offset for programs; nil before Start
	shared *atomic.Int64 // the file's only content, mapped
}

// Offset returns the wall clock minus true time.
func (c *Clock) Offset() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offset
}

// Set makes the wall clock show true time plus offset. When Set returns, running programs read
// the new time.
func (c *Clock) Set(offset time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset = offset
	if c.shared != nil {
		c.shared.Store(int64(offset))
	}
}

// Start starts a program that was built with Tag on this clock. Else it does what cmd.Start does.
func (c *Clock) Start(cmd *exec.Cmd) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		if err := c.share(); err != nil {
			return err
		}
	}
	const firstExtra = 3 // see exec.Cmd
	cmd.Env = append(cmd.Environ(), fmt.Sprintf("TESTCLOCK_FD=%d", firstExtra+len(cmd.ExtraFiles)))
	cmd.ExtraFiles = append(cmd.ExtraFiles, c.file)
	return cmd.Start()
}

// share creates a file without a name and maps it.
func (c *Clock) share() error {
	file, err := os.CreateTemp("", "flaked-testclock-")
	if err != nil {
		return err
	}
	if err := os.Remove(file.Name()); err != nil {
		return err
	}
	if err := file.Truncate(8); err != nil {
		return err
	}
	page, err := syscall.Mmap(int(file.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return err
	}
	c.file, c.shared = file, (*atomic.Int64)(unsafe.Pointer(&page[0]))
	c.shared.Store(int64(c.offset))
	return nil
}
