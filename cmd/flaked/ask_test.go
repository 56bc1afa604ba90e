package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeNode returns the address of a node that answers each line with reply, on one connection
// at a time. For a reply of "" it closes the connection, and for "hang" it sends nothing.
func fakeNode(t *testing.T, network, address string, reply func(line string) string) string {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	return fakeNodeOn(t, l, reply)
}

func fakeNodeOn(t *testing.T, l net.Listener, reply func(line string) string) string {
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			for lines := bufio.NewScanner(conn); lines.Scan(); {
				text := reply(lines.Text())
				if text == "hang" {
					continue
				}
				if _, err := io.WriteString(conn, text); text == "" || err != nil {
					break
				}
			}
			conn.Close()
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	if l.Addr().Network() == "unix" {
		return "unix:" + l.Addr().String()
	}
	return l.Addr().String()
}

// getIDs answers GET and GET n as a node does.
func getIDs(line string) string {
	n := 1
	if _, err := fmt.Sscanf(line, "GET %d", &n); err != nil && line != "GET" {
		return "-ERR unknown command\n"
	}
	if n > 10_000 {
		return "-ERR count over the limit max=10000\n"
	}
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d\n", 2071483623882690560+int64(i))
	}
	return b.String()
}

func says(text string) func(string) string { return func(string) string { return text } }

// asked is a command that asks a node, and what it prints for the node's reply.
type asked struct {
	name  string
	reply func(string) string
	args  string
	code  int
	out   string
	err   string
}

func (row asked) run(t *testing.T) {
	t.Run(row.name, func(t *testing.T) {
		t.Setenv("FLAKED_ADDR", fakeNode(t, "tcp", "127.0.0.1:0", row.reply))
		call(t, "", strings.Fields(row.args)...).wants(t, row.code, row.out, row.err)
	})
}

func TestGet(t *testing.T) {
	for _, row := range []asked{
		{"one", getIDs, "get", 0, "2071483623882690560\n", ""},
		{"three", getIDs, "get 3", 0, "2071483623882690560\n2071483623882690561\n2071483623882690562\n", ""},
		{"by CRLF", says("12\r\n"), "get", 0, "12\n", ""},
		{"not ready", says("-NOTREADY starting reason=no-worker-yet\n"), "get", exitFailure, "",
			"-NOTREADY starting reason=no-worker-yet. Ask another node, or try again"},
		{"exhausted", says("-EXHAUSTED\n"), "get", exitFailure, "", "-EXHAUSTED. Create a cluster with another layout"},
		{"no token", says("-NOAUTH not authenticated. Send AUTH [user] token\n"), "get", exitFailure, "",
			"Give a token that the node knows, with --token-file FILE"},
		{"an HTTP server", says("HTTP/1.1 400 Bad Request\r\n\r\n"), "get", exitFailure, "",
			"which is not an ID. Check that it is a flaked node"},
		{"negative", says("12\n-5\n"), "get 2", exitFailure, "", `"-5", which is not an ID`},
		{"closed at once", says(""), "get", exitUnreachable, "", "the connection was closed without a reply"},
		{"closed in between", func(line string) string {
			if line == "GET 3" {
				return "1\n2\n"
			}
			return ""
		}, "get 3 --timeout 300ms", exitUnreachable, "", "timed out after 300ms"},
		{"hangs", says("hang"), "get --timeout 100ms", exitUnreachable, "", "timed out after 100ms. Check that it is"},
		{"without an end", says(strings.Repeat("x", 2*maxReply)), "get", exitUnreachable, "",
			"a line of its reply is longer than 4096 bytes. Check"},
	} {
		row.run(t)
	}
}

func TestGetUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	call(t, "", "get", "--addr", addr).wants(t, exitUnreachable, "",
		"flaked: no answer from a node at "+addr+": connection refused. Start a node with `flaked serve`, or give "+
			"another with --addr (FLAKED_ADDR).\n")
	call(t, "", "get", "--addr", "unix:/nonexistent/sock").wants(t, exitUnreachable, "",
		"socket not found. Start a node")
	// Every resolver refuses an empty label at once. A name server might be slow, and the
	// lookup would outlive the test.
	call(t, "", "get", "--addr", "no-such-host..invalid:1").wants(t, exitUnreachable, "",
		"host no-such-host..invalid not found. Check --addr (FLAKED_ADDR)")
}

func TestGetOverUnixSocket(t *testing.T) {
	addr := fakeNode(t, "unix", filepath.Join(t.TempDir(), "s"), getIDs)
	call(t, "", "get", "--addr", addr).wants(t, exitOK, "2071483623882690560\n", "")
}

func TestGetInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	addr := fakeNode(t, "tcp", "127.0.0.1:0", func(string) string { cancel(); return "hang" })
	began := time.Now()
	callCtx(t, ctx, "", "get", "--addr", addr, "--timeout", "30s").wants(t, exitFailure, "", "flaked: interrupted\n")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestHealthcheck(t *testing.T) {
	for _, row := range []struct {
		name, reply string
		code        int
		out, err    string
	}{
		{"ready", "OK\n", 0, "OK\n", ""},
		{"not ready", "-NOTREADY confirming reason=confirming\n", exitFailure, "", "flaked: not ready: -NOTREADY"},
		{"something else", "hello\n", exitFailure, "", `answered "hello" to READY`},
		{"hangs", "hang", exitUnreachable, "", "timed out after 150ms"},
	} {
		t.Run(row.name, func(t *testing.T) {
			asked := make(chan string, 1)
			addr := fakeNode(t, "tcp", "127.0.0.1:0", func(line string) string { asked <- line; return row.reply })
			call(t, "", "healthcheck", "--addr", addr, "--timeout", "150ms").wants(t, row.code, row.out, row.err)
			if got := <-asked; got != "READY" {
				t.Errorf("it asked %q", got)
			}
		})
	}
	call(t, "", "healthcheck", "--addr", "127.0.0.1:1").wants(t, exitUnreachable, "", "connection refused. Start a")
}
