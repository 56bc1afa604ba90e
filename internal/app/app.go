// Package app puts a node together. The binary's serve uses it, and package flaked, which is its face for other
// programs.
//
// A Node ends its parts in an order: first the issuer of named sequences, which needs the node's worker to give back
// what was not issued, then the node, which needs ZooKeeper to report its end, and last the connection. Read Config,
// Node and backing.
package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/atomic"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/entrylog"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/pulse"
	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/core/seq/ordered/peer"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/timeguard"
)

// Config configures New.
type Config struct {
	// Node is the configuration of the node. New adds what joins the parts: Store, ZooKeeper, Reconnected, Cache,
	// BootID, Pulse, and what the node asks of named sequences. Of the labels, New adds Host and PID, and Name and
	// Version if they are empty.
	Node node.Config
	// ZooKeeper reaches the ZooKeeper of Node.Cluster. It is unused if Node.InMemory is set.
	ZooKeeper store.ZKConfig
	// StateDir is the directory in which the node keeps its identity and bounds. A relative path counts from the
	// working directory at New. Empty means a temporary one, which the Node removes at its end. It then releases its
	// worker, too.
	StateDir string
	// Ended, if not nil, is called last, when nothing is logged any more. If New fails, it is not called.
	Ended func()
	// PeerAccess returns the token and the TLS configuration for a new connection to another node. nil means neither.
	PeerAccess func() (token string, config *tls.Config)
}

// StateDirError means that a state directory cannot be used. Err is or wraps localcache.ErrLocked, or an error of the
// file system.
type StateDirError struct {
	Dir string
	Err error
}

func (e *StateDirError) Error() string { return fmt.Sprintf("state directory %s: %v", e.Dir, e.Err) }
func (e *StateDirError) Unwrap() error { return e.Err }

// Node is a node with its connections. Make it with New, call Start once, and end it with Close. Package flaked has a
// type of its own from this one, so no field may be exported.
type Node struct {
	log     hclog.Logger
	backing *backing
	node    *node.Node
	issuer  *seq.Issuer
	rounds  *seq.Rounds
	peers   *peer.Caller
	cluster string
	ended   func()

	// stop ends the Node, with the reason. stopStore cuts its connection to ZooKeeper.
	stop      context.CancelCauseFunc
	stopStore context.CancelFunc
	connected context.Context // done once the connection to ZooKeeper is cut
	ending    context.Context // done once the Node ends, and its cause is the reason
	done      chan struct{}   // closed when all goroutines have ended
	// locked is the reason why the node waits for its state directory, nil if it does not wait.
	locked atomic.Pointer[StateDirError]
}

// New returns a Node, or what is wrong with c. It opens and connects nothing.
func New(c Config) (*Node, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	n := &Node{log: c.Node.Logger, cluster: c.Node.Cluster, ended: c.Ended, done: make(chan struct{})}
	n.ending, n.stop = context.WithCancelCause(context.Background())
	n.connected, n.stopStore = context.WithCancel(context.Background())
	if n.backing, err = newBacking(c); err != nil {
		return nil, err
	}
	cfg := c.Node
	cfg.Pulse, cfg.BootID = pulse.New(timeguard.System().Mono), timeguard.BootID()
	cfg.Store, cfg.ZooKeeper = n.backing.store, n.backing.zookeeper
	cfg.Cache, cfg.Reconnected = &n.backing.cache, n.backing.reconnected
	cfg.WakeSequences = func() { n.issuer.Wake() }
	cfg.HasSequences = func() bool { return n.issuer.InUse() }
	cfg.Journal = func() uint64 { return n.issuer.JournalCount() }
	cfg.DirError = func() error { return n.issuer.DirError() }
	cfg.Followed = func() coordinator.Followed { return n.issuer.Followed() }
	if n.node, err = node.New(cfg); err != nil {
		return nil, err
	}
	n.peers = peer.New(func() (creds dialog.Client) {
		if c.PeerAccess != nil {
			creds.Token, creds.TLS = c.PeerAccess()
		}
		return creds
	})
	var dir entrylog.Dir
	if c.StateDir != "" {
		dir = &n.backing.files
	}
	n.issuer, n.rounds = seq.New(seq.Config{
		Store: n.backing.store, Tenure: n.node.Tenure(), Elapsed: n.node.Elapsed(), Boot: cfg.BootID,
		By: cfg.Labels.Name, Address: dialog.PeerAddress(cfg.Labels.Address), Forward: n.peers.Forward,
		Follow: cfg.Heartbeat, Pulse: cfg.Pulse,
		Dir: dir, Met: n.node.Met, Trace: cfg.Trace, Log: n.log.Named("sequences"),
	})
	return n, nil
}

