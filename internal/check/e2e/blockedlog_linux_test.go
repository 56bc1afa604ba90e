package e2e

import (
	"os"
	"os/exec"
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
	cmd := exec.Command(s.build.binary(t), n.args()...)
	cmd.Env, cmd.SysProcAttr, cmd.Stderr = cleanEnv(), dieWithUs(), stderr
	withTestTimes(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stderr.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()

	serves := func(when string) {
		t.Helper()
		for began := time.Now(); time.Since(began) < 2*time.Second; time.Sleep(20 * time.Millisecond) {
			if answer, err := n.ask("GET"); err != nil || strings.HasPrefix(answer, "-") {
				t.Fatalf("%s after %s: %s %v", time.Since(began), when, answer, err)
			}
		}
	}
	eventually(t, "it is ready", n.isReady)
	network.cut()
	serves("ZooKeeper was cut off")
	log.Close()
	serves("the reader of the log has ended")
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("it does not stop")
	}
}
