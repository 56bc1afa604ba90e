package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// server is a fake node. answer returns the reply to a request. If it returns false, the server
// closes the connection.
type server struct {
	net.Listener
	last  atomic.Int64 // the ID issued last
	conns atomic.Int64 // opened so far
}

type answer func(s *server, conn int64, line string) (reply string, goOn bool)

func serve(t *testing.T, answer answer) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := &server{Listener: l}
	s.last.Store(1 << 60)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.talk(c, s.conns.Add(1), answer)
		}
	}()
	return s
}

func (s *server) talk(c net.Conn, number int64, answer answer) {
	defer c.Close()
	r, w := bufio.NewReader(c), bufio.NewWriter(c)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		reply, goOn := answer(s, number, strings.TrimSpace(line))
		_, _ = w.WriteString(reply)
		if (!goOn || r.Buffered() == 0) && w.Flush() != nil || !goOn {
			return
		}
	}
}

// good answers GET and GET n as a node does.
func good(s *server, _ int64, line string) (string, bool) {
	n := int64(1)
	_, _ = fmt.Sscanf(line, "GET %d", &n)
	var b strings.Builder
	last := s.last.Add(n)
	for id := last - n + 1; id <= last; id++ {
		fmt.Fprintf(&b, "%d\n", id)
	}
	return b.String(), true
}

func says(text string) answer {
	return func(*server, int64, string) (string, bool) { return text, true }
}

// every returns an answer that is bad for every n-th request, and else good.
func every(n int64, bad answer) answer {
	var count atomic.Int64
	return func(s *server, conn int64, line string) (string, bool) {
		if count.Add(1)%n == 0 {
			return bad(s, conn, line)
		}
		return good(s, conn, line)
	}
}

func (s *server) dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", s.Addr().String())
}

