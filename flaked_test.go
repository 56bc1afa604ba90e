package flaked

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flaked/flaked/client"
	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/ids/idstest"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/sequence"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// noLeaks fails a test that leaves goroutines. Call it first, and not in a parallel test.
func noLeaks(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// quick returns a Config with a state directory of its own, for a new cluster with short times.
func quick(t *testing.T, zk string) Config {
	return Config{
		ZooKeeper: zk, Bootstrap: true, StateDir: filepath.Join(t.TempDir(), "state"),
		Heartbeat: 50 * time.Millisecond, Settings: Settings{ConfirmTime: new(800 * time.Millisecond)},
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// opened returns a node that is ready. The test closes it at its end.
func opened(t *testing.T, cfg Config) *Node {
	t.Helper()
	n, err := Open(within(t, time.Minute), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return n
}

// create creates sequences in the node's cluster.
func create(t *testing.T, n *Node, mode record.Mode, names ...string) {
	t.Helper()
	o := &operator.Commands{Store: n.app().Store(), By: t.Name()}
	for _, name := range names {
		wanted := operator.Definition{Name: name, Map: sequence.Map{Start: 1, Increment: 1, Max: 1 << 40}, Mode: mode,
			Settings: record.Settings{Block: 1000, SupplyMs: 60_000, HoldMs: 60_000, Ceiling: 1e9, HardCeiling: 1e9}}
		var err error
		zktest.Poll(10*time.Second, func() bool { // the node begins to serve sequences a moment after IDs
			_, err = o.Create(t.Context(), wanted)
			return !errors.Is(err, operator.ErrNoState)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// workers returns how many workers of the node's cluster are connected, and how many are held.
func workers(t *testing.T, n *Node) (live, held int) {
	t.Helper()
	d, err := health.ReadDraft(t.Context(), n.app().Store(), n.app().Cluster())
	if err != nil {
		t.Fatal(err)
	}
	return d.Summary.Live, d.Summary.Held
}

func TestNodeIsASource(t *testing.T) {
	noLeaks(t)
	n := opened(t, quick(t, zktest.Chroot(t, zktest.Shared(t))))
	create(t, n, record.Segment, "order", "order2")
	create(t, n, record.Strict, "invoice", "invoice2")
	server, err := lineproto.New(lineproto.Config{Backend: n.app().Core(), Sequences: n.app().Issuer()})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(ctx, listener) })
	defer serving.Wait()
	defer end()
	c, err := client.New(client.Config{Addrs: []string{listener.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	conform(t, idstest.New(), "order", "invoice")
	conform(t, n, "order", "invoice")
	conform(t, c, "order2", "invoice2")
	for _, source := range []ids.Source{n, c} {
		_, err := source.Sequence("nobody").Next(t.Context())
		if e, ok := errors.AsType[*ids.ReplyError](err); !ok || e.Reason() != "no-sequence" || e.Code != "ERR" ||
			errors.Is(err, ids.ErrUnavailable) {
			t.Errorf("a name without a sequence: %v", err)
		}
	}
	if s := n.app().Issuer().Report(); len(s.Sequences) != 4 {
		t.Errorf("it knows %d sequences", len(s.Sequences))
	}
	if live, _ := workers(t, n); live != 1 {
		t.Errorf("%d live workers", live)
	}
	if s := n.app().Core().Snapshot(); !s.Ready || s.Worker == nil || s.Cluster.Name != "default" {
		t.Errorf("%+v", s)
	}
}

// A node that has just reached ZooKeeper gives no values of sequences for a while. Calls wait, as
// long as their context allows.
func TestSequenceWaitsForAConfirmedNode(t *testing.T) {
	noLeaks(t)
	cfg := quick(t, zktest.Chroot(t, zktest.Shared(t)))
	first := opened(t, cfg)
	create(t, first, record.Segment, "order")
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := opened(t, cfg)
	if v, err := n.Sequence("order").Next(within(t, 20*time.Millisecond)); !errors.Is(err, ids.ErrUnavailable) {
		t.Errorf("with a short deadline: %d, %v", v, err)
	}
	if v, err := n.Sequence("order").Next(t.Context()); v != 1 || err != nil {
		t.Errorf("with patience: %d, %v", v, err)
	}
}

func TestWrongConfigs(t *testing.T) {
	noLeaks(t)
	t.Setenv("FLAKED_ZK", "127.0.0.1:1") // the environment has no effect
	t.Setenv("FLAKED_DEV", "true")
	for _, row := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"nothing", Config{}, "Config.ZooKeeper is empty"},
		{"both", Config{InMemory: true, ZooKeeper: "zk"}, "leave out ZooKeeper"},
		{"memory with a disk", Config{InMemory: true, StateDir: "x"}, "leave out ZooKeeper and StateDir"},
		{"servers", Config{ZooKeeper: "a:b:c"}, "connect string"},
		{"cluster", Config{ZooKeeper: "zk", Cluster: "a/b"}, "cluster name"},
		{"name", Config{InMemory: true, Name: "a b"}, `Config.Name: "a b" must not contain blanks`},
		{"start timeout", Config{InMemory: true, StartTimeout: -1},
			"Config.StartTimeout: -1ns must not be negative"},
		{"a long label", Config{InMemory: true, Admin: strings.Repeat("a", 4097)},
			"Config.Admin: 4097 bytes are too many. Use 4096 at most"},
		{"layout", Config{InMemory: true, Settings: Settings{Layout: "lief"}}, "Config.Settings.Layout: "},
		{"policy", Config{InMemory: true, Settings: Settings{OnRollback: "hope"}},
			"Config.Settings.OnRollback: unknown policy"},
		{"reserve", Config{InMemory: true, Reserve: time.Hour}, "Config.Reserve: 1h0m0s is out of range"},
		{"heartbeat", Config{InMemory: true, Heartbeat: time.Millisecond},
			"the heartbeat interval 1ms is too short. Give Config.Heartbeat 10ms or more"},
	} {
		n, err := Start(row.cfg)
		if _, ok := errors.AsType[*ConfigError](err); !ok || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
		if n != nil {
			_ = n.Close(t.Context())
		}
	}
}

func TestOpenSaysWhyItFails(t *testing.T) {
	noLeaks(t)
	zk := zktest.Chroot(t, zktest.Shared(t))
	used := quick(t, zk)
	n := opened(t, used)

	start := time.Now()
	_, err := Open(within(t, 300*time.Millisecond), used)
	if took := time.Since(start); took > 10*time.Second || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it waits for %s: %v", took, err)
	}
	if e, ok := errors.AsType[*StateDirError](err); !ok || !errors.Is(err, localcache.ErrLocked) ||
		e.Dir != used.StateDir {
		t.Errorf("a state directory that is in use: %v", err)
	}

	missing := quick(t, zk)
	missing.Cluster, missing.Bootstrap = "orders", false
	if _, err := Open(within(t, time.Minute), missing); err == nil ||
		!strings.Contains(err.Error(), "Config.Bootstrap creates a cluster") {
		t.Errorf("no cluster: %v", err)
	}

	slow := Config{ZooKeeper: zk, Cluster: "slow", Bootstrap: true,
		Settings: Settings{ConfirmTime: new(time.Minute)}}
	_, err = Open(within(t, time.Second), slow)
	if !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "waits for the cluster's confirming time") {
		t.Errorf("still confirming: %v", err)
	}

	other := quick(t, zk)
	other.Settings.Layout = "worker=8,sequence=14"
	_, err = Open(within(t, time.Minute), other)
	if _, ok := errors.AsType[*node.DiffersError](err); !ok || !strings.Contains(err.Error(),
		"Leave Config.Settings.Layout out, or give another Config.Cluster") {
		t.Errorf("another layout: %v", err)
	}

	silent := quick(t, "127.0.0.1:1")
	began := time.Now()
	_, err = Open(within(t, 300*time.Millisecond), silent)
	if e, ok := errors.AsType[*ids.ReplyError](err); !ok || e.Code != "NOTREADY" ||
		!errors.Is(err, context.DeadlineExceeded) || !strings.HasSuffix(err.Error(),
		"No connection to ZooKeeper: check Config.ZooKeeper, and that it runs and has a quorum") {
		t.Errorf("no ZooKeeper: %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("Open took %s", took)
	}
	if _, err := n.Next(t.Context()); err != nil {
		t.Errorf("the first node: %v", err)
	}
}

// The log goes to slog with its levels and attributes, and nowhere else.
func TestLogGoesToSlog(t *testing.T) {
	noLeaks(t)
	stdout, stderr := os.Stdout, os.Stderr
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout, os.Stderr = w, w
	var log bytes.Buffer
	n, err := Open(within(t, time.Minute), Config{InMemory: true, Name: "n1",
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err == nil {
		err = n.Close(t.Context())
	}
	if quiet, e := Open(within(t, time.Minute), Config{InMemory: true}); e == nil {
		_ = quiet.Close(t.Context())
	}
	os.Stdout, os.Stderr = stdout, stderr
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if written, _ := io.ReadAll(r); len(written) > 0 {
		t.Errorf("written to a standard stream: %s", written)
	}
	if text := log.String(); !strings.Contains(text, `level=INFO msg=serving logger=flaked.node worker=`) ||
		strings.Contains(text, "level=DEBUG") {
		t.Errorf("the log is\n%s", text)
	}
}

// asking is a slog.Handler that asks the node at each line.
type asking struct {
	slog.Handler
	node *atomic.Pointer[Node]
}

func (h asking) Handle(ctx context.Context, r slog.Record) error {
	if n := h.node.Load(); n != nil {
		_, _ = n.app().Core().Snapshot(), n.app().Issuer().Report()
		_, _ = n.Next(ctx)
	}
	return h.Handler.Handle(ctx, r)
}

func (h asking) WithAttrs(a []slog.Attr) slog.Handler { return asking{h.Handler.WithAttrs(a), h.node} }

// A program may put an ID or the node's state into each line of its log.
func TestLogHandlerCallsTheNode(t *testing.T) {
	noLeaks(t)
	var node atomic.Pointer[Node]
	cfg := quick(t, zktest.Chroot(t, zktest.Shared(t)))
	cfg.Logger = slog.New(asking{cfg.Logger.Handler(), &node})
	n, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	node.Store(n)
	if err := n.WaitReady(within(t, 10*time.Second)); err != nil {
		t.Fatal(err) // Close would hang, too
	}
	if err := n.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A node whose state directory another one has waits for it, not ready, and takes it over when the other one ends.
func TestStartWaitsForItsStateDirectory(t *testing.T) {
	noLeaks(t)
	used := quick(t, zktest.Chroot(t, zktest.Shared(t)))
	first := opened(t, used)
	before, err := first.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	next, err := Start(used)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = next.Close(context.Background()) })
	if err := next.Ready(); err == nil || next.Live() != nil {
		t.Errorf("ready: %v, live: %v", err, next.Live())
	}
	s := next.Sequence("order")
	if _, err := s.Next(within(t, time.Second)); err == nil || !strings.Contains(err.Error(), "NOTREADY") {
		t.Errorf("a request for a sequence: %v", err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := next.WaitReady(within(t, 20*time.Second)); err != nil {
		t.Fatal(err)
	}
	if id, err := next.Next(t.Context()); err != nil || id <= before {
		t.Errorf("%d after %d, %v", id, before, err)
	}
}
