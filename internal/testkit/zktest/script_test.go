package zktest

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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

	first, status := script(t, "start", "--dir", dir, "--port", "0", "--nodes", "3")
	export := regexp.MustCompile(`^export FLAKED_ZK=127\.0\.0\.1:\d+,127\.0\.0\.1:\d+,127\.0\.0\.1:\d+\n$`)
	if status != 0 || !export.MatchString(first) {
		t.Fatalf("start: status %d, %q", status, first)
	}
	_, addrs, _ := strings.Cut(strings.TrimSpace(first), "=")
	set(t, connect(t, strings.Split(addrs, ",")), "/kept", "yes")

	if again, status := script(t, "start", "--dir", dir); status != 0 || again != first {
		t.Errorf("a second start: status %d, %q; want %q", status, again, first)
	}
	if _, status := script(t, "start", "--dir", dir, "--nodes", "1"); status != 1 {
		t.Errorf("a start with other nodes: status %d, want 1", status)
	}
	if table, status := script(t, "status", "--dir", dir); status != 0 || strings.Count(table, " leader ") != 1 {
		t.Errorf("status: status %d", status)
	}
	if _, status := script(t, "stop", "--dir", dir); status != 0 {
		t.Errorf("stop: status %d", status)
	}
	if _, status := script(t, "status", "--dir", dir); status != 3 {
		t.Errorf("status when stopped: status %d, want 3", status)
	}
	if again, status := script(t, "start", "--dir", dir); status != 0 || again != first {
		t.Errorf("a start after a stop: status %d, %q; want %q", status, again, first)
	}
	want(t, connect(t, strings.Split(addrs, ",")), "/kept", "yes")
	if logs, status := script(t, "logs", "--dir", dir); status != 0 || !strings.Contains(logs, "node3/log") {
		t.Errorf("logs: status %d", status)
	}
}

// start fails if a server that the script did not start has the port, and leaves that
// server alone.
func TestZkDevScriptRefusesAPortInUse(t *testing.T) {
	t.Parallel()
	ens := Single(t)
	dir := filepath.Join(t.TempDir(), "zk")
	_, port, _ := strings.Cut(ens.Addr(), ":")
	if out, status := script(t, "start", "--dir", dir, "--port", port); status != 1 || out != "" {
		t.Errorf("status %d, stdout %q; want 1 and nothing", status, out)
	}
	ens.WaitServing(t)
}

func TestZkDevScriptRejectsBadArguments(t *testing.T) {
	for _, args := range []string{
		"", "frob", "start stop", "start --nodes 2", "start --nodes", "start --port=", "start --port 08",
		"start --frob", "start --wipe", "stop --nodes 1", "stop -f", "status --port 1",
	} {
		if out, status := script(t, strings.Fields(args)...); status != 2 || out != "" {
			t.Errorf("%q: status %d, stdout %q; want 2 and nothing", args, status, out)
		}
	}
	if out, status := script(t, "--help"); status != 0 || !strings.Contains(out, "FLAKED_ZK") {
		t.Errorf("--help: status %d, %q", status, out)
	}
}
