//go:build unix

package zktest

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
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
	t.Logf("zk-dev.sh %s: status %d\n%s%s", strings.Join(args, " "), cmd.ProcessState.ExitCode(), out.String(),
		said.String())
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
