package ownclock

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The tests' program is the test binary itself, told by an argument what to do.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if do, ok := helpers[os.Args[1]]; ok {
			do(os.Args[2:])
			return
		}
	}
	os.Exit(m.Run())
}

var helpers = map[string]func(args []string){
	"answer-readings": answerReadings,
	"read-busily":     readBusily,
	"read-often":      readOften,
	"start-another":   startAnother,
}

// helper is a command that runs the test binary as one of the helpers. It dies
// with the test.
func helper(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// reading is what a program sees, in nanoseconds.
type reading struct {
	wall, micro, mono, boot int64 // time.Now, gettimeofday, CLOCK_MONOTONIC, CLOCK_BOOTTIME
}

func (r reading) String() string {
	return fmt.Sprint(r.wall, r.micro, r.mono, r.boot)
}

func read() (r reading) {
	r.wall = time.Now().UnixNano()
	var tv syscall.Timeval
	must(syscall.Gettimeofday(&tv))
	r.micro = tv.Nano()
	var ts unix.Timespec
	must(unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts))
	r.mono = ts.Nano()
	must(unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts))
	r.boot = ts.Nano()
	return r
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// answerReadings reads the clocks for each line that it is sent.
func answerReadings([]string) {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(read())
	}
}

// readBusily reads the clocks on many goroutines, with the garbage collector
// at work and its signals coming in, until its input ends. It tells how many
// readings there were, and the most that one was off from each of the offsets
// in its arguments, which are those that its clock is stepped between.
func readBusily(args []string) {
	var offsets []time.Duration
	for _, a := range args {
		d, err := time.ParseDuration(a)
		must(err)
		offsets = append(offsets, d)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	readings, worst := 0, time.Duration(0)
	base := time.Now() // at the first of the offsets
	for range 8 {
		wg.Go(func() {
			n, most := 0, time.Duration(0)
			for {
				select {
				case <-done:
					mu.Lock()
					readings, worst = readings+n, max(worst, most)
					mu.Unlock()
					return
				default:
				}
				before := time.Since(base)
				now := time.Now()
				after := time.Since(base)
				// How far the wall clock has moved against the monotonic one.
				moved := now.Round(0).Sub(base.Round(0)) - now.Sub(base)
				off := time.Duration(1<<63 - 1)
				for _, o := range offsets {
					off = min(off, (moved - (o - offsets[0])).Abs())
				}
				most = max(most, off-(after-before)) // it may have been interrupted in between
				n++
			}
		})
	}
	wg.Go(func() {
		for garbage := [][]byte{}; ; {
			select {
			case <-done:
				return
			default:
			}
			garbage = append(garbage[:len(garbage)%64], make([]byte, 1<<16))
			runtime.GC()
		}
	})
	fmt.Println("reading")
	_, err := io.Copy(io.Discard, os.Stdin)
	must(err)
	close(done)
	wg.Wait()
	fmt.Println(readings, int64(worst))
}

// readOften reads a clock as often as it is told, and tells how long it took.
func readOften(args []string) {
	n, err := strconv.Atoi(args[0])
	must(err)
	began := time.Now()
	switch args[1] {
	case "wall":
		for range n {
			_ = time.Now()
		}
	case "mono":
		for range n {
			_ = time.Since(began)
		}
	}
	fmt.Println(int64(time.Since(began)))
}

// startAnother starts a program that does not end, on a clock of its own, tells
// its number, and does not end either.
func startAnother([]string) {
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(new(Clock).Start(cmd))
	fmt.Println(cmd.Process.Pid)
	must(cmd.Wait())
}

// program is a helper that runs.
type program struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// run starts a command on a clock, or on none.
func run(t testing.TB, c *Clock, cmd *exec.Cmd) *program {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start := cmd.Start
	if c != nil {
		start = func() error { return c.Start(cmd) }
	}
	if err := start(); err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, cmd: cmd, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return p
}

// line returns what the program says next, without its end.
func (p *program) line() string {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatalf("%q: %q and %v", p.cmd.Args, line, err)
	}
	return strings.TrimSuffix(line, "\n")
}

// read has the program read its clocks.
func (p *program) read() (r reading) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, "\n"); err != nil {
		p.t.Fatal(err)
	}
	p.scan(&r.wall, &r.micro, &r.mono, &r.boot)
	return r
}

// scan takes the next line apart.
func (p *program) scan(to ...any) {
	p.t.Helper()
	line := p.line()
	if _, err := fmt.Sscan(line, to...); err != nil {
		p.t.Fatalf("%q: %q: %v", p.cmd.Args, line, err)
	}
}

// shows checks that the program's clocks are what a clock says.
func (p *program) shows(offset time.Duration) {
	p.t.Helper()
	before := read()
	got := p.read()
	after := read()
	for _, c := range []struct {
		name                string
		before, got, after  int64
		offset, granularity time.Duration
	}{
		{"time.Now", before.wall, got.wall, after.wall, offset, 0},
		{"gettimeofday", before.micro, got.micro, after.micro, offset, time.Microsecond},
		{"CLOCK_MONOTONIC", before.mono, got.mono, after.mono, 0, 0},
		{"CLOCK_BOOTTIME", before.boot, got.boot, after.boot, 0, 0},
	} {
		low := c.before + int64(c.offset) - int64(c.granularity)
		high := c.after + int64(c.offset) + int64(c.granularity)
		if c.got < low || c.got > high {
			p.t.Errorf("%s on a clock %s off is %d: %s before the least it can be, %s after the most",
				c.name, offset, c.got, time.Duration(low-c.got), time.Duration(c.got-high))
		}
	}
}

// state is the state letter of a process, 0 when it is gone.
func state(pid int) byte {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	_, rest, ok := strings.Cut(string(stat), ") ")
	if err != nil || !ok {
		return 0
	}
	return rest[0]
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
	}
}
