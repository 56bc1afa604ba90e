package e2e

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

// patience limits every wait for an event that should happen soon. Most take a second. The limit
// allows for a loaded CI machine with two cores.
const patience = 40 * time.Second

// within polls ok every 10 ms and reports whether it returned true within the limit. Tests use
// it instead of a fixed sleep, so that they wait no longer than necessary.
func within(limit time.Duration, ok func() bool) bool {
	return waits(context.Background(), limit, ok) || ok()
}

// waits is within, until ctx ends.
func waits(ctx context.Context, limit time.Duration, ok func() bool) bool {
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

// pass blocks for d or until ctx ends. It is for the duration of faults and for pauses, not for
// waiting until something has happened.
func pass(ctx context.Context, d time.Duration) { waits(ctx, d, func() bool { return false }) }

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !within(patience, ok) {
		t.Fatalf("after %s still not: %s", patience, what)
	}
}

// process is one run of the binary. The end of the test kills it.
type process struct {
	t       testing.TB
	name    string
	cmd     *exec.Cmd
	logFile string
	done    chan struct{} // closed when the process has ended
}

// cleanEnv returns the environment without the variables that set flags of flaked. It switches
// the admin port off, because a node of `make run` may use the default one.
func cleanEnv() []string {
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

// withTestTimes moves the arguments of testTimes into the environment of a command, which must be set.
func withTestTimes(cmd *exec.Cmd) {
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

// launch starts a program with variables added to the environment. If the test fails, the end of the log is shown.
func launch(t testing.TB, env []string, name, binary string, args ...string) *process {
	t.Helper()
	p, err := spawn(t, env, name, filepath.Join(t.TempDir(), "log"), nil, exec.Command(binary, args...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		p.checkLog()
		if t.Failed() {
			t.Logf("--- the log of %s\n%s", p.name, lastLines(p.log(), 60))
		}
	})
	return p
}

// spawn starts a command, which adds its output to the file logFile, on the given clock unless that is nil: then it
// must be the build clocked. Any goroutine may call it.
func spawn(t testing.TB, env []string, name, logFile string, clock *ownclock.Clock, cmd *exec.Cmd) (*process, error) {
	p := &process{t: t, name: name, cmd: cmd, done: make(chan struct{}), logFile: logFile}
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own descriptor
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(cleanEnv(), env...)
	withTestTimes(cmd)
	cmd.SysProcAttr = zktest.DieWithUs()
	start := cmd.Start
	if clock != nil {
		start = func() error { return clock.Start(cmd) }
	}
	if err := start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // see cmd.ProcessState
	}()
	return p, nil
}

func (p *process) log() string {
	log, err := os.ReadFile(p.logFile)
	if err != nil {
		return err.Error()
	}
	return string(log)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// crashed matches a line of a log about a panic, a fatal error or a data race.
var crashed = regexp.MustCompile(
	`(?m)^(panic: |fatal error: |\[signal SIG).*|.*(DATA RACE|panic serving|runtime error:).*`)

// checkLog fails the test if the log has a panic, a fatal error or a data race.
func (p *process) checkLog() {
	if found := crashed.FindString(p.log()); found != "" {
		p.t.Errorf("%s: %s\n%s", p.name, found, lastLines(p.log(), 200))
	}
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill ends the process by SIGKILL and waits until it has ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.done
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatalf("%s: signal %s: %v", p.name, s, err)
	}
}

// exit waits until the process ends by itself, and returns its exit code, or -1 if a signal
// ended it.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("%s has not ended within %s", p.name, patience)
	}
	return p.cmd.ProcessState.ExitCode()
}

// freeze sends SIGSTOP and waits until all threads of the process are stopped.
func (p *process) freeze() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	eventually(p.t, p.name+" is stopped", func() bool { return zktest.Suspended(p.cmd.Process.Pid) })
}

func (p *process) thaw() { p.t.Helper(); p.signal(syscall.SIGCONT) }

// result is the result of a command.
type result struct {
	code           int
	stdout, stderr string
	took           time.Duration
}

// execute runs the binary until it ends.
func execute(t testing.TB, binary string, args ...string) result {
	t.Helper()
	cmd := exec.Command(binary, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env, cmd.SysProcAttr = cleanEnv(), zktest.DieWithUs()
	withTestTimes(cmd)
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return result{code: -1}
	}
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait() // see the exit code
	if !late.Stop() {
		t.Errorf("%q has not ended within %s\n%s", cmd.Args, patience, stderr.String())
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), time.Since(began)}
}
