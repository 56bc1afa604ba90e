package e2e

import (
	"bufio"
	"io"
	"net"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/certtest"
)

// These tests are about access. They do not need ZooKeeper, so their nodes run with --dev.

// guarded starts a development node, waits until it serves, and returns its address.
func guarded(t testing.TB, env []string, args ...string) (p *process, addr string) {
	t.Helper()
	args = append([]string{"serve", "--dev", "--log-format", "text", "--log-level", "trace"}, args...)
	p = launch(t, env, "node", nil, shipped.binary(t), args...)
	eventually(t, "the node serves", func() bool {
		if !p.running() {
			t.Fatalf("it ended with %d", p.exit())
		}
		if !strings.Contains(p.log(), "node: serving: ") {
			return false
		}
		m := regexp.MustCompile(`lineproto: listening: address=(\S+)`).FindStringSubmatch(p.log())
		if m != nil {
			addr = m[1]
		}
		return m != nil
	})
	return p, addr
}

// wire is a connection to a node. An error on it fails the test.
type wire struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

func wireTo(t testing.TB, addr string) *wire {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, callTimeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &wire{t, conn, bufio.NewReader(conn)}
}

func (w *wire) ask(request string) string {
	w.t.Helper()
	if _, err := io.WriteString(w, request+"\n"); err != nil {
		w.t.Fatalf("%q: %v", request, err)
	}
	line, err := w.in.ReadString('\n')
	if err != nil {
		w.t.Fatalf("%q: %q, %v", request, line, err)
	}
	return strings.TrimRight(line, "\r\n")
}

func (w *wire) wants(request, pattern string) {
	w.t.Helper()
	if got := w.ask(request); !regexp.MustCompile("^(" + pattern + ")$").MatchString(got) {
		w.t.Errorf("%q: %q, want %s", request, got, pattern)
	}
}

const anID = `[1-9][0-9]*`

// A token is rotated: the new one is added, clients use it, and the old one is removed. No
// token appears in the log.
func TestTokensAreRotated(t *testing.T) {
	t.Parallel()
	const first, second = "first-5a1c9e77b2d04f38", "second-0d94b6ce1f7a4e25"
	dir := t.TempDir()
	file := certtest.Write(t, dir, "tokens", []byte(first+"\n"))
	node, addr := guarded(t, nil, "--listen", "127.0.0.1:0", "--token-file", file)

	old := wireTo(t, addr)
	old.wants("PING", "-NOAUTH .*")
	old.wants("GET", "-NOAUTH .*")
	old.wants("AUTH "+second, "-WRONGPASS wrong token")
	old.wants("AUTH "+first, "OK")
	old.wants("GET", anID)
	in := func(token string) bool { return wireTo(t, addr).ask("AUTH anybody "+token) == "OK" }

	certtest.Write(t, dir, "tokens", []byte("# both\n"+first+"\n"+second+"\n"))
	eventually(t, "the second token is good", func() bool { return in(second) })
	if !in(first) {
		t.Error("the first is not good any more")
	}
	certtest.Write(t, dir, "tokens", nil)
	node.signal(syscall.SIGHUP)
	eventually(t, "the empty file is complained of",
		func() bool { return strings.Contains(node.log(), "no token found. Write one per line") })
	if !in(first) || !in(second) {
		t.Error("an empty file has taken tokens out")
	}
	certtest.Write(t, dir, "tokens", []byte(second+"\n"))
	node.signal(syscall.SIGHUP)
	eventually(t, "the first token is out", func() bool { return !in(first) })
	old.wants("GET", anID) // authenticated connections stay so
	if !in(second) {
		t.Error("the second is not good")
	}

	node.signal(syscall.SIGTERM)
	node.exit()
	for _, token := range []string{first, second} {
		if strings.Contains(node.log(), token) {
			t.Errorf("a token is in the log")
		}
	}
}
