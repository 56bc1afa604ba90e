package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// Whatever reads the log of a node stands still, as a log driver of containers may, and then ends. The
// node starts, serves without ZooKeeper, and stops.
func TestLogThatNobodyReadsDoesNotStopTheNode(t *testing.T) {
	t.Parallel()
	s := harness.NewSite(t, zktest.Chroot(t, zktest.Shared(t)))
	n := s.Node("--log-level", "trace", "--reserve", "300ms").OnSocket()
	network := n.Network()
	log, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	// One page: a few lines fill it.
	if _, err := unix.FcntlInt(stderr.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize()); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(harness.Clocked.Binary(t), n.Args()...)
	cmd.Env, cmd.SysProcAttr, cmd.Stderr = harness.CleanEnv(), zktest.DieWithUs(), stderr
	harness.WithTestTimes(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stderr.Close()
	late := time.AfterFunc(2*harness.Patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	harness.Eventually(t, "it is ready", n.IsReady)
	load := n.Clients(1)
	for _, away := range []func(){network.Cut, func() { log.Close() }} {
		away()
		for range 40 { // 2 s and more, at a request every 2 ms
			load.Progress()
		}
	}
	load.Flawless()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A node that may run on one core only has two processors of Go, unless GOMAXPROCS says otherwise.
func TestProcessorsOfANodeOnOneCore(t *testing.T) {
	for variable, want := range map[string]string{"": "2", "1": "1", "3": "3"} {
		t.Setenv("GOMAXPROCS", variable)
		url := onOneCore(t, func() string { return withAdmin(t, "--dev") })
		metrics, _ := fetch(t, url+"/metrics")
		if line := "\ngo_sched_gomaxprocs_threads " + want + "\n"; !strings.Contains(metrics, line) {
			t.Errorf("GOMAXPROCS=%s: the metrics have no line %q", variable, line)
		}
	}
}

// onOneCore calls start. The processes that start starts may run on one core only.
func onOneCore(t *testing.T, start func() string) string {
	t.Helper()
	runtime.LockOSThread() // a new process has the cores of the thread that starts it
	defer runtime.UnlockOSThread()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for core := 0; one.Count() == 0; core++ {
		if all.IsSet(core) {
			one.Set(core)
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.SchedSetaffinity(0, &all); err != nil {
			t.Fatal(err)
		}
	}()
	return start()
}
