package clients

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flaked/flaked/client"
	"github.com/flaked/flaked/internal/testkit/ownclock"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// token is the token that the nodes of a cluster ask for.
const token = "token-of-the-clients"

// cluster is real nodes on a real ZooKeeper.
type cluster struct {
	t       *testing.T
	program string
	connect string
	env     []string
	nodes   []*realNode
}

// realNode is a state directory, and the process that runs on it.
type realNode struct {
	*cluster
	name, addr, dir, tokens string
	cmd                     *exec.Cmd
	ended                   chan struct{} // closed when the process has ended
}

// newCluster starts a node for each token, and creates the sequences order (segment) and strict.
func newCluster(t *testing.T, tokens ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, program: filepath.Join(t.TempDir(), "flaked"), connect: zktest.Chroot(t, zktest.Shared(t))}
	build := exec.Command("go", "build", "-tags", ownclock.Tag, "-o", c.program, "./cmd/flaked")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "FLAKED_") {
			c.env = append(c.env, v)
		}
	}
	c.env = append(c.env, "FLAKED_ADMIN=off", "FLAKED_TEST_RESERVE=500ms", "FLAKED_TEST_SESSION_TIMEOUT=2s",
		"FLAKED_TEST_START_TIMEOUT=30s")
	for i, tok := range tokens {
		n := &realNode{cluster: c, name: fmt.Sprintf("n%d", i), dir: t.TempDir(),
			addr: fmt.Sprintf("127.0.0.1:%d", zktest.Port(t))}
		n.tokens = filepath.Join(n.dir, "tokens")
		if err := os.WriteFile(n.tokens, []byte(tok+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		c.nodes = append(c.nodes, n)
		n.start()
	}
	for i, n := range c.nodes {
		n.ready(tokens[i])
	}
	for _, args := range [][]string{{"order"}, {"strict", "--mode", "strict"}} {
		seq := exec.Command(c.program, append([]string{"seq", "create", "--zk", c.connect}, args...)...)
		seq.Env = c.env
		if out, err := seq.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", seq.Args, err, out)
		}
	}
	return c
}

// start starts a process. The test's end kills it.
func (n *realNode) start() {
	n.t.Helper()
	n.cmd = exec.Command(n.program, "serve", "--zk", n.connect, "--state-dir", filepath.Join(n.dir, "state"),
		"--listen", n.addr, "--name", n.name, "--token-file", n.tokens, "--bootstrap", "--heartbeat", "200ms",
		"--confirm-time", "800ms")
	log, err := os.OpenFile(filepath.Join(n.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		n.t.Fatal(err)
	}
	defer log.Close() // the process has its own descriptor
	n.cmd.Env, n.cmd.Stdout, n.cmd.Stderr, n.cmd.SysProcAttr = n.env, log, log, zktest.DieWithUs()
	if err := n.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	ended, cmd := make(chan struct{}), n.cmd
	n.ended = ended
	go func() {
		defer close(ended)
		_ = cmd.Wait() // a test kills it
	}()
	n.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
}

// ready blocks until the node gives IDs, and values of all sequences that exist.
func (n *realNode) ready(tok string) {
	n.t.Helper()
	source, err := client.New(client.Config{Addrs: []string{n.addr}, Token: tok, Patience: patience})
	if err != nil {
		n.t.Fatal(err)
	}
	defer source.Close()
	if !zktest.Poll(patience, func() bool { _, err = source.Next(n.t.Context()); return err == nil }) {
		text, _ := os.ReadFile(filepath.Join(n.dir, "log"))
		n.t.Fatalf("%s gives no ID within %s: %v\n%s", n.name, patience, err, text)
	}
}

// signal sends a signal, and waits for the end of the process if the signal ends it.
func (n *realNode) signal(s syscall.Signal) {
	n.t.Helper()
	if err := n.cmd.Process.Signal(s); err != nil {
		n.t.Fatalf("%s: %v", n.name, err)
	}
	if s == syscall.SIGKILL || s == syscall.SIGTERM {
		select {
		case <-n.ended:
		case <-time.After(patience):
			n.t.Fatalf("%s has not ended %s after %s", n.name, patience, s)
		}
	}
}