func (c Config) withDefaults() (Config, error) {
	if c.Node.Logger == nil {
		c.Node.Logger = hclog.NewNullLogger()
	}
	if c.Ended == nil {
		c.Ended = func() {}
	}
	host, _ := os.Hostname() // a label: "" will do
	l := &c.Node.Labels
	l.Host, l.PID = host, os.Getpid()
	l.Name, l.Version = cmp.Or(l.Name, host), cmp.Or(l.Version, moduleVersion())
	c.Node.ReleaseOnExit = c.Node.ReleaseOnExit || c.StateDir == ""
	c.ZooKeeper.Cluster, c.ZooKeeper.Logger = c.Node.Cluster, c.Node.Logger
	if c.Node.InMemory {
		c.Node.Bootstrap, c.Node.Settings.ConfirmTime = true, new(time.Duration(0)) // no other node to wait for
	}
	if c.StateDir != "" {
		dir, err := filepath.Abs(c.StateDir) // the program may change its working directory
		if err != nil {
			return c, fmt.Errorf("the state directory %q is relative, and the working directory is unknown: %w. Give "+
				"an absolute path", c.StateDir, err)
		}
		c.StateDir = dir
	}
	return c, nil
}

// moduleVersion returns the release of this module as the program was built with it.
func moduleVersion() string {
	const path, unknown = "github.com/flaked/flaked", "devel"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return cmp.Or(strings.Trim(m.Version, "()"), unknown)
		}
	}
	return unknown
}

// Start opens the state directory and starts the goroutines. The error is a *StateDirError, and the Node is then of no
// use. If another process has the directory, the node waits for it for 30 s, and then ends with a *StateDirError that
// wraps localcache.ErrLocked.
func (n *Node) Start() error {
	err := n.backing.open(n.log)
	if e, ok := errors.AsType[*StateDirError](err); ok && errors.Is(err, localcache.ErrLocked) {
		n.locked.Store(e)
	} else if err != nil {
		n.backing.close()
		n.ended()
		return err
	}
	go n.run()
	return nil
}

// run keeps the node until stop is called or a part fails, and ends its parts in order.
func (n *Node) run() {
	defer close(n.done)
	defer n.ended()
	defer n.backing.close()
	if err := n.awaitLock(limits.LockWait); err != nil {
		n.stop(err)
		n.peers.Close()
		return
	}
	n.node.Remember(n.rounds.Recall())
	issuerCtx, stopIssuer := context.WithCancel(context.Background())
	nodeCtx, stopNode := context.WithCancel(context.Background())
	defer stopIssuer()
	defer stopNode()
	var connecting, keeping, issuing sync.WaitGroup
	connecting.Go(func() {
		if err := n.backing.run(n.connected); err != nil {
			n.stop(err)
		}
	})
	keeping.Go(func() { n.stop(n.node.Run(nodeCtx)) })
	issuing.Go(func() { n.rounds.Run(issuerCtx) })

	<-n.ending.Done()
	stopIssuer()
	issuing.Wait()
	n.peers.Close()
	stopNode()
	keeping.Wait()
	n.stopStore()
	if err := n.backing.store.Close(); err != nil {
		n.log.Debug("closing the connection to ZooKeeper failed", "error", err)
	}
	connecting.Wait()
	n.rounds.Wait() // a write to the state directory may still go on: nobody else may use it
}

// lockEvery is the time between two looks at a state directory that another process has.
const lockEvery = 100 * time.Millisecond

// awaitLock waits for the state directory if another process has it: that may be the one in whose place this one was
// started. It returns nil if this process has it now.
func (n *Node) awaitLock(limit time.Duration) error {
	var err error
	if e := n.locked.Load(); e != nil {
		err = e
		n.log.Warn("waiting for the state directory, because another process uses it", "state_dir", e.Dir,
			"error", e.Err, "at_most_s", limit.Seconds())
	}
	began := time.Now()
	for err != nil {
		_ = n.rounds.Round(n.ending) // the node has joined no cluster, so this only refuses requests that wait
		select {
		case <-n.ending.Done():
			return err
		case <-time.After(lockEvery):
		}
		err = n.backing.open(n.log)
		if err != nil && (!errors.Is(err, localcache.ErrLocked) || time.Since(began) >= limit) {
			return err
		}
	}
	n.locked.Store(nil)
	return nil
}
