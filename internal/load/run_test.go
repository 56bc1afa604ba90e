package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a fake node. answer writes the reply to a request. If it returns false, the
// server closes the connection.
type server struct {
	net.Listener
	last  atomic.Int64 // the ID issued last
	conns atomic.Int64 // opened so far
	mu    sync.Mutex   // guards open
	open  []net.Conn
	wg    sync.WaitGroup
}

type answer func(s *server, conn int64, line string, w *bufio.Writer) bool

func serve(t *testing.T, network string, answer answer) *server {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Listener: l}
	s.last.Store(1 << 60)
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.open = append(s.open, c)
			s.mu.Unlock()
			number := s.conns.Add(1)
			s.wg.Go(func() { s.talk(c, number, answer) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.mu.Lock()
		for _, c := range s.open {
			c.Close()
		}
		s.mu.Unlock()
		s.wg.Wait()
	})
	return s
}

// talk answers lines. A RESP array of one word counts as the line of that word.
func (s *server) talk(c net.Conn, number int64, answer answer) {
	defer c.Close()
	r, w := bufio.NewReader(c), bufio.NewWriter(c)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimSpace(line)
		if line[0] == '*' || line[0] == '$' {
			continue
		}
		if !answer(s, number, line, w) {
			w.Flush()
			return
		}
		if r.Buffered() == 0 && w.Flush() != nil {
			return
		}
	}
}

// good answers GET and GET n as a node does.
func good(s *server, _ int64, line string, w *bufio.Writer) bool {
	n := int64(1)
	if _, err := fmt.Sscanf(line, "GET %d", &n); err != nil {
		n = 1
	}
	last := s.last.Add(n)
	for id := last - n + 1; id <= last; id++ {
		fmt.Fprintf(w, "%d\n", id)
	}
	return true
}

func abs(n int64) int64 { return max(n, -n) }

func says(text string) answer {
	return func(_ *server, _ int64, _ string, w *bufio.Writer) bool {
		_, err := w.WriteString(text)
		return err == nil
	}
}

// engines runs a test with event loops and with goroutines.
func engines(t *testing.T, test func(t *testing.T, cfg Config)) {
	for _, name := range []string{"loops", "goroutines"} {
		t.Run(name, func(t *testing.T) { test(t, Config{goroutines: name == "goroutines", Check: true}) })
	}
}

// measure runs a load against a fake server to its end.
func measure(t *testing.T, s *server, cfg Config) *Result {
	t.Helper()
	cfg.Network, cfg.Address = s.Addr().Network(), s.Addr().String()
	if cfg.Duration == 0 {
		cfg.Duration = 100 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := Run(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatal("it did not end by itself")
	}
	return r
}

// patiently tries up to three times, each time with a longer Duration: on a busy
// machine nothing may happen in a tenth of a second.
func patiently(t *testing.T, cfg Config, try func(cfg Config) (bad string)) {
	t.Helper()
	if cfg.Duration == 0 {
		cfg.Duration = 100 * time.Millisecond
	}
	bad := ""
	for range 3 {
		if bad = try(cfg); bad == "" {
			return
		}
		cfg.Duration *= 5
	}
	t.Error(bad)
}

func TestGoodServer(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		for _, row := range []struct {
			name string
			cfg  Config
		}{
			{"one", Config{}},
			{"many", Config{Conns: 20, Threads: 3}},
			{"pipeline", Config{Conns: 3, Pipeline: 50}},
			{"a pipeline of more than a socket holds", Config{Pipeline: MaxPipeline, Batch: 4}},
			{"batch", Config{Conns: 2, Batch: 100, Pipeline: 2}},
			{"rate", Config{Conns: 7, Threads: 2, Rate: 2000}},
			{"rate, pipelined", Config{Conns: 3, Pipeline: 4, Rate: 5000}},
			{"warm-up", Config{Conns: 2, Warmup: 50 * time.Millisecond}},
			{"spin", Config{Conns: 2, Spin: time.Millisecond}},
		} {
			t.Run(network+" "+row.name, func(t *testing.T) {
				engines(t, func(t *testing.T, cfg Config) {
					row.cfg.goroutines, row.cfg.Check = cfg.goroutines, true
					patiently(t, row.cfg, func(cfg Config) string {
						s := serve(t, network, good)
						return wellMeasured(s, cfg, measure(t, s, cfg))
					})
				})
			})
		}
	}
}

