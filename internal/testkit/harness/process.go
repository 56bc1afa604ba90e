//go:build unix

package harness

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/ownclock"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// Patience limits every wait for an event that should happen soon. Most take a second. The limit
// allows for a loaded CI machine with two cores.
const Patience = 40 * time.Second

// Within polls ok every 10 ms and reports whether it returned true within the limit. Tests use
// it instead of a fixed sleep, so that they wait no longer than necessary.
func Within(limit time.Duration, ok func() bool) bool {
	return Waits(context.Background(), limit, ok) || ok()
}

// Waits is within, until ctx ends.
func Waits(ctx context.Context, limit time.Duration, ok func() bool) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(limit)
	defer late.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-late.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// Pass blocks for d or until ctx ends. It is for the duration of faults and for pauses, not for
// waiting until something has happened.
func Pass(ctx context.Context, d time.Duration) { Waits(ctx, d, func() bool { return false }) }

func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !Within(Patience, ok) {
		t.Fatalf("after %s still not: %s", Patience, what)
	}
}

// Process is one run of the binary. The end of the test kills it.
type Process struct {
	t       testing.TB
	name    string
	Cmd     *exec.Cmd
	logFile string
	Done    chan struct{} // closed when the process has ended
}

// CleanEnv returns the environment without the variables that set flags of flaked. It switches
// the admin port off, because a node of `make run` may use the default one.
func CleanEnv() []string {
	env := []string{"FLAKED_ADMIN=off"}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "FLAKED_") {
			env = append(env, v)
		}
	}
	return env
}

// testTimes are the arguments that stand for variables of the tests. flaked has no such flags: these times
// are fixed, unless the binary is the build clocked.
var testTimes = map[string]string{
	"--reserve": "FLAKED_TEST_RESERVE", "--start-timeout": "FLAKED_TEST_START_TIMEOUT",
	"--zk-session-timeout": "FLAKED_TEST_SESSION_TIMEOUT",
}

// WithTestTimes moves the arguments of testTimes into the environment of a command, which must be set.
func WithTestTimes(cmd *exec.Cmd) {
	var args []string
	for i := 0; i < len(cmd.Args); i++ {
		if name := testTimes[cmd.Args[i]]; name != "" && i+1 < len(cmd.Args) {
			i++
			cmd.Env = append(cmd.Env, name+"="+cmd.Args[i])
			continue
		}
		args = append(args, cmd.Args[i])
	}
	cmd.Args = args
}

// Launch starts a program with variables added to the environment. If the test fails, the end of the log is shown.
func Launch(t testing.TB, env []string, name, binary string, args ...string) *Process {
	t.Helper()
	p, err := Spawn(t, env, name, filepath.Join(t.TempDir(), "log"), nil, exec.Command(binary, args...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		p.checkLog()
		if t.Failed() {
			t.Logf("--- the log of %s\n%s", p.name, LastLines(p.Log(), 60))
		}
	})
	return p
}

// Spawn starts a command, which adds its output to the file logFile, on the given clock unless that is nil: then it
// must be the build clocked. Any goroutine may call it.
func Spawn(t testing.TB, env []string, name, logFile string, clock *ownclock.Clock, cmd *exec.Cmd) (*Process, error) {
	p := &Process{t: t, name: name, Cmd: cmd, Done: make(chan struct{}), logFile: logFile}
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own descriptor
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(CleanEnv(), env...)
	WithTestTimes(cmd)
	cmd.SysProcAttr = zktest.DieWithUs()
	start := cmd.Start
	if clock != nil {
		start = func() error { return clock.Start(cmd) }
	}
	if err := start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.Done)
		_ = cmd.Wait() // see cmd.ProcessState
	}()
	return p, nil
}

func (p *Process) Log() string {
	log, err := os.ReadFile(p.logFile)
	if err != nil {
		return err.Error()
	}
	return string(log)
}

func LastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Crashed matches a line of a log about a panic, a fatal error or a data race.
var Crashed = regexp.MustCompile(
	`(?m)^(panic: |fatal error: |\[signal SIG).*|.*(DATA RACE|panic serving|runtime error:).*`)

// checkLog fails the test if the log has a panic, a fatal error or a data race.
func (p *Process) checkLog() {
	if found := Crashed.FindString(p.Log()); found != "" {
		p.t.Errorf("%s: %s\n%s", p.name, found, LastLines(p.Log(), 200))
	}
}

func (p *Process) Running() bool {
	select {
	case <-p.Done:
		return false
	default:
		return true
	}
}

// Kill ends the process by SIGKILL and waits until it has ended.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill() // it may have ended already
	<-p.Done
}

func (p *Process) Signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatalf("%s: signal %s: %v", p.name, s, err)
	}
}

// Exit waits until the process ends by itself, and returns its exit code, or -1 if a signal
// ended it.
func (p *Process) Exit() int {
	p.t.Helper()
	select {
	case <-p.Done:
	case <-time.After(Patience):
		p.t.Fatalf("%s has not ended within %s", p.name, Patience)
	}
	return p.Cmd.ProcessState.ExitCode()
}

// Freeze sends SIGSTOP and waits until all threads of the process are stopped.
func (p *Process) Freeze() {
	p.t.Helper()
	p.Signal(syscall.SIGSTOP)
	Eventually(p.t, p.name+" is stopped", func() bool { return zktest.Suspended(p.Cmd.Process.Pid) })
}

func (p *Process) Thaw() { p.t.Helper(); p.Signal(syscall.SIGCONT) }

// Result is the result of a command.
type Result struct {
	Code           int
	Stdout, Stderr string
	Took           time.Duration
}

// Execute runs the binary until it ends.
func Execute(t testing.TB, binary string, args ...string) Result {
	t.Helper()
	cmd := exec.Command(binary, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env, cmd.SysProcAttr = CleanEnv(), zktest.DieWithUs()
	WithTestTimes(cmd)
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return Result{Code: -1}
	}
	late := time.AfterFunc(Patience, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait() // see the exit code
	if !late.Stop() {
		t.Errorf("%q has not ended within %s\n%s", cmd.Args, Patience, stderr.String())
	}
	return Result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), time.Since(began)}
}
