package ownclock

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const year = 365 * 24 * time.Hour

func TestStepsWhileItRuns(t *testing.T) {
	t.Parallel()
	Require(t)
	var c Clock
	p := run(t, &c, helper(t, "answer-readings"))
	p.shows(0)
	for _, offset := range []time.Duration{
		1, -1, time.Microsecond - 1, time.Second - 1, 1 - time.Second, time.Second, -time.Second,
		-3 * time.Millisecond, -50 * time.Millisecond, -time.Hour, time.Hour, year, -20 * year, 100 * year, 0,
	} {
		c.Set(offset)
		for range 20 { // the nanoseconds carry in some of these only
			p.shows(offset)
		}
	}
	c.Step(-time.Hour)
	c.Step(time.Millisecond)
	p.shows(time.Millisecond - time.Hour)
	if got := c.Offset(); got != time.Millisecond-time.Hour {
		t.Errorf("Offset is %s", got)
	}
}

// The page of a clock stays open while a program is started on it, also if the garbage collector
// runs then.
func TestCollectorLeavesThePageOpen(t *testing.T) {
	t.Parallel()
	Require(t)
	var stop atomic.Bool
	var collector sync.WaitGroup
	collector.Go(func() {
		for !stop.Load() {
			runtime.GC()
		}
	})
	defer collector.Wait()
	defer stop.Store(true)
	for range 20 {
		if err := Supported(); err != nil {
			t.Fatal(err)
		}
	}
}

// Pass moves all clocks, and Set does not take it back in the clocks that count intervals.
func TestPass(t *testing.T) {
	t.Parallel()
	Require(t)
	var c Clock
	c.Set(-time.Minute)
	p := run(t, &c, helper(t, "answer-readings"))
	p.shows(-time.Minute)
	for range 20 {
		c.Pass(time.Minute + time.Nanosecond)
		p.hasPassed(c.Offset(), time.Minute+time.Nanosecond)
	}
	c.Set(-time.Hour)
	p.shows(-time.Hour)
	c.Pass(24 * time.Hour)
	p.hasPassed(23*time.Hour, 24*time.Hour)
	run(t, &c, helper(t, "answer-readings")).shows(23 * time.Hour)

	// A busy Go program notices at once.
	timers := run(t, &c, helper(t, "wait-busily", "1h"))
	if got := timers.line(); got != "waiting" {
		t.Fatalf("it says %q", got)
	}
	began := time.Now()
	c.Pass(time.Hour)
	if got := timers.line(); got != "done" {
		t.Fatalf("it says %q", got)
	}
	t.Logf("a timer of an hour went off after %s", time.Since(began))
}

// Programs on one clock share it, also if they run one after another. Two clocks are
// independent.
func TestClocksAreIndependent(t *testing.T) {
	t.Parallel()
	Require(t)
	var a, b Clock
	a.Set(time.Hour)
	first, other := run(t, &a, helper(t, "answer-readings")), run(t, &b, helper(t, "answer-readings"))
	first.shows(time.Hour)
	other.shows(0)
	b.Step(-time.Minute)
	first.shows(time.Hour)
	other.shows(-time.Minute)

	first.cmd.Process.Kill()
	first.cmd.Wait()
	a.Step(time.Hour) // while no program runs
	second, third := run(t, &a, helper(t, "answer-readings")), run(t, &a, helper(t, "answer-readings"))
	second.shows(2 * time.Hour)
	a.Set(0)
	second.shows(0)
	third.shows(0)
	other.shows(-time.Minute)
}

// A C program, and a child that it forks, read the clock through gettimeofday and time. A
// program that it executes sees true time, as the package comment says.
func TestForksShareTheClock(t *testing.T) {
	t.Parallel()
	Require(t)
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash: it reads the clock itself, and forks without exec")
	}
	var c Clock
	p := run(t, &c, exec.Command(bash, "-c", `
		while read; do
			echo ${EPOCHREALTIME%.*}
			printf '%(%s)T\n' -1
			(echo ${EPOCHREALTIME%.*}; printf '%(%s)T\n' -1)
			date +%s
		done`))
	for _, offset := range []time.Duration{0, -time.Hour, 1500 * time.Millisecond} {
		c.Set(offset)
		before := time.Now()
		if _, err := io.WriteString(p.in, "\n"); err != nil {
			t.Fatal(err)
		}
		for _, who := range []string{"bash by gettimeofday", "bash by time", "a subshell by gettimeofday", "a subshell by time", "date"} {
			offset := offset
			if who == "date" {
				offset = 0
			}
			var got int64
			p.scan(&got)
			const tick = 200 * time.Millisecond // time reads the kernel's last tick
			if low, high := before.Add(offset-tick).Unix(), time.Now().Add(offset).Unix(); got < low || got > high {
				t.Errorf("%s at %s says %d, want %d to %d", who, offset, got, low, high)
			}
		}
	}
}

func TestStoppedAndContinued(t *testing.T) {
	t.Parallel()
	Require(t)
	var c Clock
	p := run(t, &c, helper(t, "answer-readings"))
	p.shows(0)
	for _, offset := range []time.Duration{-time.Hour, time.Hour} {
		if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is stopped", func() bool { return state(p.cmd.Process.Pid) == 'T' })
		c.Set(offset)
		if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		p.shows(offset)
	}
}

