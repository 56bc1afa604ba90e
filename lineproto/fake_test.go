package lineproto

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/testkit/await"
	"github.com/flaked/flaked/worker"
)

func TestMain(m *testing.M) {
	// Tests that run beside each other mostly wait. The value is a default: the command line is parsed later.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// fakeBackend makes IDs from 1000 on. Its hooks must be set before it is used.
type fakeBackend struct {
	last atomic.Int64 // the last ID, 0 for none
	// maxRun is the most IDs of one Reserve, 0 for any number. gap is how many IDs are
	// left out between two.
	maxRun int
	gap    int64
	step   worker.ID // 0 means 1
	// Each call first calls reserve, if it is set, and returns its error.
	reserve func(ctx context.Context, n int) error
	// tick, if it is set, returns how many of n IDs there are, or how long there are none.
	tick  func(n int) (k int, p worker.Pause)
	ready error
	// starting: the node does not know its cluster yet.
	starting bool
	stats    func() [][2]string
	ceiling  int64
	waits    atomic.Int64
	mu       sync.Mutex // makes Reserve atomic
}

var _ Backend = (*fakeBackend)(nil)

func (f *fakeBackend) Reserve(ctx context.Context, n int) (worker.Run, error) {
	for {
		run, p, err := f.try(ctx, n)
		if p.For == 0 {
			return run, err
		}
		select {
		case <-ctx.Done():
			return worker.Run{}, ctx.Err()
		case <-time.After(p.For):
		}
	}
}

func (f *fakeBackend) Try(n int, _ time.Duration) (worker.Run, worker.Pause, error) {
	return f.try(context.Background(), n)
}

func (f *fakeBackend) try(ctx context.Context, n int) (run worker.Run, p worker.Pause, err error) {
	if f.reserve != nil {
		if err := f.reserve(ctx, n); err != nil {
			return run, p, err
		}
	}
	if f.tick != nil {
		if n, p = f.tick(n); p.For > 0 {
			f.waits.Add(1)
			return run, p, nil
		}
	}
	if f.maxRun > 0 {
		n = min(n, f.maxRun)
	}
	step := max(f.step, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	first := max(f.last.Load()+int64(step)+f.gap, 1000)
	f.last.Store(first + int64(n-1)*int64(step))
	return worker.Run{First: worker.ID(first), Step: step, Len: n}, p, nil
}

func (f *fakeBackend) Waits() int64   { return f.waits.Load() }
func (f *fakeBackend) Ceiling() int64 { return f.ceiling }

func (f *fakeBackend) Ready() error { return f.ready }

func (f *fakeBackend) Decode(id worker.ID) (string, error) {
	if id == 13 {
		return "", replies.New(ids.ERR, "the id is of no layout")
	}
	return fmt.Sprintf("id=%d worker=7", id), nil
}

func (f *fakeBackend) Worker() string { return "worker=7 state=serving" }

func (f *fakeBackend) Cluster() (name, uuid string) {
	if f.starting {
		return "demo", ""
	}
	return "demo", "c0ffee"
}

func (f *fakeBackend) Stats() [][2]string {
	if f.stats != nil {
		return f.stats()
	}
	return [][2]string{{"ids", "1"}, {"worker", "7"}}
}

func (f *fakeBackend) Now() time.Time  { return time.UnixMicro(1_700_000_000_000_123) }
func (f *fakeBackend) Version() string { return "1.2.3" }

// testLogger routes logs to t.Log.
func testLogger(t testing.TB) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Output: logWriter{t}, Level: hclog.Debug})
}

type logWriter struct{ t testing.TB }

