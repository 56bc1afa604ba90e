package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/replies"
)

// identity answers WORKER as a node of a cluster, "" for one that every client wants. It returns "" for other requests.
func identity(line, cluster string) (text string, ours bool) {
	wanted, asks := strings.CutPrefix(line+" ", "WORKER ")
	wanted = strings.TrimPrefix(strings.TrimSpace(wanted), "uuid-of-")
	switch is := cmp.Or(cluster, wanted, "first"); {
	case !asks:
		return "", true
	case wanted != "" && wanted != is:
		return replies.NotInCluster(is, "uuid-of-"+is, wanted).Line() + "\n", false
	default:
		return "worker=0 cluster=" + is + " cluster_uuid=uuid-of-" + is + "\n", true
	}
}

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
	return fakeNodeOf(t, func() string { return "" }, l, reply)
}

// fakeNodeOf is fakeNodeOn for a node of a cluster, which may change.
func fakeNodeOf(t *testing.T, cluster func() string, l net.Listener, reply func(line string) string) string {
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			for lines := bufio.NewScanner(conn); lines.Scan(); {
				text, ours := identity(lines.Text(), cluster())
				if !ours {
					_, _ = io.WriteString(conn, text)
					break
				}
				if text == "" {
					text = reply(lines.Text())
				}
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

// counting returns a function that answers GET and GET n with increasing IDs.
func counting() func(string) string {
	next := int64(2071483623882690560)
	return func(line string) string {
		n := 1
		_, _ = fmt.Sscanf(line, "GET %d", &n)
		var b strings.Builder
		for range n {
			next++
			fmt.Fprintf(&b, "%d\n", next)
		}
		return b.String()
	}
}

func says(text string) func(string) string { return func(string) string { return text } }

// nobody is an address that refuses connections.
const nobody = "127.0.0.1:1"

// The commands that ask a node, and what they make of its reply.
func TestNodeTranscript(t *testing.T) {
	var reply, asked atomic.Value
	t.Setenv("FLAKED_ADDR", fakeNode(t, "tcp", "127.0.0.1:0", func(line string) string {
		asked.Store(line)
		return reply.Load().(string)
	}))
	names := map[string]string{
		"WELL":  fakeNode(t, "tcp", "127.0.0.1:0", says(answer())),
		"ALONE": fakeNode(t, "tcp", "127.0.0.1:0", says(answer(cutOff))),
		"YOUNG": fakeNode(t, "tcp", "127.0.0.1:0", says(answer(starting))),
		"LONG": fakeNode(t, "tcp", "127.0.0.1:0", says(answer(behind,
			func(s *node.Snapshot) { s.ZooKeeper.Error = strings.Repeat("x", (4<<20)/2) }))),
		"NODE": os.Getenv("FLAKED_ADDR"),
	}
	transcript(t, "node.txt", names, func(event string) {
		text := strings.TrimPrefix(event, "the node answers ")
		reply.Store(strings.NewReplacer(`\r`, "\r", `\n`, "\n", "nothing", "").Replace(text))
	})
	for args, want := range map[string]string{"get": "GET", "get 3": "GET 3", "seq next order": "NEXT order",
		"seq next order 3": "NEXT order 3", "healthcheck": "READY", "decode 5": "STATUS"} {
		reply.Store("-BUSY x\n")
		if call(t, "", strings.Fields(args)...); asked.Load() != want {
			t.Errorf("%s asks %q, want %q", args, asked.Load(), want)
		}
	}
}

// Without --addr, a command asks the node that the file or the environment of --listen is for.
func TestCommandsAskTheNodeOfTheirFile(t *testing.T) {
	other, own := fakeNode(t, "tcp", "127.0.0.1:0", says("2\n")), fakeNode(t, "tcp", "127.0.0.1:0", says("1\n"))
	file := configFile(t, "listen: ["+own+", "+nobody+"]\nadmin: 127.0.0.1:1\n")
	for name, row := range map[string]struct {
		env  map[string]string
		args []string
		want string
	}{
		"the file":                       {nil, []string{"--config", file}, "1\n"},
		"the environment":                {map[string]string{"FLAKED_LISTEN": own + "," + nobody}, nil, "1\n"},
		"FLAKED_ADDR before the file":    {map[string]string{"FLAKED_ADDR": other}, []string{"--config", file}, "2\n"},
		"the environment before a file":  {map[string]string{"FLAKED_LISTEN": other}, []string{"--config", file}, "2\n"},
		"the command line before a file": {nil, []string{"--config", file, "--addr", other}, "2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range row.env {
				t.Setenv(k, v)
			}
			call(t, "", append([]string{"get"}, row.args...)...).wants(t, exitOK, row.want, "")
		})
	}
}

// A node that listens on all interfaces is asked over the loopback one, whose address a certificate may name.
func TestCommandsAskOverLoopback(t *testing.T) {
	for listen, asked := range map[string]string{"0.0.0.0:1": "127.0.0.1:1", "[::]:1": "[::1]:1"} {
		t.Setenv("FLAKED_LISTEN", listen)
		call(t, "", "get").wants(t, exitUnreachable, "", "at "+asked+":")
	}
}

// A line without an end does not fill the memory.
func TestGetOfALongLine(t *testing.T) {
	t.Setenv("FLAKED_ADDR", fakeNode(t, "tcp", "127.0.0.1:0", says(strings.Repeat("x", (4<<20)+1))))
	call(t, "", "get").wants(t, exitUnreachable, "", "its reply is longer than any of a node. Check")
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
