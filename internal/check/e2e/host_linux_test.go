package e2e

import (
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
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	n := s.node("--log-level", "trace", "--reserve", "300ms").onSocket()
	network := n.network()
	log, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	// One page: a few lines fill it.
	if _, err := unix.FcntlInt(stderr.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize()); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(clocked.binary(t), n.args()...)
	cmd.Env, cmd.SysProcAttr, cmd.Stderr = cleanEnv(), zktest.DieWithUs(), stderr
	withTestTimes(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stderr.Close()
	late := time.AfterFunc(2*patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	eventually(t, "it is ready", n.isReady)
	load := n.clients(1)
	for _, away := range []func(){network.cut, func() { log.Close() }} {
		away()
		for range 40 { // 2 s and more, at a request every 2 ms
			load.progress()
		}
	}
	load.flawless()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
