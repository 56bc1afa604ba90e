package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// TestAbortedNodeEndsBySignal: systemd's watchdog sends SIGABRT to a node that is stuck. The unit
// restarts a node that ends with any exit code but 2, with which a Go program ends by default.
func TestAbortedNodeEndsBySignal(t *testing.T) {
	t.Parallel()
	p := launch(t, nil, "n", nil, shipped.binary(t), "serve", "--dev", "--listen", "127.0.0.1:0", "--log-format",
		"text")
	eventually(t, "the node serves", func() bool { return listening.MatchString(p.log()) })
	p.signal(syscall.SIGABRT)
	p.exit()
	if status := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() ||
		status.Signal() != syscall.SIGABRT {
		t.Errorf("SIGABRT ended the node with %v", p.cmd.ProcessState)
	}
}

// A node tells systemd when it serves, that it is alive, and that it stops.
func TestSystemdIsToldOfANode(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "e2e") // short: socket paths have about 100 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { manager.Close() })
	var told []string
	until := func(pattern string) { // reads until a line matches
		t.Helper()
		_ = manager.SetReadDeadline(time.Now().Add(patience))
		buf := make([]byte, 4<<10)
		for !slices.ContainsFunc(told, regexp.MustCompile("^("+pattern+")$").MatchString) {
			n, err := manager.Read(buf)
			if err != nil {
				t.Fatalf("%s: %v, told %q", pattern, err, told)
			}
			told = append(told, strings.Split(string(buf[:n]), "\n")...)
		}
	}
	env := []string{"NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=400000"}
	p := launch(t, env, "n", nil, shipped.binary(t), "serve", "--dev", "--listen", "127.0.0.1:0", "--admin", "off")
	until("READY=1")
	until(`STATUS=serving worker 0, lease \w+`)
	until("WATCHDOG=1")
	p.signal(syscall.SIGTERM)
	until("STOPPING=1")
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

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
	cmd := exec.Command(shipped.binary(t), n.args()...)
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
