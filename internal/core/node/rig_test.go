package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/testkit/memcluster"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/worker"
)

// rig is a cluster in memory in which real time passes, and one of its machines. Nodes run in goroutines of their own.
type rig struct {
	t *testing.T
	*memcluster.Cluster
	*memcluster.Machine
	cfg Config
}

func newRig(t *testing.T) *rig {
	base := time.Now()
	c := memcluster.New(func() int64 { return base.UnixNano() + int64(time.Since(base)) })
	r := &rig{t: t, Cluster: c, Machine: c.Machine()}
	none := time.Duration(0)
	r.cfg = Config{
		Cluster: "test", Bootstrap: true, Clock: r.Machine,
		Settings: Settings{ConfirmTime: &none}, InMemory: true,
		Heartbeat: 20 * time.Millisecond, RoundTimeout: 200 * time.Millisecond, Reserve: 300 * time.Millisecond,
		Labels: coordinator.Labels{Name: "n", Version: "test"},
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: testWriter{t}, DisableTime: true}),
	}
	return r
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// running is a node that a test has started.
type running struct {
	*Node
	t       *testing.T
	session *memzk.Session
	cancel  context.CancelFunc
	done    chan error
}

// node returns a node on the rig's disk, unless change gives it another, and its session.
func (r *rig) node(change ...func(*Config)) (*Node, *memzk.Session) {
	r.t.Helper()
	cache, err := localcache.New(r.Disk, localcache.Fingerprint{})
	if err != nil {
		r.t.Fatal(err)
	}
	cfg, session := r.cfg, r.Mem.Session()
	cfg.Store, cfg.Cache = session, cache
	for _, c := range change {
		c(&cfg)
	}
	n, err := New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	return n, session
}

// starting returns a node that refuses, because Run has not been called.
func starting(t *testing.T, change ...func(*Config)) *Node {
	t.Helper()
	n, _ := newRig(t).node(change...)
	return n
}

// start runs a node as node returns it.
func (r *rig) start(change ...func(*Config)) *running {
	r.t.Helper()
	n, session := r.node(change...)
	ctx, cancel := context.WithCancel(context.Background())
	run := &running{Node: n, t: r.t, session: session, cancel: cancel, done: make(chan error, 1)}
	go func() { run.done <- n.Run(ctx) }()
	r.t.Cleanup(func() { run.stop() })
	return run
}

// confirmedAndStopped starts a node, and stops it cleanly once it has confirmed.
func (r *rig) confirmedAndStopped() *running {
	r.t.Helper()
	n := r.start().untilReady()
	n.until("confirmed", n.isConfirmed)
	if err := n.stop(); err != nil {
		r.t.Fatal(err)
	}
	return n
}

// until waits for a condition. It fails the test after 10 s, or if the node ends first.
func (r *running) until(what string, ok func() bool) {
	r.t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case err := <-r.done:
			r.done <- err
			r.t.Fatalf("waiting for %s: the node ended: %v", what, err)
		case <-deadline:
			r.t.Fatalf("waited in vain for %s; %s; %v", what, r.Worker(), r.Ready())
		case <-tick.C:
		}
	}
}

// untilBeats waits for so many more heartbeats.
func (r *running) untilBeats(more int64) {
	last := r.Snapshot().Counts.Heartbeats + more
	r.until("heartbeats", func() bool { return r.Snapshot().Counts.Heartbeats >= last })
}

// issueFor takes IDs until the clock has gone on by d.
func (r *running) issueFor(d time.Duration) {
	for began := r.clock.Now(); r.clock.Now() < began+int64(d); {
		r.next()
	}
}

func (r *running) untilReady() *running {
	r.t.Helper()
	r.until("ready", func() bool { return r.Ready() == nil })
	return r
}

func (r *running) next() worker.Fields {
	r.t.Helper()
	run, err := r.Reserve(context.Background(), 1)
	if err != nil {
		r.t.Fatal(err)
	}
	f, err := worker.Leaf().Decode(run.First)
	if err != nil {
		r.t.Fatal(err)
	}
	return f
}

// cause returns why the node makes no ID now.
func (r *running) cause() Cause {
	r.t.Helper()
	_, err := r.Reserve(context.Background(), 1)
	refused, ok := errors.AsType[*Refusal](err)
	if !ok {
		r.t.Fatalf("not refused: %v", err)
	}
	return refused.Cause
}

func (n *Node) isConfirmed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.view.Load().Stage == coordinator.Confirmed
}

// stop stops the node cleanly and returns Run's error.
func (r *running) stop() error {
	r.cancel()
	err := <-r.done
	r.done <- err
	return err
}

// changeClaim changes the claim of the node's view. mu is held, or nothing runs.
func (n *Node) changeClaim(change func(*coordinator.Claim)) {
	v := *n.view.Load()
	change(&v.Claim)
	n.view.Store(&v)
}
