package flaked

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/ops/view"
	"github.com/flaked/flaked/internal/testkit/faultnet"
	"github.com/flaked/flaked/internal/testkit/race"
	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
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
		Heartbeat: 50 * time.Millisecond, Settings: node.Settings{ConfirmTime: new(800 * time.Millisecond)},
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
func create(t *testing.T, n *Node, mode seq.Mode, names ...string) {
	t.Helper()
	o := &seq.Operator{Store: n.backing.store, By: t.Name()}
	for _, name := range names {
		wanted := seq.Definition{Name: name, Map: sequence.Map{Start: 1, Increment: 1, Max: 1 << 40}, Mode: mode, Settings: seq.Settings{Block: 1000, SupplyMs: 60_000, HoldMs: 60_000, Ceiling: 1e9, HardCeiling: 1e9}}
		var err error
		zktest.Poll(10*time.Second, func() bool { // the node begins to serve sequences a moment after IDs
			_, err = o.Create(t.Context(), wanted)
			return !errors.Is(err, seq.ErrNoState)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestNodeIsASource(t *testing.T) {
	noLeaks(t)
	n := opened(t, quick(t, zktest.Chroot(t, zktest.Shared(t))))
	create(t, n, seq.Segment, "order", "order2")
	create(t, n, seq.Strict, "invoice", "invoice2")
	backend, sequences := n.LineProtocol()
	server, err := lineproto.New(lineproto.Config{Backend: backend, Sequences: sequences})
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
		if e, ok := errors.AsType[*ids.ReplyError](err); !ok || e.Reason() != "no-sequence" || e.Code != "ERR" || errors.Is(err, ids.ErrUnavailable) {
			t.Errorf("a name without a sequence: %v", err)
		}
	}
	if s := n.Sequences(); len(s.Sequences) != 4 {
		t.Errorf("it knows %d sequences", len(s.Sequences))
	}
	if c, err := n.Cluster(t.Context()); err != nil || c.Summary.Live != 1 {
		t.Errorf("%+v, %v", c.Summary, err)
	}
	if s := n.Status(); !s.Ready || s.Worker == nil || s.Cluster.Name != "default" {
		t.Errorf("%+v", s)
	}
}

// Two nodes in one process have different workers, and keep them over a restart. A node that comes
// back after a clean end is ready soon.
func TestTwoNodesInOneProcess(t *testing.T) {
	noLeaks(t)
	zk := zktest.Chroot(t, zktest.Shared(t))
	a, b := quick(t, zk), quick(t, zk)
	seen := make(map[worker.ID]bool)
	var mu sync.Mutex
	draw := func(n *Node) {
		var drawing sync.WaitGroup
		for range 4 {
			drawing.Go(func() {
				all, err := n.Take(t.Context(), 5000)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, id := range all {
					if seen[id] {
						t.Fatalf("%s twice", id)
					}
					seen[id] = true
				}
			})
		}
		drawing.Wait()
	}
	var before []int
	for round := range 3 {
		began := time.Now()
		one, err := Open(within(t, time.Minute), a)
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		two, err := Open(within(t, time.Minute), b)
		if err != nil {
			t.Fatal(err)
		}
		if err := two.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Logf("round %d: open after %s", round, took)
		draw(one)
		draw(two)
		if round > 0 {
			if workers := []int{*one.Status().Worker, *two.Status().Worker}; before != nil && !slices.Equal(workers, before) {
				t.Errorf("workers %v, were %v", workers, before)
			} else {
				before = workers
			}
			if took > 5*time.Second {
				t.Errorf("Open took %s after a clean end", took)
			}
		}
		for _, n := range []*Node{one, two} {
			if err := n.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

// A node that has just reached ZooKeeper gives no values of sequences for a while. Calls wait, as
// long as their context allows.
func TestSequenceWaitsForAConfirmedNode(t *testing.T) {
	noLeaks(t)
	cfg := quick(t, zktest.Chroot(t, zktest.Shared(t)))
	first := opened(t, cfg)
	create(t, first, seq.Segment, "order")
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
		{"name", Config{InMemory: true, Name: "a b"}, "must not contain blanks"},
		{"start timeout", Config{InMemory: true, StartTimeout: -1}, "Config.StartTimeout is -1ns, must not be negative"},
		{"a long label", Config{InMemory: true, Admin: strings.Repeat("a", 4097)}, "Config.Admin has 4097 bytes, must have 4096 at most"},
		{"reserve", Config{InMemory: true, Reserve: time.Hour}, "the reserve 1h0m0s is out of range"},
		{"heartbeat", Config{InMemory: true, Heartbeat: time.Millisecond}, "the heartbeat interval 1ms is too short"},
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

// The environment has no effect.
func TestVariablesAreNotRead(t *testing.T) {
	t.Setenv("FLAKED_ZK", "127.0.0.1:1")
	t.Setenv("FLAKED_DEV", "true")
	if n, err := Open(t.Context(), Config{}); err == nil {
		_ = n.Close(t.Context())
		t.Error("Open takes ZooKeeper from the environment")
	}
}

// workersHeld returns how many workers of a cluster are not free.
func workersHeld(t *testing.T, zk, cluster string) int {
	t.Helper()
	st, err := store.NewZK(store.ZKConfig{Connect: zk, Cluster: cluster})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = st.Run(ctx) }()
	defer func() { _ = st.Close(); stop(); <-ended }()
	r, err := view.Read(ctx, st, cluster)
	if err != nil {
		t.Fatal(err)
	}
	return r.Summary.Slots - r.Summary.Free
}

func TestOpenSaysWhyItFails(t *testing.T) {
	noLeaks(t)
	zk := zktest.Chroot(t, zktest.Shared(t))
	used := quick(t, zk)
	n := opened(t, used)

	_, err := Open(within(t, time.Minute), used)
	if e, ok := errors.AsType[*StateDirError](err); !ok || !errors.Is(err, localcache.ErrLocked) || e.Dir != used.StateDir {
		t.Errorf("a state directory that is in use: %v", err)
	}

	missing := quick(t, zk)
	missing.Cluster, missing.Bootstrap = "orders", false
	if _, err := Open(within(t, time.Minute), missing); err == nil || !strings.Contains(err.Error(), "Config.Bootstrap creates a cluster") {
		t.Errorf("no cluster: %v", err)
	}

	slow := Config{ZooKeeper: zk, Cluster: "slow", Bootstrap: true, Settings: node.Settings{ConfirmTime: new(time.Minute)}}
	_, err = Open(within(t, time.Second), slow)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "waits for the cluster's confirming time") {
		t.Errorf("still confirming: %v", err)
	}
	if held := workersHeld(t, zk, slow.Cluster); held != 0 {
		t.Errorf("Open has failed, and %d workers are held", held)
	}

	other := quick(t, zk)
	wide := worker.Leaf()
	wide.WorkerBits, wide.SequenceBits = 8, 14
	other.Settings.Layout = &wide
	_, err = Open(within(t, time.Minute), other)
	if _, ok := errors.AsType[*node.DiffersError](err); !ok {
		t.Errorf("another layout: %v", err)
	}

	silent := quick(t, "127.0.0.1:1")
	began := time.Now()
	_, err = Open(within(t, 300*time.Millisecond), silent)
	if e, ok := errors.AsType[*ids.ReplyError](err); !ok || e.Code != "NOTREADY" || !errors.Is(err, context.DeadlineExceeded) || !strings.HasSuffix(err.Error(), "No connection to ZooKeeper: check Config.ZooKeeper, and that it runs and has a quorum") {
		t.Errorf("no ZooKeeper: %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("Open took %s", took)
	}
	if _, err := n.Next(t.Context()); err != nil {
		t.Errorf("the first node: %v", err)
	}
}

// A node that cannot go on ends by itself, and says why.
func TestNodeThatEndsByItself(t *testing.T) {
	noLeaks(t)
	cfg := quick(t, "127.0.0.1:1")
	cfg.StartTimeout = 300 * time.Millisecond
	n, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Next(t.Context()); !errors.Is(err, ids.ErrUnavailable) {
		t.Errorf("a node that starts: %v", err)
	}
	<-n.Done()
	_, err = n.Next(t.Context())
	closed := n.Close(t.Context())
	if closed == nil || errors.Is(closed, ids.ErrClosed) || !errors.Is(err, ids.ErrUnavailable) || !errors.Is(err, closed) {
		t.Errorf("Next: %v, Close: %v", err, closed)
	}
}

func TestClose(t *testing.T) {
	noLeaks(t)
	n := opened(t, Config{InMemory: true})
	stop := make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() {
		for {
			if _, err := n.Take(context.Background(), 100_000); err != nil {
				if !errors.Is(err, ids.ErrClosed) {
					t.Errorf("a call that Close interrupts: %v", err)
				}
				close(stop)
				return
			}
		}
	})
	for range 2 {
		if err := n.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	<-stop
	asking.Wait()
	if _, err := n.Next(t.Context()); err != ids.ErrClosed {
		t.Errorf("Next: %v", err)
	}
	if _, err := n.Sequence("order").Next(t.Context()); !errors.Is(err, ids.ErrClosed) {
		t.Errorf("a sequence: %v", err)
	}
	if err := n.Ready(); err != ids.ErrClosed {
		t.Errorf("Ready: %v", err)
	}
}

// Close with a context that is done does not wait for a ZooKeeper that is silent, and leaves no
// goroutine.
func TestCloseIsCutShort(t *testing.T) {
	noLeaks(t)
	zk := zktest.Chroot(t, zktest.Shared(t))
	server, chroot, _ := strings.Cut(zk, "/")
	link, err := faultnet.New(server)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	cfg := quick(t, link.Addr()+"/"+chroot)
	n, err := Open(within(t, time.Minute), cfg)
	if err != nil {
		t.Fatal(err)
	}
	create(t, n, seq.Segment, "order")
	if _, err := n.Sequence("order").Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	link.BlackHole()
	waiting := make(chan error, 1)
	go func() {
		_, err := n.Sequence("other").Next(context.Background())
		waiting <- err
	}()
	began := time.Now()
	if err := n.Close(within(t, 100*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close: %v", err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("Close took %s", took)
	}
	if err := <-waiting; !errors.Is(err, ids.ErrClosed) && !errors.Is(err, ids.ErrUnavailable) {
		t.Errorf("a call that waited: %v", err)
	}
	link.Heal()
	if _, err := opened(t, cfg).Next(t.Context()); err != nil {
		t.Error(err)
	}
}

// A node without a state directory gives its worker back, so that the next one has a worker at
// once, and leaves nothing on the disk.
func TestNodeWithoutADisk(t *testing.T) {
	noLeaks(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	cfg := quick(t, zktest.Chroot(t, zktest.Shared(t)))
	cfg.StateDir = ""
	for range 3 {
		n := opened(t, cfg)
		if _, err := n.Next(t.Context()); err != nil {
			t.Error(err)
		}
		if err := n.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
	watcher := opened(t, quick(t, cfg.ZooKeeper))
	if c, err := watcher.Cluster(t.Context()); err != nil || c.Summary.Held != 1 {
		t.Errorf("%+v, %v", c.Summary, err)
	}
}

// An Open that is cut while its worker is confirmed releases the worker, if no state directory keeps it.
func TestOpenThatIsCutReleasesItsWorker(t *testing.T) {
	noLeaks(t)
	cfg := quick(t, zktest.Chroot(t, zktest.Shared(t)))
	cut := cfg
	cut.StateDir = ""
	for range 3 { // alone, so that no peer can vouch, and each of them waits for the confirming time
		if n, err := Open(within(t, 400*time.Millisecond), cut); err == nil {
			t.Error("the node did not confirm its worker")
			_ = n.Close(t.Context())
		}
	}
	if c, err := opened(t, cfg).Cluster(t.Context()); err != nil || c.Summary.Held != 1 || c.Summary.Live != 1 {
		t.Errorf("%+v, %v", c.Summary, err)
	}
}

// A node keeps the directories that relative paths meant at its start.
func TestProgramChangesItsDirectory(t *testing.T) {
	noLeaks(t)
	zk, elsewhere := zktest.Chroot(t, zktest.Shared(t)), t.TempDir()
	for _, lasting := range []bool{true, false} {
		began := t.TempDir()
		t.Chdir(began)
		t.Setenv("TMPDIR", ".")
		cfg := quick(t, zk)
		cfg.StateDir, cfg.ReleaseOnClose = "", true
		if lasting {
			cfg.StateDir = "state"
		}
		n := opened(t, cfg)
		t.Chdir(elsewhere)
		if err := n.Close(t.Context()); err != nil {
			t.Error(err)
		}
		// A node that releases its worker deletes its state file.
		if left, _ := filepath.Glob(filepath.Join(began, "*", "flaked.state")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if made, err := os.ReadDir(elsewhere); err != nil || len(made) > 0 {
			t.Errorf("made in the other directory: %v, %v", made, err)
		}
	}
}

func TestDrainedNodeIsNotReadyAndGivesIDs(t *testing.T) {
	noLeaks(t)
	n := opened(t, Config{InMemory: true})
	if err := n.Ready(); err != nil {
		t.Fatal(err)
	}
	n.Drain(false)
	if e, ok := errors.AsType[*ids.ReplyError](n.Ready()); !ok || !strings.HasPrefix(e.Text, "draining") {
		t.Errorf("Ready: %v", n.Ready())
	}
	if _, err := n.Next(t.Context()); err != nil {
		t.Error(err)
	}
	if err := n.Live(); err != nil {
		t.Error(err)
	}
}

func TestNextAllocatesNothing(t *testing.T) {
	n := opened(t, Config{InMemory: true})
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	if got := testing.AllocsPerRun(1000, func() {
		if _, err := n.Next(context.Background()); err != nil {
			t.Error(err)
		}
	}); got != 0 {
		t.Errorf("%v allocations", got)
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
	n, err := Open(within(t, time.Minute), Config{InMemory: true, Name: "n1", Logger: slog.New(slog.NewTextHandler(&log, nil))})
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
	if text := log.String(); !strings.Contains(text, `level=INFO msg=serving logger=flaked.node worker=`) || strings.Contains(text, "level=DEBUG") {
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
		_ = n.Status()
		_ = n.Sequences()
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

// A program that imports the package links these packages of flaked and these libraries of others, and no
// more: nothing that only a server needs. A client links none of ZooKeeper's.
func TestDependencies(t *testing.T) {
	const own = "github.com/flaked/flaked"
	list := func(pkg string) (linked []string) {
		cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if .Main}}{{$.ImportPath}}{{else}}{{.Path}}{{end}}{{end}}", pkg)
		cmd.Env = append(os.Environ(), "GOOS=linux")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", cmd.Args, err)
		}
		for _, path := range strings.Fields(string(out)) {
			if path != own {
				linked = append(linked, strings.TrimPrefix(path, own+"/"))
			}
		}
		slices.Sort(linked)
		return slices.Compact(linked)
	}
	for pkg, want := range map[string]string{
		".": "coordinator " +
			"github.com/cenkalti/backoff/v5 github.com/fatih/color github.com/go-zookeeper/zk github.com/google/uuid github.com/hashicorp/go-hclog github.com/mattn/go-colorable github.com/mattn/go-isatty " +
			"go.uber.org/atomic golang.org/x/sync golang.org/x/sys " +
			"ids internal/core/limits internal/core/node internal/core/pulse internal/core/seq internal/core/store internal/ops/host/logqueue internal/ops/view localcache sequence timeguard worker",
		"./client": "client github.com/cenkalti/backoff/v5 github.com/fatih/color github.com/hashicorp/go-hclog github.com/mattn/go-colorable github.com/mattn/go-isatty " +
			"go.uber.org/atomic golang.org/x/sys ids internal/ops/access sequence worker",
		"./ids": "go.uber.org/atomic golang.org/x/sys ids worker",
	} {
		if got := strings.Join(list(pkg), " "); got != want {
			t.Errorf("%s has %s, want %s", pkg, got, want)
		}
	}
}

// Programs open, use, drain and close nodes all the time, on state directories that others may
// have open, with deadlines that are too short, while ZooKeeper falls silent and comes back. No ID
// is issued twice, and no goroutine is left. A longer run has more histories: change attackFor.
func TestOpenAndCloseUnderAttack(t *testing.T) {
	noLeaks(t)
	const attackFor = 6 * time.Second
	server, chroot, _ := strings.Cut(zktest.Chroot(t, zktest.Shared(t)), "/")
	link, err := faultnet.New(server)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	a := &attack{t: t, base: quick(t, link.Addr()+"/"+chroot), dirs: t.TempDir(), issued: map[worker.ID]bool{}}
	ctx, cancel := context.WithTimeout(t.Context(), attackFor)
	defer cancel()
	var attackers sync.WaitGroup
	for range 8 {
		attackers.Go(func() {
			for ctx.Err() == nil || !a.succeeded() {
				a.program()
			}
		})
	}
	attackers.Go(func() {
		for ctx.Err() == nil {
			pause(2 * time.Second)
			link.BlackHole()
			pause(time.Second)
			link.Heal()
		}
	})
	attackers.Wait()
	t.Logf("%d nodes opened, %d refused, %d IDs", a.opened, a.refused, len(a.issued))
}

// pause waits for a random time below d. These pauses choose histories. No test result waits for them.
func pause(d time.Duration) { time.Sleep(rand.N(d)) }

type attack struct {
	t    *testing.T
	base Config
	dirs string

	mu              sync.Mutex // guards what follows
	issued          map[worker.ID]bool
	opened, refused int
}

// succeeded reports whether a node has given IDs.
func (a *attack) succeeded() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.issued) > 0
}

// program opens a node, uses it and closes it.
func (a *attack) program() {
	cfg := a.base
	cfg.StateDir, cfg.ReleaseOnClose = "", rand.N(4) == 0
	if rand.N(4) > 0 {
		cfg.StateDir = filepath.Join(a.dirs, fmt.Sprint(rand.N(4)))
	}
	ctx, cancel := context.WithTimeout(a.t.Context(), rand.N(3*time.Second))
	defer cancel()
	n, err := Open(ctx, cfg)
	a.mu.Lock()
	if err != nil {
		a.refused++
	} else {
		a.opened++
	}
	a.mu.Unlock()
	if err != nil {
		return
	}
	var using sync.WaitGroup
	for range 3 {
		using.Go(func() { a.use(n) })
	}
	if rand.N(3) == 0 {
		using.Go(func() { n.Drain(rand.N(2) == 0) })
	}
	pause(400 * time.Millisecond)
	for range 3 {
		using.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), rand.N(300*time.Millisecond))
			defer cancel()
			_ = n.Close(ctx) // the error of the context, or nil
		})
	}
	using.Wait()
	select {
	case <-n.Done():
	default:
		a.t.Error("Close has returned, and the node goes on")
	}
}

// use draws IDs, some of them while the node closes.
func (a *attack) use(n *Node) {
	for range 200 {
		got, _ := n.Take(context.Background(), 1+rand.N(50))
		if id, err := n.Next(context.Background()); err == nil {
			got = append(got, id)
		}
		a.mu.Lock()
		for _, id := range got {
			if a.issued[id] {
				a.t.Errorf("ID %d was issued twice", id)
			}
			a.issued[id] = true
		}
		a.mu.Unlock()
	}
}

// conform tests that a source keeps the promises of ids.Source. plain and strict are new sequences. Nothing else may use them.
func conform(t *testing.T, source ids.Source, plain, strict string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ascending(ctx, t, source)
	different(ctx, t, source)
	values(ctx, t, source.Sequence(plain))
	keyed(ctx, t, source.Sequence(strict))
	refusals(ctx, t, source, plain)
}

func ascending(ctx context.Context, t *testing.T, source ids.Source) {
	var all []worker.ID
	for _, n := range []int{1, 2, 999, 20_000} {
		some, err := source.Take(ctx, n)
		if err != nil || len(some) != n {
			t.Fatalf("Take(%d): %d IDs, %v", n, len(some), err)
		}
		one, err := source.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, some...), one)
	}
	if !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != len(all) || all[0] < 1 {
		t.Error("the IDs are not ascending")
	}
}

func different(ctx context.Context, t *testing.T, source ids.Source) {
	const goroutines, each = 8, 500
	got := make([][]worker.ID, goroutines)
	var asking sync.WaitGroup
	for i := range got {
		asking.Go(func() {
			for range each {
				id, err := source.Next(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				got[i] = append(got[i], id)
			}
		})
	}
	asking.Wait()
	all := slices.Concat(got...)
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != goroutines*each {
		t.Errorf("%d different IDs of %d", n, goroutines*each)
	}
}

func values(ctx context.Context, t *testing.T, q ids.Sequence) {
	v, err := q.Next(ctx)
	if err != nil || v != 1 {
		t.Fatalf("the first value is %d, %v", v, err)
	}
	some, err := q.Take(ctx, 20_000)
	if err != nil || len(some) != 20_000 || some[0] != 2 || !slices.IsSorted(some) {
		t.Fatalf("Take: %d values, %v", len(some), err)
	}
	first, last, err := q.Range(ctx, 100)
	if err != nil || first <= some[len(some)-1] || last != first+99 {
		t.Errorf("Range: %d to %d after %d, %v", first, last, some[len(some)-1], err)
	}
	if v, err = q.Next(ctx); err != nil || v <= last {
		t.Errorf("%d after %d, %v", v, last, err)
	}
}

func keyed(ctx context.Context, t *testing.T, q ids.Sequence) {
	first, err := q.NextKeyed(ctx, "order-1")
	if err != nil {
		t.Fatal(err)
	}
	other, err := q.NextKeyed(ctx, "order-2")
	if err != nil || other != first+1 {
		t.Errorf("the other key has %d after %d, %v", other, first, err)
	}
	if again, err := q.NextKeyed(ctx, "order-1"); err != nil || again != first {
		t.Errorf("the key has %d, had %d, %v", again, first, err)
	}
	if v, err := q.NextKeyed(ctx, "1-order"); err == nil {
		t.Errorf("a key that begins with a digit gets %d", v)
	}
}

func refusals(ctx context.Context, t *testing.T, source ids.Source, plain string) {
	q := source.Sequence(plain)
	for _, n := range []int{0, -1, ids.MaxTake + 1} {
		if all, err := source.Take(ctx, n); err == nil {
			t.Errorf("Take(%d) returns %d IDs", n, len(all))
		}
		if all, err := q.Take(ctx, n); err == nil {
			t.Errorf("Take(%d) returns %d values", n, len(all))
		}
		if first, last, err := q.Range(ctx, n); err == nil {
			t.Errorf("Range(%d) returns %d to %d", n, first, last)
		}
	}
	if v, err := source.Sequence("5 wrong").Next(ctx); err == nil {
		t.Errorf("a sequence without a valid name gives %d", v)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if v, err := q.Next(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is done: %d, %v", v, err)
	}
}
