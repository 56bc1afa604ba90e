package client

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flaked/flaked/worker"
)

// A logger that calls Next itself does not block the client.
func TestLoggerMayCallNext(t *testing.T) {
	servers, addrs := nodes(t, 1)
	var c *Client
	var asked atomic.Int64
	log := slog.New(slog.NewTextHandler(writer(func() {
		if _, err := c.Next(t.Context()); err == nil {
			asked.Add(1)
		}
	}), nil))
	c = open(t, Config{Addrs: addrs, Logger: log, Timeout: long})
	if _, err := c.Next(by(t, long)); err != nil {
		t.Fatal(err)
	}
	servers[0].Stop()
	_, _ = c.Next(by(t, 50*time.Millisecond)) // out of use
	servers[0].Start()
	if _, err := c.Next(by(t, long)); err != nil { // in use again
		t.Fatal(err)
	}
	until(t, "the logger's own", func() bool { return asked.Load() > 0 })
}

type writer func()

func (w writer) Write(b []byte) (int, error) {
	w()
	return len(b), nil
}

// Calls to a node that allows fewer IDs per request than MaxBatch share smaller requests.
// A single Take that is too large for the node fails.
func TestJoinedRequestsShrinkToTheNodesLimit(t *testing.T) {
	var next atomic.Int64
	small := func(nc net.Conn) {
		for in := bufio.NewReader(nc); ; {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			n := 1
			if _, count, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
				n, _ = strconv.Atoi(count)
			}
			if n > 50 {
				io.WriteString(nc, "-ERR a count must be 1 to 50, digits only\n")
				continue
			}
			for range n {
				fmt.Fprintln(nc, next.Add(1))
			}
		}
	}
	c := open(t, Config{Addrs: []string{serve(t, listen(t), small)}, Timeout: long, Conns: 1})
	all := make([][]worker.ID, 200)
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() {
			for range 10 {
				id, err := c.Next(by(t, long))
				if err != nil {
					t.Error(err)
					return
				}
				all[i] = append(all[i], id)
			}
		})
	}
	wg.Wait()
	unique(t, all...)
	if _, err := c.Take(by(t, long), 51); code(err) != "ERR" {
		t.Errorf("51 at once: %v", err)
	}
}
