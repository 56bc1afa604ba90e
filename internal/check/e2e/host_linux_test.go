package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"os"
	"os/exec"
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
