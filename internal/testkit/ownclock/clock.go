package ownclock

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"
)

// Clock is the wall clock of a machine. All programs that are started on it share it, also
// those that run one after another. The zero value shows true time. A Clock must not be copied,
// and may be used by any goroutine.
type Clock struct {
	mu     sync.Mutex    // guards the fields below
	offset time.Duration // wall clock minus true time
	passed time.Duration // the part of offset that applies to all clocks
	page   *page         // a copy of both for programs; nil before Start
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
	c.set(offset)
}

// Step moves the wall clock by the given duration, back if it is negative.
func (c *Clock) Step(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(c.offset + by)
}

// set is Set for a caller that holds mu.
func (c *Clock) set(offset time.Duration) {
	c.offset = offset
	if c.page != nil {
		c.page.set(c.offset-c.passed, c.passed)
	}
}

// Pass lets time d pass at once: it moves all clocks of the programs ahead by d. That includes
// CLOCK_MONOTONIC and CLOCK_BOOTTIME, and Set does not move these two back. The timers of a busy
// Go program go off as if d had passed. A wait in the kernel still takes its full time, so a
// program that sleeps notices only when it wakes.
//
// Pass is for Go programs only. A JVM, and C's pthread_cond_timedwait, give the kernel an
// absolute time to wait until. The kernel compares it with the true clock, and so the wait takes
// d longer.
func (c *Clock) Pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passed += d
	c.set(c.offset + d)
}

// Start starts the program on this clock. It does what cmd.Start does, and returns the same
// errors. The program is an ordinary child: Wait, signals and the parent death signal work as
// usual. (The kernel sends the parent death signal when the thread that called Start ends.)
// Start fails where Supported returns an error, for programs that are not 64-bit, and if
// cmd.SysProcAttr.Ptrace is set.
func (c *Clock) Start(cmd *exec.Cmd) error {
	defer runtime.KeepAlive(c) // its cleanup closes the page
	p, err := c.shared()
	if err != nil {
		return err
	}
	return start(cmd, p)
}

// shared returns the page with the offsets. The first call creates it.
func (c *Clock) shared() (*page, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.page == nil {
		p, err := newPage()
		if err != nil {
			return nil, err
		}
		p.set(c.offset-c.passed, c.passed)
		runtime.AddCleanup(c, (*page).close, p)
		c.page = p
	}
	return c.page, nil
}

// Supported returns nil if programs can run on a Clock here. Its error gives the reason if not:
// the system is not Linux on x86-64, or tracing a child is forbidden. It tries this by starting
// the running executable, which it kills before the first instruction.
func Supported() error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	c := new(Clock)
	defer runtime.KeepAlive(c) // its cleanup closes the page
	p, err := c.shared()
	if err != nil {
		return err
	}
	return try(exec.Command(exe), p)
}

// Require skips the test if Supported returns an error. In CI and under `make test` it fails the
// test instead, if the system is Linux on x86-64. Otherwise a suite could pass because its tests
// did not run.
func Require(t testing.TB) {
	t.Helper()
	err := Supported()
	if err == nil {
		return
	}
	asked := os.Getenv("CI") == "true" || os.Getenv("FLAKED_TEST_ZK") == "require"
	if asked && runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
		t.Fatalf("no program can be given a wall clock of its own here: %v", err)
	}
	t.Skipf("needs a wall clock of its own for a program: %v", err)
}
