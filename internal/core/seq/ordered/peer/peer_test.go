package peer

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"
	"go.uber.org/goleak"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/internal/testkit/certtest"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counter is the line protocol of a node that owns every sequence, which are one.
type counter struct {
	lineproto.Backend
	lineproto.Sequences
	last   atomic.Int64
	passed atomic.Int64
}

func (c *counter) Take(w *sequence.Wait, _ []byte, n int, whole bool, _ func(), to []worker.Run) ([]worker.Run, error) {
	if whole && *w.Passed == theOwner {
		c.passed.Inc()
	}
	w.Owner = w.Passed.Owner
	return append(to, worker.Run{First: worker.ID(c.last.Add(int64(n)) - int64(n) + 1), Step: 1, Len: n}), nil
}
func (c *counter) Waits() int64 { return 0 }

func (c *counter) Worker() string               { return "worker=7" }
func (c *counter) Cluster() (name, uuid string) { return "demo", "c0ffee" }

var theOwner = sequence.Ownership{ID: "id", Owner: "nonce", Term: 7}

// asking is a request to the owner of a sequence in the cluster demo.
func asking(address, name string, n int64) ordered.PeerRequest {
	return ordered.PeerRequest{Address: address, Cluster: "c0ffee", Name: name, N: n, Ownership: theOwner}
}

