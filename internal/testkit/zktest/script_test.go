//go:build unix

package zktest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/go-zookeeper/zk"
)

// script runs scripts/zk-dev.sh and returns its stdout and exit status.
func script(t *testing.T, args ...string) (stdout string, status int) {
	t.Helper()
	path, err := filepath.Abs("../../../scripts/zk-dev.sh")
	if err != nil {
		t.Fatal(err)
	}
	var out, said bytes.Buffer
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Logf("zk-dev.sh %s: status %d\n%s%s", strings.Join(args, " "), cmd.ProcessState.ExitCode(), out.String(), said.String())
	return out.String(), cmd.ProcessState.ExitCode()
}

func TestZkDevScriptKeepsDataOverRestart(t *testing.T) {
	t.Parallel()
	require(t)
	dir := filepath.Join(t.TempDir(), "zk")
	t.Cleanup(func() { script(t, "stop", "--wipe", "--dir", dir) })
	run := func(want int, args ...string) string {
		t.Helper()
		out, status := script(t, append(args, "--dir", dir)...)
		if status != want {
			t.Fatalf("%q: status %d, want %d", args, status, want)
		}
		return out
	}
	first := run(0, "start", "--port", "0", "--nodes", "3")
	again := func() {
		t.Helper()
		if got := run(0, "start"); got != first {
			t.Errorf("a further start: %q, want %q", got, first)
		}
	}
	_, addrs, _ := strings.Cut(strings.TrimSpace(first), "=")
	servers := strings.Split(addrs, ",")
	if err := create(servers, "/kept"); err != nil || len(servers) != 3 {
		t.Fatalf("%q: %v", first, err)
	}
	again()
	run(1, "start", "--nodes", "1")

	// As the help text says: kill the leader, look, start again.
	leader := regexp.MustCompile(`(\d+) +leader`).FindStringSubmatch(run(0, "status"))
	if leader == nil {
		t.Fatal("no leader")
	}
	pid, _ := strconv.Atoi(leader[1])
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if !Poll(Timeout, func() bool { return exited(pid) }) {
		t.Fatalf("process %d does not end", pid)
	}
	run(1, "status")
	again()
	run(0, "status")
	run(0, "stop")
	run(3, "status")
	again()
	if err := create(servers, "/kept"); !errors.Is(err, zk.ErrNodeExists) {
		t.Errorf("the data are not kept: %v", err)
	}
}

// pretend starts a process with the given arguments, and takes it for server n of the
// directory: it writes the files that a start leaves. finish lets the process end, and reports
// whether no signal has ended it before.
func pretend(t *testing.T, dir string, n int, args ...string) (cmd *exec.Cmd, finish func() bool) {
	t.Helper()
	node := filepath.Join(dir, fmt.Sprintf("node%d", n))
	if err := os.MkdirAll(node, 0o700); err != nil {
		t.Fatal(err)
	}
	// cat has the files in its arguments, and reads until its input is closed.
	cmd = exec.Command("cat", append(args, "-")...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(node, "zoo.cfg"), fmt.Appendf(nil, "clientPort=%d\n", n), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Just after exec the kernel shows no arguments yet.
	Poll(Timeout, func() bool {
		shown, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid))
		return len(shown) > 0
	})
	finish = sync.OnceValue(func() bool { stdin.Close(); return cmd.Wait() == nil })
	t.Cleanup(func() { cmd.Process.Kill(); finish() })
	if err := os.WriteFile(filepath.Join(node, "pid"), fmt.Appendln(nil, cmd.Process.Pid), 0o600); err != nil {
		t.Fatal(err)
	}
	return cmd, finish
}

// A pid file may be older than the process that has the pid today.
func TestZkDevScriptEndsOnlyItsOwnProcesses(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("zk-dev.sh needs Linux")
	}
	dir, otherDir := t.TempDir(), t.TempDir()
	config := func(dir string, n int) string { return filepath.Join(dir, fmt.Sprintf("node%d/zoo.cfg", n)) }
	_, ours := pretend(t, dir, 1, config(dir, 1))
	frozen, ourFrozen := pretend(t, dir, 2, config(dir, 2))
	if err := frozen.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	_, foreign := pretend(t, dir, 3)
	_, theirs := pretend(t, otherDir, 1, config(otherDir, 1))
	for _, file := range []string{filepath.Join(dir, "kept"), filepath.Join(dir, "state")} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	if table, status := script(t, "status", "--dir", dir); status != 1 || strings.Count(table, " stopped ") != 1 {
		t.Errorf("status: status %d; want 1, and one server stopped", status)
	}
	if out, status := script(t, "stop", "--wipe", "--dir", dir); status != 0 || out != "" {
		t.Errorf("stop: status %d, stdout %q; want 0 and nothing", status, out)
	}
	if ours() || ourFrozen() {
		t.Error("stop let a process of this directory run on")
	}
	if !foreign() {
		t.Error("stop ended a process that only has the pid of a pid file")
	}
	if !theirs() {
		t.Error("stop ended a process of another directory")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "kept" {
		t.Errorf("after a wipe the directory has %v, %v; want only what the script did not write", left, err)
	}
	if _, status := script(t, "status", "--dir", dir); status != 3 {
		t.Errorf("status after a wipe: status %d, want 3", status)
	}
}