func wellMeasured(s *server, cfg Config, r *Result) string {
	all := s.last.Load() - 1<<60
	due := int64(cfg.Rate * cfg.Duration.Seconds())
	switch {
	case r.Requests == 0 || r.ErrorCount() != 0 || r.Unanswered != 0 || !r.Check.OK() || r.Check.Unchecked != 0:
		return fmt.Sprintf("%+v, check %+v", r, r.Check)
	case r.Check.IDs != all:
		return fmt.Sprintf("%d IDs were looked at, %d issued", r.Check.IDs, all)
	case r.IDs != r.Requests*int64(max(cfg.Batch, 1)) || r.IDs > r.Check.IDs:
		return fmt.Sprintf("%d IDs of %d requests, %d looked at", r.IDs, r.Requests, r.Check.IDs)
	case r.Latency.TotalCount() < r.Requests/2 || r.Latency.Min() < 100 || r.Latency.Max() > int64(time.Minute):
		return fmt.Sprintf("latencies: %d, from %d to %d", r.Latency.TotalCount(), r.Latency.Min(), r.Latency.Max())
	case due > 0 && abs(r.Latency.TotalCount()-due) > 1:
		return fmt.Sprintf("%d requests were due, want %d", r.Latency.TotalCount(), due)
	}
	return ""
}

// The result shows every fault of a server.
func TestBadServers(t *testing.T) {
	every := func(n int64, bad answer) answer {
		var count atomic.Int64
		return func(s *server, conn int64, line string, w *bufio.Writer) bool {
			if count.Add(1)%n == 0 {
				return bad(s, conn, line, w)
			}
			return good(s, conn, line, w)
		}
	}
	hang := func(*server, int64, string, *bufio.Writer) bool { return true }
	shut := func(*server, int64, string, *bufio.Writer) bool { return false }
	for _, row := range []struct {
		name   string
		answer answer
		cfg    Config
		wrong  func(r *Result) bool
	}{
		{"the same again", every(10, func(s *server, _ int64, _ string, w *bufio.Writer) bool {
			fmt.Fprintf(w, "%d\n", s.last.Load())
			return true
		}), Config{Conns: 1}, func(r *Result) bool { return r.Check.Duplicates > 0 }},
		{"another connection's", says(anID + "\n"), Config{Conns: 10, Duration: time.Millisecond},
			func(r *Result) bool { return r.Check.Duplicates >= 9 }},
		{"back", every(10, func(s *server, _ int64, _ string, w *bufio.Writer) bool {
			fmt.Fprintf(w, "%d\n", s.last.Add(1)-1<<40)
			return true
		}), Config{}, func(r *Result) bool { return r.Check.Backwards > 0 && r.Check.Duplicates == 0 }},
		{"back in a batch", func(s *server, _ int64, _ string, w *bufio.Writer) bool {
			last := s.last.Add(2)
			fmt.Fprintf(w, "%d\n%d\n", last, last-1)
			return true
		}, Config{Batch: 2}, func(r *Result) bool { return r.Check.Backwards > 0 && r.Check.Duplicates == 0 }},
		{"an error", every(10, says("-CLOCK back\n")), Config{}, func(r *Result) bool { return r.Errors["CLOCK"] > 0 && r.Requests > 0 }},
		{"an error, not looked at", every(10, says("-CLOCK back\n")), Config{Check: false, Conns: -1},
			func(r *Result) bool { return r.Errors["CLOCK"] > 0 && r.Requests > 0 }},
		{"errors alone", says("-NOTREADY starting\n"), Config{}, func(r *Result) bool { return r.Errors["NOTREADY"] > 0 && r.Requests == 0 }},
		{"garbage", says("what?\n"), Config{}, func(r *Result) bool { return r.Errors["protocol"] > 0 }},
		{"two for one", says("1\n2\n"), Config{Duration: 300 * time.Millisecond}, func(r *Result) bool { return r.Errors["protocol"] > 0 }},
		{"lines for RESP", good, Config{Framing: RESP}, func(r *Result) bool { return r.Errors["protocol"] > 0 }},
		{"closes at once", shut, Config{}, func(r *Result) bool { return r.Errors["closed"] > 0 }},
		{"closes now and then", every(10, shut), Config{Duration: 300 * time.Millisecond},
			func(r *Result) bool { return r.Errors["closed"] > 1 && r.Requests > 0 && r.Check.OK() }},
		{"hangs", hang, Config{Timeout: 60 * time.Millisecond, Duration: 200 * time.Millisecond},
			func(r *Result) bool { return r.Errors["timeout"] > 0 && r.Requests == 0 }},
		{"hangs at the end", hang, Config{Timeout: 60 * time.Millisecond, Duration: 20 * time.Millisecond, Pipeline: 7, Conns: 3},
			func(r *Result) bool { return r.Unanswered+r.Errors["timeout"] == 21 && r.Latency.TotalCount() == 21 }},
		{"hangs, at a rate", hang, Config{Timeout: 60 * time.Millisecond, Duration: 50 * time.Millisecond, Rate: 1000},
			func(r *Result) bool { return r.Unanswered+r.Errors["timeout"] == 50 && r.Latency.TotalCount() == 50 }},
		{"a part of a reply", says("123"), Config{Timeout: 60 * time.Millisecond, Duration: 200 * time.Millisecond},
			func(r *Result) bool { return r.Errors["timeout"] > 0 }},
	} {
		t.Run(row.name, func(t *testing.T) {
			engines(t, func(t *testing.T, cfg Config) {
				c := row.cfg
				c.goroutines, c.Check = cfg.goroutines, c.Conns >= 0
				c.Conns = max(c.Conns, 0)
				patiently(t, c, func(c Config) string {
					if r := measure(t, serve(t, "tcp", row.answer), c); !row.wrong(r) {
						return fmt.Sprintf("not seen: %+v, check %+v", r, r.Check)
					}
					return ""
				})
			})
		})
	}
}

