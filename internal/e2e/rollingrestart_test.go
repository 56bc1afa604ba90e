package e2e

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// restarts returns the command line of a command for rolling-restart, which writes the address of a
// node into a pipe and ends. For each address the test then calls restart, in the background and with
// mu held.
func restarts(t *testing.T, mu *sync.Mutex, restart func(addr string)) []string {
	t.Helper()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	// Open for writing too, so that reading does not end with the first command.
	f, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(f); lines.Scan(); {
			mu.Lock()
			restart(lines.Text())
			mu.Unlock()
		}
	}()
	t.Cleanup(func() { f.Close(); <-done })
	return []string{"--", "sh", "-c", "echo {host}:{port} >" + pipe}
}

// Nodes are restarted one after the other, although the command returns before its node has
// stopped. Never more than one node is down, and all keep their workers.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	var nodes []*node
	var addrs []string
	byAddr := make(map[string]*node)
	for range 3 {
		n := s.node()
		n.listen = fmt.Sprintf("127.0.0.1:%d", zktest.Port(t))
		nodes, addrs, byAddr[n.listen] = append(nodes, n.start()), append(addrs, n.listen), n
	}
	before := make(map[*node]identity)
	for _, n := range nodes {
		before[n] = n.ready().identity()
	}
	var mu sync.Mutex
	var order []string
	command := restarts(t, &mu, func(addr string) {
		for at, n := range byAddr {
			if at != addr && !n.isReady() {
				t.Errorf("%s is not ready while %s is restarted", at, addr)
			}
		}
		order = append(order, addr)
		n := byAddr[addr]
		n.stop()
		n.start()
	})
	r := execute(t, s.build.binary(t), append([]string{"rolling-restart", "--addr", strings.Join(addrs, ",")}, command...)...)
	if lines := strings.Split(strings.TrimSpace(r.stdout), "\n"); r.code != 0 || len(lines) != 3 || !strings.HasSuffix(lines[2], "3 of 3") {
		t.Fatalf("%+v", r)
	}
	mu.Lock()
	defer mu.Unlock()
	if strings.Join(order, ",") != strings.Join(addrs, ",") {
		t.Errorf("restarted %s, want %s", order, addrs)
	}
	for _, n := range nodes {
		now, was := n.ready().identity(), before[n]
		if now.uuid != was.uuid || now.worker != was.worker || now.term != was.term+1 {
			t.Errorf("%s: %+v, was %+v", n.name, now, was)
		}
	}
}

// The command stops before it takes a second node down, and says what is left.
func TestRollingRestartStopsAtTheFirstFailure(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	a, b := s.node(), s.node()
	for _, n := range []*node{a, b} {
		n.listen = fmt.Sprintf("127.0.0.1:%d", zktest.Port(t))
	}
	a.start().ready()
	rolling := func(args ...string) result {
		return execute(t, s.build.binary(t), append([]string{"rolling-restart", "--addr", a.listen + "," + b.listen}, args...)...)
	}
	refused(t, rolling("--", "true"), 3, a.listen+" was not restarted, because another node does not answer: .* connection refused.*Restarted so far: 0 of 2")
	b.start().ready()
	refused(t, rolling("--ready-within", "500ms", "--", "true"), 1, a.listen+" is not ready again within 500ms .*: the same process still runs, so the command did not restart it.*Restarted so far: 0 of 2")
	refused(t, rolling("--", "sh", "-c", "exit 7"), 1, a.listen+": the command failed with exit code 7: sh -c exit 7")
	refused(t, rolling("--", "/nonexistent"), 1, "command /nonexistent not found")
	refused(t, rolling("--ready-within", "300ms", "--", "sleep", "60"), 1, `the command has not ended within 300ms`)
	refused(t, rolling(), 2, "COMMAND is missing")
	refused(t, rolling("--addr", a.listen, "--", "true"), 2, "is given twice")
	if a.identity().term != 1 || b.identity().term != 1 {
		t.Error("a node was restarted")
	}
	// A node that fails to come back stops it, with the other one still up.
	command := restarts(t, new(sync.Mutex), func(string) { a.stop() })
	refused(t, rolling(append([]string{"--ready-within", "3s"}, command...)...), 1, a.listen+" is not ready again within 3s .*--addr "+a.listen+","+b.listen)
	if !b.isReady() {
		t.Error("the other node is not ready")
	}
}