// No reading is wrong, with many threads, with the garbage collector's signals between any two
// instructions, and with steps of the clock during a reading.
func TestNoReadingIsWrongUnderLoad(t *testing.T) {
	t.Parallel()
	Require(t)
	var c Clock
	p := run(t, &c, helper(t, "read-busily", "0s", "-1h", "1ns"))
	if got := p.line(); got != "reading" {
		t.Fatalf("it says %q", got)
	}
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	for i := range 100 {
		<-pace.C
		c.Set([]time.Duration{-time.Hour, 1, 0}[i%3])
	}
	p.in.Close()
	var readings, off int64
	p.scan(&readings, &off)
	t.Logf("%d readings, the worst %s off", readings, time.Duration(off))
	if readings < 1000 || off > int64(time.Millisecond) {
		t.Errorf("%d readings, the worst %s off", readings, time.Duration(off))
	}
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// kill -9 ends the program like any other child, at any moment and also during a reading. It
// leaves no goroutine and no open file in this process.
func TestKillLeavesNothing(t *testing.T) {
	Require(t)
	var c Clock
	open := func() int {
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	goroutines, files := 0, 0
	for round := range 20 {
		if round == 1 { // by now the clock's file and the runtime's poller are open
			goroutines, files = runtime.NumGoroutine(), open()
		}
		c.Step(-time.Hour)
		p := run(t, &c, helper(t, "read-busily", "0s"))
		p.line()
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := p.cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("Wait says %v", err)
		}
	}
	if now := runtime.NumGoroutine(); now > goroutines {
		t.Errorf("%d goroutines, and there were %d", now, goroutines)
	}
	if now := open(); now > files {
		t.Errorf("%d open files, and there were %d", now, files)
	}
}

// The program gets the settings of its command, and neither a tracer nor a file of this package
// is left in it.
func TestStartKeepsCommandSettings(t *testing.T) {
	t.Parallel()
	Require(t)
	file := filepath.Join(t.TempDir(), "extra")
	if err := os.WriteFile(file, []byte("extra file"), 0o600); err != nil {
		t.Fatal(err)
	}
	extra, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer extra.Close()
	cmd := exec.Command("sh", "-c", `cat <&3; echo; pwd; echo $$ $WORD; grep TracerPid /proc/$$/status; ls -l /proc/$$/fd >&2; exit 7`)
	var out, files bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &files
	cmd.Dir, cmd.Env = "/", append(os.Environ(), "WORD=word")
	cmd.ExtraFiles = append(make([]*os.File, 0, 8), extra)
	attr := &syscall.SysProcAttr{Setsid: true}
	cmd.SysProcAttr = attr
	var c Clock
	if err := c.Start(cmd); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 7 {
		t.Errorf("exit %d, %v", code, err)
	}
	if want := fmt.Sprintf("extra file\n/\n%d word\nTracerPid:\t0\n", cmd.Process.Pid); out.String() != want {
		t.Errorf("it says %q, want %q", out.String(), want)
	}
	if strings.Contains(files.String(), "ownclock") || !strings.Contains(files.String(), file) {
		t.Errorf("it has these files open:\n%s", files.String())
	}
	if cmd.SysProcAttr != attr || attr.Ptrace || len(cmd.ExtraFiles) != 1 || cmd.ExtraFiles[:2][1] != nil {
		t.Errorf("Start has left the command changed: %+v, %v", cmd.SysProcAttr, cmd.ExtraFiles[:2])
	}
}

// The parent death signal works for a program that Start traced.
func TestDiesWithItsParent(t *testing.T) {
	t.Parallel()
	Require(t)
	p := run(t, nil, helper(t, "start-another"))
	pid, err := strconv.Atoi(p.line())
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Process.Kill()
	eventually(t, "the program has died with its parent", func() bool { s := state(pid); return s == 0 || s == 'Z' })
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	Require(t)
	var c Clock
	if err := c.Start(exec.Command("/nowhere/to/be/found")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
	cmd := exec.Command("true")
	if err := c.Start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(cmd); err == nil {
		t.Error("started twice")
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	traced := exec.Command("true")
	traced.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := c.Start(traced); err == nil {
		t.Error("a program that somebody else is to trace was started")
	}
}

// The benchmark measures a reading in a program without a Clock and in one with a Clock.
func BenchmarkReading(b *testing.B) {
	Require(b)
	for _, what := range []string{"wall", "mono"} {
		for name, c := range map[string]*Clock{"plain": nil, "own": new(Clock)} {
			b.Run(what+"/"+name, func(b *testing.B) {
				if c != nil {
					c.Set(time.Hour)
				}
				var ns int64
				run(b, c, helper(b, "read-often", strconv.Itoa(b.N), what)).scan(&ns)
				b.ReportMetric(float64(ns)/float64(b.N), "ns/op")
			})
		}
	}
}

func BenchmarkStart(b *testing.B) {
	Require(b)
	for name, c := range map[string]*Clock{"plain": nil, "own": new(Clock)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				cmd := exec.Command("true")
				start := cmd.Start
				if c != nil {
					start = func() error { return c.Start(cmd) }
				}
				if err := start(); err != nil {
					b.Fatal(err)
				}
				if err := cmd.Wait(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