// In an open loop, a stall of the server delays every request that was due meanwhile,
// not only the one being answered.
func TestStallDelaysEveryDueRequest(t *testing.T) {
	const stall, rate = 400 * time.Millisecond, 500
	engines(t, func(t *testing.T, cfg Config) {
		for _, row := range []struct {
			name string
			rate float64
			seen bool
		}{{"open", rate, true}, {"closed", 0, false}} {
			t.Run(row.name, func(t *testing.T) {
				var count atomic.Int64
				s := serve(t, "tcp", func(s *server, conn int64, line string, w *bufio.Writer) bool {
					if count.Add(1) == 50 {
						<-time.After(stall)
					}
					return good(s, conn, line, w)
				})
				cfg.Rate, cfg.Duration = row.rate, time.Second
				r := measure(t, s, cfg)
				// 200 of 500 requests were due during the stall. Half of those waited
				// for more than half of it.
				if p75 := time.Duration(r.Latency.ValueAtQuantile(75)); p75 > stall/4 != row.seen {
					t.Errorf("p75 is %s", p75)
				}
				if longest := time.Duration(r.Latency.Max()); longest < stall*9/10 {
					t.Errorf("the longest is %s", longest)
				}
				if row.rate > 0 && r.Latency.TotalCount() != rate {
					t.Errorf("%d latencies, want one for each of %d requests", r.Latency.TotalCount(), rate)
				}
			})
		}
	})
}

// Requests that a server cannot keep up with are counted, and are in the latencies.
func TestOverload(t *testing.T) {
	slow := func(s *server, conn int64, line string, w *bufio.Writer) bool {
		<-time.After(10 * time.Millisecond)
		return good(s, conn, line, w)
	}
	engines(t, func(t *testing.T, cfg Config) {
		cfg.Rate, cfg.Duration, cfg.Timeout = 10_000, 200*time.Millisecond, 100*time.Millisecond
		r := measure(t, serve(t, "tcp", slow), cfg)
		if due := r.Latency.TotalCount(); due < 1999 || due > 2001 || r.Unanswered < 1900 {
			t.Errorf("%d due, %d unanswered", due, r.Unanswered)
		}
		if p50 := time.Duration(r.Latency.ValueAtQuantile(50)); p50 < 100*time.Millisecond {
			t.Errorf("p50 is %s", p50)
		}
	})
}

