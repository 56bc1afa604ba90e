package web

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/view"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// whole fills in the required fields that a test leaves out.
func whole(cfg Config) Config {
	if cfg.Ready == nil {
		cfg.Ready = func() error { return nil }
	}
	if cfg.Node == nil {
		cfg.Node = func() node.Snapshot { return node.Snapshot{} }
	}
	if cfg.Reserve == nil {
		cfg.Reserve = func(context.Context, int) (worker.Run,
			error) {
			return worker.Run{First: 1000, Step: 1, Len: 1}, nil
		}
	}
	if cfg.Slots == nil {
		cfg.Slots = func(context.Context) (view.Report, error) { return view.Report{}, nil }
	}
	if cfg.Counters == nil {
		cfg.Counters = func() lineproto.Counters { return lineproto.Counters{} }
	}
	return cfg
}

// start runs a server until stop is called or the test ends. It fails the test if Serve
// returns an error or does not return.
func start(t *testing.T, cfg Config) (addr string, stop func()) {
	t.Helper()
	cfg = whole(cfg)
	cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: t.Output(), Level: hclog.Debug})
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, s)
}

func serve(t *testing.T, s *Server) (addr string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, s, l)
}

func serveOn(t *testing.T, s *Server, l net.Listener) (addr string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("Serve has not returned")
		}
	}
	t.Cleanup(stop)
	return l.Addr().String(), stop
}

// do makes a request on a connection of its own.
func do(t *testing.T, method, url string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(body)
}

func TestEndpoints(t *testing.T) {
	ready := errors.New("-NOTREADY starting reason=no-worker-yet\nsecond line")
	ill := errors.New("wedged")
	for _, row := range []struct {
		name         string
		method, path string
		ready, live  error
		code         int
		body         string // begins with
	}{
		{"alive", "GET", "/livez", nil, nil, 200, "ok\n"},
		{"alive though not ready", "GET", "/livez", ready, nil, 200, "ok\n"},
		{"to be restarted", "GET", "/livez", nil, ill, 503, "wedged\n"},
		{"ready", "GET", "/readyz", nil, nil, 200, "ok\n"},
		{"not ready, in one line", "GET", "/readyz", ready, nil, 503, "-NOTREADY starting reason=no-worker-yet " +
			"second line\n"},
		{"ready, by HEAD", "HEAD", "/readyz", nil, nil, 200, ""},
		{"not ready, by HEAD", "HEAD", "/readyz", ready, nil, 503, ""},
		{"a query is ignored", "GET", "/readyz?x", nil, nil, 200, "ok\n"},
		{"by POST", "POST", "/readyz", nil, nil, 405, "method not allowed. Use GET or HEAD.\n"},
		{"by DELETE", "DELETE", "/livez", nil, nil, 405, "method not allowed. Use GET or HEAD.\n"},
		{"elsewhere", "GET", "/else", nil, nil, 404, "path not found. Paths:\n/livez\t"},
		{"below", "GET", "/livez/", nil, nil, 404, "path not found"},
		{"unclean", "GET", "//livez", nil, nil, 404, "path not found"},
	} {
		t.Run(row.name, func(t *testing.T) {
			addr, _ := start(t, Config{
				Ready: func() error { return row.ready }, Live: func() error { return row.live },
				About: About{Version: "1.2.3"},
			})
			code, header, body := do(t, row.method, "http://"+addr+row.path)
			if code != row.code || !strings.HasPrefix(body, row.body) || row.body == "" && body != "" {
				t.Errorf("%d %q, want %d %q", code, body, row.code, row.body)
			}
			if got := header.Get("Server"); got != "flaked/1.2.3" {
				t.Errorf("Server: %q", got)
			}
			if code == 405 && header.Get("Allow") != "GET, HEAD" {
				t.Errorf("Allow: %q", header.Get("Allow"))
			}
		})
	}
}

// Serve does not wait for idle connections when it ends.
func TestServeEndsDespiteIdleConnections(t *testing.T) {
	addr, stop := start(t, Config{Ready: func() error { return nil }})
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	began := time.Now()
	stop()
	if took := time.Since(began); took > drainTimeout {
		t.Errorf("it took %v", took)
	}
}

// Serve lets a running request finish when it ends.
func TestServeFinishesRunningRequest(t *testing.T) {
	inside, release := make(chan struct{}), make(chan struct{})
	addr, stop := start(t, Config{Ready: func() error {
		close(inside)
		<-release
		return nil
	}})
	got := make(chan int, 1)
	go func() {
		res, err := http.DefaultTransport.RoundTrip(mustRequest("http://" + addr + "/readyz"))
		if err != nil {
			got <- 0
			return
		}
		res.Body.Close()
		got <- res.StatusCode
	}()
	<-inside
	time.AfterFunc(100*time.Millisecond, func() { close(release) })
	stop()
	if code := <-got; code != 200 {
		t.Errorf("%d, want 200", code)
	}
}

func mustRequest(url string) *http.Request {
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		panic(err)
	}
	req.Close = true
	return req
}

func TestBrokenListener(t *testing.T) {
	s, err := New(whole(Config{}))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := s.Serve(t.Context(), l); err == nil {
		t.Error("no error from a listener that is closed")
	}
}

func TestNewRefuses(t *testing.T) {
	for name, without := range map[string]func(*Config){
		"Ready":   func(c *Config) { c.Ready = nil },
		"Node":    func(c *Config) { c.Node = nil },
		"Reserve": func(c *Config) { c.Reserve = nil },
		"Slots":   func(c *Config) { c.Slots = nil },
	} {
		cfg := whole(Config{})
		without(&cfg)
		if _, err := New(cfg); err == nil {
			t.Errorf("no error without %s", name)
		}
	}
}