// measure runs a load against a fake server to its end.
func measure(t *testing.T, s *server, cfg Config) *Report {
	t.Helper()
	cfg.Dial = s.dial
	if cfg.Duration == 0 {
		cfg.Duration = 300 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := Run(ctx, cfg)
	if err != nil || ctx.Err() != nil || r.Interrupted {
		t.Fatalf("%+v, %v", r, err)
	}
	return r
}

func TestGoodServer(t *testing.T) {
	for _, cfg := range []Config{
		{}, {Conns: 20}, {Conns: 3, Pipeline: 50}, {Pipeline: MaxPipeline, Batch: 4},
		{Conns: 2, Batch: 100, Pipeline: 2},
		{Conns: 7, Rate: 2000}, {Conns: 3, Pipeline: 4, Rate: 5000}, {Conns: 2, Warmup: 50 * time.Millisecond},
	} {
		s := serve(t, good)
		r := measure(t, s, cfg)
		all, due := s.last.Load()-1<<60, int64(cfg.Rate*0.3)
		switch {
		case r.Requests == 0 || r.Errors.Total != 0 || r.Unanswered != 0 || r.Check.Violations() != 0 ||
			r.Check.Unchecked != 0:
			t.Errorf("%+v: %+v", cfg, r)
		case r.Check.IDs != all || r.IDs != r.Requests*int64(r.Batch) || r.IDs > all:
			t.Errorf("%+v: %d IDs issued: %+v", cfg, all, r)
		case r.Latency.Min < 0.1 || r.Latency.Max > 1e7 || due > 0 && max(r.Latency.Count-due, due-r.Latency.Count) > 1:
			t.Errorf("%+v: %+v", cfg, r.Latency)
		}
	}
}

// badServer is a server with a fault, and whether a report shows it.
type badServer struct {
	name   string
	answer answer
	cfg    Config
	right  func(r *Report) bool
}

func badServers() []badServer {
	hang := says("")
	again := func(s *server, _ int64, _ string) (string, bool) { return fmt.Sprintln(s.last.Load()), true }
	back := func(s *server, _ int64, _ string) (string, bool) { return fmt.Sprintln(s.last.Add(1) - 1<<40), true }
	shut := func(*server, int64, string) (string, bool) { return "", false }
	short := Config{Timeout: 60 * time.Millisecond, Duration: 200 * time.Millisecond}
	return []badServer{
		{"the same again", every(10, again),
			Config{}, func(r *Report) bool { return r.Check.Duplicates > 0 }},
		{"another connection's", says("2123840256405929993\n"), Config{Conns: 10},
			func(r *Report) bool { return r.Check.Duplicates >= 9 }},
		{"back", every(10, back),
			Config{}, func(r *Report) bool { return r.Check.Backwards > 0 && r.Check.Duplicates == 0 }},
		{"back in a batch", func(s *server, _ int64, _ string) (string, bool) {
			last := s.last.Add(2)
			return fmt.Sprintf("%d\n%d\n", last, last-1), true
		}, Config{Batch: 2}, func(r *Report) bool { return r.Check.Backwards > 0 && r.Check.Duplicates == 0 }},
		{"an error", every(10, says("-CLOCK back\n")), Config{},
			func(r *Report) bool { return r.Errors.ByCode["CLOCK"] > 0 && r.Requests > 0 }},
		{"an error for a batch", says("-ERR count\n"), Config{Batch: 3},
			func(r *Report) bool { return r.Errors.ByCode["ERR"] > 0 && r.Requests == 0 }},
		{"an error in a batch", says("1\n-ERR\n"), Config{Batch: 2},
			func(r *Report) bool { return r.Errors.ByCode["protocol"] > 0 }},
		{"garbage", says("what?\n"), Config{}, func(r *Report) bool { return r.Errors.ByCode["protocol"] > 0 }},
		{"a line without an end", says(strings.Repeat("1", 20<<10)), Config{},
			func(r *Report) bool { return r.Errors.ByCode["protocol"] > 0 }},
		{"two for one", says("1\n2\n"), Config{}, func(r *Report) bool { return r.Errors.ByCode["protocol"] > 0 }},
		{"full", func(*server, int64, string) (string, bool) { return "-BUSY limit\n", false },
			Config{Rate: 10, Duration: 400 * time.Millisecond},
			func(r *Report) bool { return r.Errors.ByCode["BUSY"] > 0 && r.Errors.ByCode["protocol"] == 0 }},
		{"closes at once", func(s *server, conn int64, line string) (string, bool) {
			if conn <= 2 {
				return "", false
			}
			return good(s, conn, line)
		}, Config{Conns: 2, Duration: 400 * time.Millisecond},
			func(r *Report) bool { return r.Errors.Total == 2 && r.Errors.ByCode["closed"] == 2 && r.Requests > 0 }},
		{"closes now and then", every(10, shut), Config{Duration: time.Second},
			func(r *Report) bool {
				return r.Errors.ByCode["closed"] > 1 && r.Requests > 0 && r.Check.Violations() == 0
			}},
		{"hangs", hang, short, func(r *Report) bool { return r.Errors.ByCode["timeout"] > 0 && r.Requests == 0 }},
		{"hangs at the end", hang, Config{Timeout: 600 * time.Millisecond, Pipeline: 7, Conns: 3},
			func(r *Report) bool { return r.Unanswered == 21 && r.Latency.Count == 21 }},
		{"hangs, at a rate", hang, Config{Timeout: 600 * time.Millisecond, Rate: 1000},
			func(r *Report) bool { return r.Unanswered == 300 && r.Latency.Count == 300 }},
		{"a part of a reply", says("123"), short, func(r *Report) bool { return r.Errors.ByCode["timeout"] > 0 }},
	}
}

// The report shows every fault of a server.
func TestBadServers(t *testing.T) {
	for _, row := range badServers() {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if r := measure(t, serve(t, row.answer), row.cfg); !row.right(r) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// In an open loop, a stall of the server delays every request that was due meanwhile, not only
// the one being answered.
func TestStallDelaysEveryDueRequest(t *testing.T) {
	const stall = 400 * time.Millisecond
	for _, rate := range []float64{500, 0} {
		var count atomic.Int64
		s := serve(t, func(s *server, conn int64, line string) (string, bool) {
			if count.Add(1) == 50 {
				<-time.After(stall)
			}
			return good(s, conn, line)
		})
		r := measure(t, s, Config{Rate: rate, Duration: time.Second})
		// 200 of 500 requests were due during the stall. Half of those waited for more than
		// half of it.
		if l := r.Latency; l.Count < 500 || l.Max < 360e3 || rate > 0 && (l.Count != 500 || l.Mean < 40e3) ||
			rate == 0 && l.P90 > 40e3 {
			t.Errorf("rate %v: %+v", rate, l)
		}
	}
}

func TestInterrupted(t *testing.T) {
	for _, rate := range []float64{0, 1000} {
		ctx, cancel := context.WithCancel(t.Context())
		var count atomic.Int64
		s := serve(t, func(s *server, conn int64, line string) (string, bool) {
			if count.Add(1) == 100 {
				cancel()
			}
			return good(s, conn, line)
		})
		r, err := Run(ctx, Config{Dial: s.dial, Rate: rate, Duration: time.Hour})
		if err != nil || !r.Interrupted || r.Requests < 90 || r.Seconds <= 0 || r.Seconds > 60 || r.Errors.Total != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

func TestRunFailsWithoutAServer(t *testing.T) {
	s := serve(t, good)
	s.Close()
	_, err := Run(t.Context(), Config{Dial: s.dial, Duration: time.Second})
	if !errors.Is(err, ErrConnect) || !strings.Contains(err.Error(), "connection 1 of 1") {
		t.Error(err)
	}
}