func (w logWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// newTestServer makes a server of cfg, with a fakeBackend if cfg has no Backend.
func newTestServer(t testing.TB, cfg Config) *Server {
	t.Helper()
	if cfg.Backend == nil {
		cfg.Backend = &fakeBackend{}
	}
	if cfg.Status == nil {
		cfg.Status = func(peers bool) string { return fmt.Sprintf(`{"ready":true,"peers":%v}`, peers) }
	}
	if cfg.Logger == nil {
		cfg.Logger = testLogger(t)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wire is a kind of socket, and what serves it: goroutines, or an event loop where the system has one.
type wire struct {
	network    string
	goroutines bool
	also       string // the kind of a second listener's sockets. "" means that there is none
}

func (w wire) String() string {
	network := w.network
	if w.also != "" {
		network += " and " + w.also
	}
	return network + "/" + map[bool]string{false: "loops", true: "goroutines"}[w.goroutines]
}

// wires runs a test over each wire. Clients must see no difference between them.
func wires(t *testing.T, test func(t *testing.T, w wire)) {
	for _, network := range []string{"tcp", "unix"} {
		for _, goroutines := range []bool{false, true} {
			w := wire{network: network, goroutines: goroutines}
			t.Run(w.String(), func(t *testing.T) { test(t, w) })
		}
	}
}

// limitWires runs a test of a limit over each wire, and over two listeners that clients use in turn. A limit must
// hold at each of them. Such tests mostly wait, so they run beside each other.
func limitWires(t *testing.T, test func(t *testing.T, w wire)) {
	t.Parallel()
	wires(t, func(t *testing.T, w wire) {
		for _, also := range []string{"", map[string]string{"tcp": "unix", "unix": "tcp"}[w.network]} {
			w := w
			w.also = also
			t.Run(w.String(), func(t *testing.T) {
				t.Parallel()
				test(t, w)
			})
		}
	})
}

// running is a server on which Serve runs.
type running struct {
	*Server
	network string
	addr    string
	cancel  context.CancelFunc
	done    chan struct{} // closed when Serve has returned err
	err     error

	also  *running     // the same server on a second listener, or nil
	dials atomic.Int64 // so far
}

// stop drains and returns Serve's error. It may be called again.
func (r *running) stop() error {
	r.cancel()
	if r.also != nil {
		r.also.cancel()
		<-r.also.done
	}
	<-r.done
	return r.err
}

func serveOn(t testing.TB, s *Server, l net.Listener) *running {
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Server: s, network: l.Addr().Network(), addr: l.Addr().String(), cancel: cancel,
		done: make(chan struct{})}
	go func() {
		r.err = s.Serve(ctx, l)
		close(r.done)
	}()
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// listen listens on a loopback port, or on a unix socket that is removed with the test.
func (w wire) listen(t testing.TB) net.Listener {
	t.Helper()
	addr := "127.0.0.1:0"
	if w.network == "unix" {
		addr = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(w.network, addr)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// serve serves cfg until the test ends.
func (w wire) serve(t testing.TB, cfg Config) *running {
	t.Helper()
	cfg.Goroutines = w.goroutines
	s := newTestServer(t, cfg)
	r := serveOn(t, s, w.listen(t))
	if w.also != "" {
		r.also = serveOn(t, s, wire{network: w.also}.listen(t))
	}
	return r
}

// client is a connection whose failed reads and writes fail the test. They fail 30 s
// after the dial at the latest.
type client struct {
	stream
	t testing.TB
	r *bufio.Reader
}

// stream holds the methods that TCP and unix connections have in common.
type stream interface {
	net.Conn
	CloseWrite() error
	SetReadBuffer(bytes int) error
}

// dial connects to the listener. If there are two, it connects to each of them in turn.
func (r *running) dial(t testing.TB) *client {
	t.Helper()
	if r.also != nil && r.dials.Add(1)%2 == 0 {
		r = r.also
	}
	nc, err := net.Dial(r.network, r.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(30 * time.Second))
	return &client{nc.(stream), t, bufio.NewReader(nc)}
}

func (c *client) send(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

func (c *client) line() string {
	c.t.Helper()
	s, err := c.r.ReadString('\n')
	if err != nil {
		c.t.Fatalf("read: %v after %q", err, s)
	}
	return strings.TrimSuffix(s, "\n")
}

func (c *client) want(line string) {
	c.t.Helper()
	if got := c.line(); got != line {
		c.t.Fatalf("got %q, want %q", got, line)
	}
}

// wantEOF fails the test unless the server closes in an orderly way and sends nothing
// more.
func (c *client) wantEOF() {
	c.t.Helper()
	if b, err := io.ReadAll(c.r); err != nil || len(b) > 0 {
		c.t.Fatalf("got %q, %v, want EOF", b, err)
	}
}

// talk runs a whole conversation through a session: the input in the pieces of parts,
// then EOF. It returns the output and whether the session ended itself.
func talk(s *Server, parts ...string) (out string, closed bool) {
	return talkInTurns(s, maxSlice, parts...)
}

// talkInTurns does what talk does, with allowed IDs in each turn.
func talkInTurns(s *Server, allowed int, parts ...string) (out string, closed bool) {
	woken := make(wakeSignal, 1)
	ss := &session{srv: s, waker: woken}
	var all, in []byte
	step := func(eof bool) after {
		for {
			used, then := ss.consume(context.Background(), in, eof, allowed)
			in = in[used:]
			all = append(all, ss.out...)
			ss.out = ss.out[:0]
			switch {
			case then < needFlush:
				return then
			case then == failed:
				panic("a request panicked: see the log")
			}
			for then == needWake && !ss.awake() {
				<-woken
			}
		}
	}
	for _, p := range parts {
		in = append(in, p...)
		if step(false) == finished {
			ss.fold()
			return string(all), true
		}
	}
	then := step(true)
	ss.fold()
	return string(all), then == finished
}

// wakeSignal is the waiter of a session without a socket.
type wakeSignal chan struct{}

func (s wakeSignal) wake() {
	select {
	case s <- struct{}{}:
	default:
	}
}

var until = await.Until