func TestInterrupted(t *testing.T) {
	engines(t, func(t *testing.T, cfg Config) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var count atomic.Int64
		s := serve(t, "tcp", func(s *server, conn int64, line string, w *bufio.Writer) bool {
			if count.Add(1) == 100 {
				cancel()
			}
			return good(s, conn, line, w)
		})
		cfg.Network, cfg.Address, cfg.Duration = "tcp", s.Addr().String(), time.Hour
		r, err := Run(ctx, cfg)
		if err != nil || !r.Interrupted || r.Requests < 90 || r.Elapsed <= 0 || r.Elapsed > time.Minute || r.ErrorCount() != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// A connection that the server closes is opened again.
func TestClosedConnectionIsReopened(t *testing.T) {
	engines(t, func(t *testing.T, cfg Config) {
		cfg.Conns, cfg.Duration = 2, 400*time.Millisecond
		patiently(t, cfg, func(cfg Config) string {
			s := serve(t, "tcp", func(s *server, conn int64, line string, w *bufio.Writer) bool {
				return conn > 2 && good(s, conn, line, w)
			})
			r := measure(t, s, cfg)
			if r.Errors["closed"] != 2 || r.ErrorCount() != 2 || r.Requests == 0 || !r.Check.OK() {
				return fmt.Sprintf("%+v, check %+v", r, r.Check)
			}
			return ""
		})
	})
}

// A full server answers with an error at once, and closes.
func TestErrorBeforeAnyRequestIsCounted(t *testing.T) {
	engines(t, func(t *testing.T, cfg Config) {
		cfg.Rate, cfg.Duration, cfg.Timeout = 10, 250*time.Millisecond, 100*time.Millisecond
		patiently(t, cfg, func(cfg Config) string {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = io.WriteString(c, "-BUSY limit\n")
					_ = c.(*net.TCPConn).CloseWrite()
					_, _ = io.Copy(io.Discard, c)
					c.Close()
				}
			})
			defer wg.Wait()
			defer l.Close()
			r := measure(t, &server{Listener: l}, cfg)
			if r.Errors["BUSY"] == 0 || r.Errors["closed"] == 0 || r.Errors["protocol"] != 0 || r.Requests != 0 {
				return fmt.Sprintf("%+v", r)
			}
			return ""
		})
	})
}

func TestRunFailsWithoutAServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, err = Run(t.Context(), Config{Network: "tcp", Address: l.Addr().String(), Duration: time.Second})
	if !errors.Is(err, ErrConnect) || !strings.Contains(err.Error(), "connection 1 of 1") {
		t.Error(err)
	}
}

// wrapped is not a plain socket, like a TLS connection.
type wrapped struct{ net.Conn }

func TestDial(t *testing.T) {
	s := serve(t, "tcp", good)
	dialled := 0
	r := measure(t, s, Config{Conns: 3, Check: true, Duration: time.Second, Dial: func(ctx context.Context) (net.Conn, error) {
		dialled++
		c, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr().String())
		return wrapped{c}, err
	}})
	if dialled != 3 || r.Requests == 0 || !r.Check.OK() {
		t.Errorf("%d connections, %+v", dialled, r)
	}
}

func TestRequests(t *testing.T) {
	for _, row := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"an ID", Config{Framing: Plain, Batch: 1}, "GET\n"},
		{"IDs", Config{Framing: Plain, Batch: 20}, "GET 20\n"},
		{"an ID in RESP", Config{Framing: RESP, Batch: 1}, "*1\r\n$3\r\nGET\r\n"},
		{"IDs in RESP", Config{Framing: RESP, Batch: 20}, "*4\r\n$3\r\nGET\r\n$2\r\nid\r\n$5\r\nCOUNT\r\n$2\r\n20\r\n"},
	} {
		if got := string(row.cfg.request()); got != row.want {
			t.Errorf("%s: %q, not %q", row.name, got, row.want)
		}
	}
}

