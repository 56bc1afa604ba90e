package e2e

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// latencies are the sorted latencies of a client's requests.
type latencies []time.Duration

func (l latencies) at(quantile float64) time.Duration { return l[int(quantile*float64(len(l)-1))] }

func (l latencies) String() string {
	ms := func(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond)) }
	return "median " + ms(l.at(0.5)) + ", 99% " + ms(l.at(0.99)) + ", max " + ms(l.at(1)) + " ms"
}

// good asks for one ID every millisecond on one connection, and returns the latencies. Every
// request must be answered.
func (n *node) good(questions int) latencies {
	t := n.site.t
	t.Helper()
	c, err := n.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	took := make(latencies, 0, questions)
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	for range questions {
		<-pace.C
		began := time.Now()
		if _, err := c.get(1); err != nil {
			t.Errorf("a good client: %v", err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took
}

// nuisance is a kind of bad client, of which count run. do runs on each connection until it is
// done or stop is closed. Its connection stays open unless do closes it.
type nuisance struct {
	name  string
	count int
	do    func(c *net.TCPConn, stop <-chan struct{})
	// With again, the client opens a new connection up to 10 ms after do has returned.
	again bool
}

// flood sends requests without reading the replies, until the node closes the connection.
func flood(c *net.TCPConn, _ <-chan struct{}) {
	_ = c.SetReadBuffer(4096)
	for {
		if _, err := io.WriteString(c, "GET 10000\n"); err != nil {
			return
		}
	}
}

var nuisances = []nuisance{
	// There is only one, because the IDs that it asks for until all buffers are full are some
	// megabytes of ordinary load.
	{name: "never reads", count: 1, do: flood},
	{name: "half a line", count: 200, do: func(c *net.TCPConn, _ <-chan struct{}) {
		_, _ = io.WriteString(c, "GE")
	}},
	{name: "asks once and is gone", count: 200, do: func(c *net.TCPConn, _ <-chan struct{}) {
		_, _ = io.WriteString(c, "GET 1000\n")
	}},
	{name: "says nothing", count: 200, do: func(*net.TCPConn, <-chan struct{}) {}},
	{name: "sends byte by byte", count: 10, do: func(c *net.TCPConn, stop <-chan struct{}) {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-tick.C:
				_, _ = c.Write([]byte{"GET\n"[i%4]})
			}
		}
	}},
	{name: "resets with answers under way", count: 4, again: true, do: func(c *net.TCPConn, _ <-chan struct{}) {
		_, _ = io.WriteString(c, "GET 100\n")
		_ = c.SetLinger(0)
		c.Close()
	}},
	{name: "hangs up at once", count: 4, again: true, do: func(c *net.TCPConn, _ <-chan struct{}) { c.Close() }},
	{name: "sends noise", count: 4, again: true, do: func(c *net.TCPConn, _ <-chan struct{}) {
		noise := make([]byte, 4096)
		for i := range noise {
			noise[i] = byte(rand.IntN(256))
		}
		_, _ = c.Write(noise)
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		_, _ = io.Copy(io.Discard, c)
		c.Close()
	}},
}

// begin starts the clients and returns when each has connected. end stops them and closes their
// connections.
func (b nuisance) begin(n *node) (end func()) {
	t := n.site.t
	t.Helper()
	_, addr, err := n.address()
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var mu sync.Mutex
	var open []net.Conn
	connect := func() *net.TCPConn {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Errorf("%s: %v", b.name, err)
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		open = append(open, c)
		return c.(*net.TCPConn)
	}
	var running sync.WaitGroup
	for range b.count {
		c := connect()
		running.Go(func() {
			pace := time.NewTicker(10 * time.Millisecond)
			defer pace.Stop()
			for c != nil {
				b.do(c, stop)
				if !b.again {
					return
				}
				select {
				case <-stop:
					return
				case <-pace.C:
				}
				c = connect()
			}
		})
	}
	return sync.OnceFunc(func() {
		close(stop)
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		running.Wait()
	})
}

// Bad clients do not delay others. The test compares the latencies of a good client without and
// with each kind of bad client.
//
// This test is not parallel, because other tests would slow down what it measures.
func TestBadClientsDoNotDelayOthers(t *testing.T) {
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--reserve", "3s")
	s.build = forLoad()
	n := s.started().ready()
	const questions = 200
	n.good(questions) // warm
	var report strings.Builder
	for _, b := range nuisances {
		without := n.good(questions)
		end := b.begin(n)
		t.Cleanup(end)
		with := n.good(questions)
		fmt.Fprintf(&report, "\n%-30s %4d   without: %-45s with: %s", b.name, b.count, without, with)
		// A client that delayed others would do so until a timeout of 5 s.
		if with.at(0.5) > 5*without.at(0.5)+5*time.Millisecond || with.at(1) > 4*time.Second {
			t.Errorf("%s: a good client has waited %s with %d of them, and %s without", b.name, with, b.count, without)
		}
		end()
		// The remaining connection is that of stat.
		n.until("nothing is left of "+b.name, func() bool { return n.stat("conns_open") == "1" })
	}
	t.Log(report.String())
}

// The node closes the connection of a client that does not read, and frees its memory.
func TestSlowReaderIsDisconnected(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--reserve", "3s")
	n := s.started().ready()
	load := n.clients(2)
	defer nuisance{name: "never reads", count: 5, do: flood}.begin(n)()
	n.until("all are cut off", func() bool { return n.stat("conns_slow_closed") == "5" })
	load.progress()
	load.flawless()
	// The remaining connection is that of stat.
	n.until("no connection is left", func() bool { return n.stat("conns_open") == "1" })
}
