package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/await"
)

// A development node creates a sequence when a client asks for it: a strict one if the request has a key. A name that
// no sequence may have gets an error.
func TestDevelopmentNodeCreatesSequences(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	ended := make(chan int)
	go func() {
		ended <- run(ctx, []string{"flaked", "serve", "--dev", "--admin", "off", "--listen", "unix:" + socket},
			strings.NewReader(""), io.Discard, io.Discard)
	}()
	await.Until(t, "a first value", func() bool { return askSocket(socket, "NEXT order\nQUIT\n") == "1\n" })
	const asked = "NEXT order 3\nNEXT order\nINCRBY other 5\nNEXT invoice order-17\nNEXT invoice order-17\n" +
		"NEXT invoice\nNEXT tenant:7:order\nRANGE order 10\nNEXT not*name\nQUIT\n"
	const want = "2\n3\n4\n5\n5\n1\n1\n2\n1\n6 15\n"
	if got := askSocket(socket, asked); !strings.HasPrefix(got, want+"-ERR ") {
		t.Errorf("%q, want %q and an error", got, want)
	}
	stop()
	if code := <-ended; code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// askSocket returns all that a node answers until it closes the connection, "" if it does not listen.
func askSocket(socket, requests string) string {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return ""
	}
	defer conn.Close()
	fmt.Fprint(conn, requests)
	got, _ := io.ReadAll(conn)
	return string(got)
}
