package ownclock

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"
)

// Clock is the wall clock of a machine: of all programs that are started on
// it, one after another or together. The zero value shows true time. It must
// not be copied, and may be used from any goroutine.
type Clock struct {
	mu     sync.Mutex // guards what follows
	offset time.Duration
	passed time.Duration // of the offset, what all clocks are ahead by
	page   *page         // nil until a program is started; it repeats them
}

// Offset is how far the wall clock is ahead of true time.
func (c *Clock) Offset() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offset
}

// Set puts the clock that far ahead of true time, behind it if negative. When
// it returns, programs that run read the new time.
func (c *Clock) Set(offset time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(offset)
}

// Step moves the clock, back if by is negative.
func (c *Clock) Step(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(c.offset + by)
}

// set is called with mu held.
func (c *Clock) set(offset time.Duration) {
	c.offset = offset
	if c.page != nil {
		c.page.set(c.offset-c.passed, c.passed)
	}
}

// Pass has time go by: all clocks of the programs go ahead by d at once, those
// that count intervals too, which no Set brings back. A busy Go program lives
// through it as through d, as its timers go off. What a thread waits for in the
// kernel takes as long as ever, so a program that sleeps notices when it wakes.
//
// It is for Go programs. A JVM, and C's pthread_cond_timedwait, tell the kernel
// an instant to wait until, which by the true clock is that much later.
func (c *Clock) Pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passed += d
	c.set(c.offset + d)
}

// Start starts the program as cmd.Start does, with the same errors, on this
// clock. What it returns from is a child as any other: Wait, signals and the
// parent death signal work as ever, and that one still means the death of the
// thread that called Start. It fails where Supported does, and for programs
// that are not 64-bit.
func (c *Clock) Start(cmd *exec.Cmd) error {
	p, err := c.shared()
	if err != nil {
		return err
	}
	return start(cmd, p)
}

// shared returns the page of the offsets, made at the first call.
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

// Supported is nil where programs can be run on a Clock, else it says why not:
// the system is not Linux on x86-64, or tracing a child is forbidden. It has
// tried.
func Supported() error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	var c Clock
	p, err := c.shared()
	if err != nil {
		return err
	}
	return try(exec.Command(exe), p)
}

// Require skips a test that needs a Clock where there is none. In CI, and where
// `make test` asks for everything, it fails the test if the system is one that
// could: a suite that is green because nothing ran is worse than a red one.
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