func TestCommands(t *testing.T) {
	for _, row := range []struct {
		name    string
		framing Framing
		reply   string
		want    string
	}{
		{"memcached", Plain, "5\r\n", "incr x 1\r\n"},
		{"redis", RESP, ":5\r\n", "*3\r\n$4\r\nincr\r\n$1\r\nx\r\n$1\r\n1\r\n"},
		{"redis inline", Inline, ":5\r\n", "incr x 1\r\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			got := make(chan string, 1)
			go func() {
				c, err := l.Accept()
				if err != nil {
					close(got)
					return
				}
				defer c.Close()
				b := make([]byte, len(row.want))
				n, _ := io.ReadFull(c, b)
				got <- string(b[:n])
				for err == nil {
					if _, err = io.WriteString(c, row.reply); err == nil {
						_, err = io.ReadFull(c, b)
					}
				}
			}()
			r, err := Run(t.Context(), Config{
				Network: "tcp", Address: l.Addr().String(), Framing: row.framing, Command: "incr x 1",
				Check: true, Duration: 500 * time.Millisecond,
			})
			if request := <-got; request != row.want {
				t.Errorf("it sent %q", request)
			}
			if err != nil || r.Requests == 0 || r.ErrorCount() != 0 || r.IDs != 0 || r.Check != nil {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	var last Progress
	r := measure(t, serve(t, "tcp", good), Config{
		Conns: 2, Check: true, Warmup: 50 * time.Millisecond, Duration: 600 * time.Millisecond,
		OnProgress: func(p Progress) { last = p },
	})
	if last.Replies == 0 || last.Replies > r.Check.IDs || last.IDs != last.Replies || last.Elapsed <= 0 || last.Total != 600*time.Millisecond {
		t.Errorf("%+v of %+v", last, r)
	}
}

func TestBadConfig(t *testing.T) {
	base := Config{Network: "tcp", Address: "127.0.0.1:1", Duration: time.Second}
	for _, row := range []struct {
		want   string
		change func(c *Config)
	}{
		{"connections", func(c *Config) { c.Conns = MaxConns + 1 }},
		{"connections", func(c *Config) { c.Conns = -1 }},
		{"pipeline", func(c *Config) { c.Pipeline = MaxPipeline + 1 }},
		{"IDs per request", func(c *Config) { c.Batch = -1 }},
		{"threads", func(c *Config) { c.Threads = -1 }},
		{"duration", func(c *Config) { c.Duration = 0 }},
		{"must not be negative", func(c *Config) { c.Warmup = -1 }},
		{"rate", func(c *Config) { c.Rate = -1 }},
		{"plain, resp", func(c *Config) { c.Framing = "http" }},
		{"one line", func(c *Config) { c.Command = "a\nb" }},
		{"must not be blank", func(c *Config) { c.Command = " " }},
		{"batch", func(c *Config) { c.Command, c.Batch = "PING", 2 }},
		{"inline", func(c *Config) { c.Framing = Inline }},
	} {
		cfg := base
		row.change(&cfg)
		if _, err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%q: %v", row.want, err)
		}
	}
}

// In an open loop the requests of all lanes are evenly spread. The due times of a request
// and of its latency must be the same, or the latencies of a later lane are too high.
func TestLanesTakeTurns(t *testing.T) {
	r := &run{cfg: Config{Threads: 2, Rate: 1000}}
	lanes := r.lanes(make([]net.Conn, 4))
	for turn := range int64(8) { // 1,000 requests a second: one each millisecond
		l := lanes[turn%2]
		k := turn / 2
		want := turn * int64(time.Millisecond)
		if got := l.due(k); got != want {
			t.Errorf("request %d is due after %d ns, want %d", turn, got, want)
		}
		if got := l.conns[k%2].due(k / 2); got != want {
			t.Errorf("request %d of its connection is due after %d ns, want %d", turn, got, want)
		}
	}
}