// serve starts a node of a counter, and returns its address.
func serve(t testing.TB, c *counter, guard *tls.Config, token string) string {
	cfg := lineproto.Config{Backend: c, Sequences: c}
	if token != "" {
		cfg.Authenticate = func(sent []byte) (*sequence.Rights, bool) { return nil, string(sent) == token }
	}
	s, err := lineproto.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	inner := listen(t)
	l := inner
	if guard != nil {
		l = lineproto.TLS(inner, guard)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Serve(ctx, l) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return inner.Addr().String()
}

func listen(t testing.TB) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func caller(t testing.TB, creds dialog.Client) *Caller {
	c := New(func() dialog.Client { return creds })
	t.Cleanup(c.Close)
	return c
}

// script starts a node whose connections are served by f, after the first request, and returns its address.
func script(t *testing.T, f func(nc net.Conn, in *bufio.Reader)) string {
	l := listen(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer nc.Close()
				in := bufio.NewReader(nc)
				if line, err := in.ReadString('\n'); err == nil && line == "WORKER c0ffee\n" {
					fmt.Fprint(nc, "worker=7 cluster=demo cluster_uuid=c0ffee\n")
					f(nc, in)
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return l.Addr().String()
}

// Many goroutines share a connection. No value comes twice, and each caller's values rise.
func TestCallsShareAConnection(t *testing.T) {
	ca := certtest.NewCA(t, "test")
	pair := ca.Pair("node", time.Now().Add(time.Hour))
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		guard *tls.Config
		creds dialog.Client
	}{
		"plain": {nil, dialog.Client{}},
		"token": {nil, dialog.Client{Token: "secret"}},
		"TLS": {&tls.Config{Certificates: []tls.Certificate{cert}},
			dialog.Client{TLS: &tls.Config{RootCAs: ca.Pool()}}},
	} {
		t.Run(name, func(t *testing.T) {
			node := &counter{}
			c, address := caller(t, row.creds), serve(t, node, row.guard, row.creds.Token)
			var mu sync.Mutex
			var all []int64
			var wg sync.WaitGroup
			const callers, calls, n = 50, 40, 3
			for range callers {
				wg.Go(func() {
					var mine []int64
					for range calls {
						got, err := c.Forward(t.Context(), asking(address, "msg:a", n))
						if err != nil || len(mine) > 0 && got.First <= mine[len(mine)-1] || got.Owner != "nonce" {
							t.Error(got, err)
							return
						}
						mine = append(mine, got.First)
					}
					mu.Lock()
					all = append(all, mine...)
					mu.Unlock()
				})
			}
			wg.Wait()
			slices.Sort(all)
			if all = slices.Compact(all); len(all) != callers*calls || node.passed.Load() != callers*calls {
				t.Errorf("%d values, %d requests", len(all), node.passed.Load())
			}
			if len(c.links) != 1 {
				t.Errorf("%d connections", len(c.links))
			}
		})
	}
}

func TestRepliesAndRefusals(t *testing.T) {
	const strange = "reply is not from a flaked node. Check the address"
	for reply, want := range map[string]string{
		"7 9 nonce":                     "{7 nonce}",
		"0 20 other":                    "{0 other}",
		"-WRONGNODE reason=not-owner x": "ADDR answered -WRONGNODE reason=not-owner x",
		"-NOTREADY stopping":            "ADDR answered -NOTREADY stopping",
		"-EXHAUSTED reason=exhausted x": "ADDR answered -EXHAUSTED reason=exhausted x",
		"-ERR reason=no-sequence x":     "ADDR answered -ERR reason=no-sequence x",
		`-ERR unknown command "PASS"`:   `not asked: ADDR answered -ERR unknown command "PASS"`,
		"-NOPERM reason=no-right x":     "not asked: ADDR answered -NOPERM reason=no-right x",
		"-NOAUTH token":                 "not asked: ADDR answered -NOAUTH token",
		"7":                             `ADDR: "7": ` + strange,
		"7 9":                           `ADDR: "7 9": ` + strange,
		"7 8 nonce":                     `ADDR: "7 8 nonce": ` + strange,
		"hello 9":                       `ADDR: "hello 9": ` + strange,
	} {
		var got string
		address := script(t, func(nc net.Conn, in *bufio.Reader) {
			got, _ = in.ReadString('\n')
			fmt.Fprint(nc, reply+"\n")
			_, _ = io.Copy(io.Discard, in)
		})
		answer, err := caller(t, dialog.Client{}).Forward(t.Context(), asking(address, "ticks", 3))
		out := fmt.Sprint(answer)
		if err != nil {
			out = strings.ReplaceAll(err.Error(), address, "ADDR")
			out = strings.Replace(out, ordered.ErrNothingIssued.Error(), "not asked", 1)
		}
		if out != want || got != "PASS ticks 3 c0ffee id 7 nonce\n" {
			t.Errorf("%s: %q for %q, want %q", reply, out, got, want)
		}
		if e, ok := errors.AsType[*ids.ReplyError](err); ok != (reply[0] == '-' && !strings.Contains(reply, "PASS")) {
			t.Errorf("%s: %v", reply, e)
		}
	}
}

// What cannot be reached, or lets this node not in, was not asked.
func TestNodeThatCannotBeReachedIsNotAsked(t *testing.T) {
	gone := listen(t)
	_ = gone.Close()
	silent := listen(t) // accepts in the kernel only, as a stopped process does
	defer silent.Close()
	for address, row := range map[string]struct{ token, want string }{
		gone.Addr().String():                 {"secret", "connection refused by ADDR"},
		silent.Addr().String():               {"secret", "no answer from ADDR in time"},
		serve(t, &counter{}, nil, "another"): {"secret", "ADDR answered -WRONGPASS"},
		serve(t, &counter{}, nil, "secret"):  {"", "ADDR answered -NOAUTH"},
	} {
		c := caller(t, dialog.Client{Token: row.token})
		begin := time.Now()
		_, err := c.Forward(t.Context(), asking(address, "ticks", 1))
		if text := strings.ReplaceAll(fmt.Sprint(err), address, "ADDR"); !errors.Is(err, ordered.ErrNothingIssued) ||
			!strings.Contains(text, row.want) {
			t.Errorf("%s, want %s", text, row.want)
		}
		if took := time.Since(begin); took > 3*dialTime {
			t.Errorf("%s: it took %s", address, took)
		}
	}
}

// The node at the address belongs to another cluster, and says so or is one that cannot.
func TestNodeOfAnotherClusterIsNotAsked(t *testing.T) {
	const other = "ADDR answered -WRONGNODE reason=other-cluster this node belongs to cluster demo (c0ffee), not to beef. " +
		"Correct the addresses"
	node := &counter{}
	answers := map[string]string{
		serve(t, node, nil, ""): other,
	}
	for said, want := range map[string]string{
		"worker=7 cluster=demo cluster_uuid=c0ffee": other,
		"PONG": `ADDR: "PONG": reply is not from a flaked node. Check the address`,
	} {
		l := listen(t)
		defer l.Close()
		go func() {
			if nc, err := l.Accept(); err == nil {
				fmt.Fprintln(nc, said)
				_, _ = io.Copy(nc, nc)
				_ = nc.Close()
			}
		}()
		answers[l.Addr().String()] = want
	}
	for address, want := range answers {
		ask := asking(address, "ticks", 1)
		ask.Cluster = "beef"
		_, err := caller(t, dialog.Client{}).Forward(t.Context(), ask)
		if text := strings.ReplaceAll(fmt.Sprint(err), address, "ADDR"); !errors.Is(err, ordered.ErrNothingIssued) ||
			text != ordered.ErrNothingIssued.Error()+": "+want {
			t.Errorf("%s, want %s", text, want)
		}
	}
	if n := node.last.Load(); n != 0 {
		t.Errorf("it has counted %d values", n)
	}
}

// The outcome of a request that was sent is unknown if the connection breaks. The next one has a new connection.
func TestBrokenConnectionLeavesTheOutcomeOpen(t *testing.T) {
	var served atomic.Int64
	address := script(t, func(nc net.Conn, in *bufio.Reader) {
		if _, err := in.ReadString('\n'); err == nil && served.Inc() > 1 {
			fmt.Fprint(nc, "5 5 nonce\n")
			_, _ = io.Copy(io.Discard, in)
		}
	})
	c := caller(t, dialog.Client{})
	if _, err := c.Forward(t.Context(), asking(address, "ticks", 1)); err == nil || errors.Is(err, ordered.ErrNothingIssued) ||
		err.Error() != "connection closed by "+address {
		t.Error(err)
	}
	if got, err := c.Forward(t.Context(), asking(address, "ticks", 1)); got.First != 5 || err != nil {
		t.Error(got, err)
	}
}

// A call of a node that stands still ends with its context. Later ones are not sent, and go on when the node does.
func TestStalledNodeBlocksNoCallForLonger(t *testing.T) {
	goOn := make(chan struct{})
	var lines atomic.Int64
	address := script(t, func(nc net.Conn, in *bufio.Reader) {
		for {
			if _, err := in.ReadString('\n'); err != nil {
				return
			}
			lines.Inc()
			<-goOn
			fmt.Fprint(nc, "5 5 nonce\n")
		}
	})
	c := caller(t, dialog.Client{})
	pass := func(d time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		_, err := c.Forward(ctx, asking(address, "ticks", 1))
		return err
	}
	var sent int64
	for err := pass(tick / 4); !errors.Is(err, ordered.ErrNothingIssued); err = pass(tick / 4) {
		if sent++; !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	want := "it has issued nothing: no answer from " + address + " in time"
	if err := pass(time.Minute); !errors.Is(err, ordered.ErrNothingIssued) || err.Error() != want {
		t.Errorf("not sent: %v", err)
	}
	close(goOn)
	for pass(time.Minute) != nil { // until the late reply has come
	}
	if lines.Load() != sent+1 {
		t.Errorf("%d requests, %d were sent before", lines.Load(), sent)
	}
}

// Calls whose requests a failed write has not reached were not asked. The first one may have been.
func TestFailedWriteTellsWhatWasNotSent(t *testing.T) {
	l := &link{address: "a:1", wake: make(chan struct{}, 1)}
	var calls []*call
	for range 3 {
		k := &call{PeerRequest: asking("a:1", "ticks", 1), done: make(chan struct{})}
		_, _ = l.submit(k)
		calls = append(calls, k)
	}
	calls[1].withdrawn = true
	out, err := l.appendQueued(nil)
	if string(out) != strings.Repeat("PASS ticks 1 c0ffee id 7 nonce\n", 2) || err != nil {
		t.Fatalf("%q %v", out, err)
	}
	l.endUnsent(len(out)/2, io.ErrClosedPipe)
	l.finish(io.ErrClosedPipe, nil)
	if err := calls[0].err; errors.Is(err, ordered.ErrNothingIssued) {
		t.Error(err)
	}
	if err := calls[2].err; !errors.Is(err, ordered.ErrNothingIssued) {
		t.Error(err)
	}
}

func TestUnusedConnectionIsClosed(t *testing.T) {
	defer func(d int) { idleTicks = d }(idleTicks)
	idleTicks = 1
	closed := make(chan struct{})
	var once sync.Once
	address := script(t, func(nc net.Conn, in *bufio.Reader) {
		_, _ = in.ReadString('\n')
		fmt.Fprint(nc, "5 5 nonce\n")
		_, _ = io.Copy(io.Discard, in)
		once.Do(func() { close(closed) })
	})
	c := caller(t, dialog.Client{})
	for range 2 {
		if _, err := c.Forward(t.Context(), asking(address, "ticks", 1)); err != nil {
			t.Fatal(err)
		}
		<-closed
	}
}

func TestCloseEndsCalls(t *testing.T) {
	sent := make(chan struct{})
	address := script(t, func(_ net.Conn, in *bufio.Reader) {
		_, _ = in.ReadString('\n')
		close(sent)
		_, _ = io.Copy(io.Discard, in)
	})
	c := New(func() dialog.Client { return dialog.Client{} })
	failed := make(chan error)
	go func() {
		_, err := c.Forward(context.Background(), asking(address, "ticks", 1))
		failed <- err
	}()
	<-sent
	c.Close()
	if err := <-failed; !errors.Is(err, ids.ErrClosed) || errors.Is(err, ordered.ErrNothingIssued) {
		t.Error(err)
	}
	if _, err := c.Forward(context.Background(), asking(address, "ticks", 1)); !errors.Is(err, ordered.ErrNothingIssued) {
		t.Error(err)
	}
}

// BenchmarkPass is 50 goroutines that ask one node over the loopback interface.
func BenchmarkPass(b *testing.B) {
	c, address := caller(b, dialog.Client{}), serve(b, &counter{}, nil, "")
	b.SetParallelism(50 / runtime.GOMAXPROCS(0))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.Forward(context.Background(), asking(address, "msg:alice", 1)); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
