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

// The tests run their own binary as the program. Its first argument selects the helper.
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
	"wait-busily":     waitBusily,
	"start-another":   startAnother,
}

// helper returns a command that runs the test binary as one of the helpers. The kernel kills the
// program when the test binary ends.
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

// reading holds one reading of each clock, in nanoseconds.
type reading struct {
	wall, micro int64 // time.Now, gettimeofday
	mono        int64 // the monotonic clock, since the program's start
	call        int64 // CLOCK_MONOTONIC, by a system call
}

func (r reading) String() string { return fmt.Sprint(r.wall, r.micro, r.mono, r.call) }

func read(began time.Time) (r reading) {
	r.wall = time.Now().UnixNano()
	var tv syscall.Timeval
	must(syscall.Gettimeofday(&tv))
	r.micro = tv.Nano()
	r.mono = int64(time.Since(began))
	var ts unix.Timespec
	must(unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts))
	r.call = ts.Nano()
	return r
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// answerReadings prints a reading for each line of its input.
func answerReadings([]string) {
	began := time.Now()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(read(began))
	}
}

// readBusily reads the clocks in eight goroutines until its input ends. Meanwhile it keeps the
// garbage collector busy, so that signals interrupt the readings. Its arguments are the offsets
// between which the test steps the clock. readBusily prints the number of readings and the
// largest error in ns: the distance of a reading from the nearest offset.
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
	base := time.Now() // with the first offset
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
				// The wall clock has moved by this against the monotonic clock.
				moved := now.Round(0).Sub(base.Round(0)) - now.Sub(base)
				off := time.Duration(1<<63 - 1)
				for _, o := range offsets {
					off = min(off, (moved - (o - offsets[0])).Abs())
				}
				most = max(most, off-(after-before)) // an interruption is no error
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

// readOften reads a clock args[0] times and prints the time that this took, in ns.
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

// waitBusily waits for a timer of duration args[0] in a busy loop.
func waitBusily(args []string) {
	d, err := time.ParseDuration(args[0])
	must(err)
	timer := time.NewTimer(d)
	fmt.Println("waiting")
	for {
		select {
		case <-timer.C:
			fmt.Println("done")
			return
		default:
			runtime.Gosched()
		}
	}
}

// startAnother starts a program on a clock of its own, prints its process ID, and waits for it.
// The program runs for longer than any test.
func startAnother([]string) {
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(new(Clock).Start(cmd))
	fmt.Println(cmd.Process.Pid)
	must(cmd.Wait())
}

// program is a running command.
type program struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader

	// mono is the last reading of the program's monotonic clock. before and after are the
	// test's own readings around it.
	before, mono, after int64
}

// run starts a command on a clock, or without one if c is nil.
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

// line returns the next line of the program's output, without the line end.
func (p *program) line() string {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatalf("%q: %q and %v", p.cmd.Args, line, err)
	}
	return strings.TrimSuffix(line, "\n")
}

// read makes the program read its clocks, and returns the reading.
func (p *program) read() (r reading) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, "\n"); err != nil {
		p.t.Fatal(err)
	}
	p.scan(&r.wall, &r.micro, &r.mono, &r.call)
	return r
}

// scan parses the next line of the program's output.
func (p *program) scan(to ...any) {
	p.t.Helper()
	line := p.line()
	if _, err := fmt.Sscan(line, to...); err != nil {
		p.t.Fatalf("%q: %q: %v", p.cmd.Args, line, err)
	}
}

// shows checks that the program's wall clock is off by offset, and that its monotonic clock has
// advanced as much as the test's own since the last check.
func (p *program) shows(offset time.Duration) {
	p.t.Helper()
	p.hasPassed(offset, 0)
}

// hasPassed is shows, except that Pass has moved the monotonic clock by passed since the last
// check.
func (p *program) hasPassed(offset, passed time.Duration) {
	p.t.Helper()
	before := read(origin)
	got := p.read()
	after := read(origin)
	check := func(name string, got, low, high int64) {
		p.t.Helper()
		if got < low || got > high {
			p.t.Errorf("%s on a clock %s off is %d: %s before the least it can be, %s after the most",
				name, offset, got, time.Duration(low-got), time.Duration(got-high))
		}
	}
	check("time.Now", got.wall, before.wall+int64(offset), after.wall+int64(offset))
	check("gettimeofday", got.micro, before.micro+int64(offset)-1000, after.micro+int64(offset)+1000)
	check("a system call", got.call, before.call, after.call)
	if p.after != 0 {
		check("the monotonic clock", got.mono-p.mono, before.mono-p.after+int64(passed), after.mono-p.before+int64(passed))
	}
	p.before, p.mono, p.after = before.mono, got.mono, after.mono
}

// origin is the zero of the test's own readings of the monotonic clock.
var origin = time.Now()

// state returns the state letter of a process, or 0 if there is no such process.
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
