package web

import (
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
	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/lineproto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// knows is an Issuer that knows the sequences of a report, and issues no values.
type knows struct {
	Issuer
	report func() seq.Report
}

func (k knows) Report() seq.Report { return k.report() }

// whole fills in the required fields that a test leaves out.
func whole(cfg Config) Config {
	if cfg.Ready == nil {
		cfg.Ready = func() error { return nil }
	}
	if cfg.Live == nil {
		cfg.Live = func() error { return nil }
	}
	if cfg.Node == nil {
		cfg.Node = func() node.Snapshot { return node.Snapshot{} }
	}
	if cfg.Reserve == nil {
		cfg.Reserve = counting(1000)
	}
	if cfg.Issuer == nil {
		cfg.Issuer = knows{report: func() seq.Report { return seq.Report{} }}
	}
	if cfg.Slots == nil {
		cfg.Slots = func(context.Context) (health.Report, error) { return health.Report{}, nil }
	}
	if cfg.Counters == nil {
		cfg.Counters = func() lineproto.Counters { return lineproto.Counters{} }
	}
	if cfg.Events == nil {
		cfg.Events = new(Events)
	}
	cfg.Logger = hclog.NewNullLogger()
	return cfg
}

// start runs a server until stop is called or the test ends. It fails the test if Serve
// returns an error or does not return.
func start(t *testing.T, cfg Config) (addr string, stop func()) {
	t.Helper()
	return serve(t, New(whole(cfg)))
}

func serve(t *testing.T, s *Server) (addr string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l); close(done) }()
	stop = func() {
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

func request(t *testing.T, method, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// send sends a request on a connection of its own.
func send(t *testing.T, req *http.Request) (int, http.Header, string) {
	t.Helper()
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

func do(t *testing.T, method, url string) (int, http.Header, string) {
	t.Helper()
	return send(t, request(t, method, url))
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
		{"alive though not ready", "GET", "/livez", ready, nil, 200, "ok\n"},
		{"to be restarted", "GET", "/livez", nil, ill, 503, "wedged\n"},
		{"ready", "GET", "/readyz", nil, nil, 200, "ok\n"},
		{"not ready, in one line", "GET", "/readyz", ready, nil, 503, "-NOTREADY starting reason=no-worker-yet " +
			"second line\n"},
		{"not ready, by HEAD", "HEAD", "/readyz", ready, nil, 503, ""},
		{"a query is ignored", "GET", "/readyz?x", nil, nil, 200, "ok\n"},
		{"by POST", "POST", "/readyz", nil, nil, 405, "method not allowed. Use GET or HEAD.\n"},
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
	addr, stop := start(t, Config{})
	dial(t, addr).ask(livez)
	began := time.Now()
	stop()
	if took := time.Since(began); took > drainTimeout {
		t.Errorf("it took %v", took)
	}
}

// Serve lets a running request finish when it ends.
func TestServeFinishesRunningRequest(t *testing.T) {
	inside, release := make(chan struct{}), make(chan struct{})
	addr, stop := start(t, Config{Live: func() error {
		close(inside)
		<-release
		return nil
	}})
	c := dial(t, addr).say(livez)
	<-inside
	time.AfterFunc(100*time.Millisecond, func() { close(release) })
	stop()
	if res := c.ask(""); res.StatusCode != 200 {
		t.Error(res.Status)
	}
}

func TestBrokenListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := New(whole(Config{})).Serve(t.Context(), l); err == nil {
		t.Error("no error from a listener that is closed")
	}
}
