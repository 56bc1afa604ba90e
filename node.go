package flaked

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/atomic"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/pulse"
	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/core/seq/ordered/peer"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/timeguard"
)

// Node is a node inside this program. Make it with Open or Start, and end it with Close. Any
// number of goroutines may use it at once. It is an ids.Source.
type Node struct {
	cfg     Config
	log     hclog.Logger
	backing *backing
	node    *node.Node
	issuer  *seq.Issuer
	rounds  *seq.Rounds
	peers   *peer.Caller
	pulse   *pulse.Grid

	// stopLog passes on the last lines of the log.
	stopLog func()
	// stop ends the Node, with the reason. stopStore cuts its connection to ZooKeeper.
	stop      context.CancelCauseFunc
	stopStore context.CancelFunc
	ending    context.Context // done once the Node ends, and its cause is the reason
	done      chan struct{}   // closed when all goroutines have ended
	// locked is why the node waits for its state directory, nil if it does not.
	locked atomic.Pointer[StateDirError]
}

var _ ids.Source = (*Node)(nil)

// Open starts a node and waits until it is ready, so that Next gives IDs. If the node ends with
// an error before that, Open returns the error. If ctx is done first, Open closes the node, and
// returns an error that says what the node was waiting for. With ReleaseOnClose it may take a second
// more to release a worker.
//
// Give ctx a deadline, because without ZooKeeper a new node waits for ever. The deadline must be
// longer than the start can take:
//
//   - A node that starts again with its StateDir before its lease has expired is ready within some
//     10 ms. After a crash it first waits for up to Config.Reserve. Without ZooKeeper it takes 1.5 s
//     more.
//   - Every other node is ready after the cluster's confirming time, 12 s by default.
//
// The ctx of Open does not end the node later. Close does.
func Open(ctx context.Context, cfg Config) (*Node, error) {
	n, err := Start(cfg)
	if err != nil {
		return nil, err
	}
	if err := n.WaitReady(ctx); err != nil {
		if e := n.locked.Load(); e != nil {
			_ = n.Close(context.Background()) // at once: it has nothing
			return nil, &StateDirError{e.Dir, fmt.Errorf("%w (%w)", e.Err, err)}
		}
		connected := ctx.Err() == nil || n.backing.store.SessionID() != 0
		patience := time.Duration(0) // the caller has waited long enough
		if connected && n.cfg.ReleaseOnClose {
			patience = releaseTime
		}
		cut, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = n.Close(cut)
		return nil, advised(err, connected)
	}
	return n, nil
}

// releaseTime is how long an Open that failed may take to release its worker. A program that calls Open
// again and again with a short deadline would use up the cluster's workers otherwise.
const releaseTime = time.Second

// Start starts a node, and does not wait until it is ready. It returns a *ConfigError if cfg is
// wrong, and a *StateDirError if a state directory cannot be used. An error that stops the node
// later is not returned here: see Done. If another process has the state directory, the node waits for
// it for 30 s, and then ends with a *StateDirError that wraps ErrLocked.
func Start(cfg Config) (*Node, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, &ConfigError{err}
	}
	var stopLog func()
	cfg.HCLogger, stopLog = cfg.logger()
	b, err := open(cfg)
	if err != nil {
		stopLog()
		return nil, err
	}
	first := b.lock(cfg.HCLogger)
	if first != nil && !errors.Is(first, ErrLocked) {
		b.close()
		stopLog()
		return nil, first
	}
	n := &Node{cfg: cfg, log: cfg.HCLogger, stopLog: stopLog, backing: b, pulse: pulse.New(timeguard.System().Mono),
		done: make(chan struct{})}
	if err := n.assemble(); err != nil {
		b.close()
		stopLog()
		return nil, &ConfigError{err}
	}
	var connected context.Context
	n.ending, n.stop = context.WithCancelCause(context.Background())
	connected, n.stopStore = context.WithCancel(context.Background())
	if e, ok := errors.AsType[*StateDirError](first); ok {
		n.locked.Store(e)
	}
	go n.run(connected)
	return n, nil
}

// assemble makes the node and the issuer of named sequences.
func (n *Node) assemble() error {
	cfg := n.cfg.node()
	cfg.Pulse, cfg.Logger = n.pulse, n.log
	cfg.Store, cfg.ZooKeeper = n.backing.store, n.backing.zookeeper
	cfg.Cache, cfg.Reconnected = &n.backing.cache, n.backing.reconnected
	cfg.WakeSequences = func() { n.issuer.Wake() }
	cfg.HasSequences = func() bool { return n.issuer.InUse() }
	cfg.Journal = func() uint64 { return n.issuer.JournalCount() }
	cfg.Followed = func() coordinator.Followed { return n.issuer.Followed() }
	var err error
	if n.node, err = node.New(cfg); err != nil {
		return err
	}
	n.peers = peer.New(func() (creds dialog.Client) {
		if n.cfg.PeerAccess != nil {
			creds.Token, creds.TLS = n.cfg.PeerAccess()
		}
		return creds
	})
	var dir seq.Dir
	if n.cfg.StateDir != "" {
		dir = &n.backing.files
	}
	n.issuer, n.rounds = seq.New(seq.Config{
		Store: n.backing.store, Tenure: n.node.Tenure(), Elapsed: n.node.Elapsed(), Boot: timeguard.BootID(),
		By: n.cfg.Name, Address: dialog.PeerAddress(n.cfg.Address), Pass: n.peers.Pass,
		Follow: n.cfg.Heartbeat, Pulse: n.pulse,
		Dir: dir, Met: n.node.Met, Trace: n.cfg.trace, Log: n.log.Named("sequences"),
	})
	return nil
}

// run keeps the node until stop is called or a part fails.
func (n *Node) run(connected context.Context) {
	defer close(n.done)
	if err := n.awaitLock(limits.LockWait); err != nil {
		n.stop(err)
		n.peers.Close()
	} else {
		n.node.Remember(n.rounds.Recall())
		n.work(connected)
	}
	n.backing.close()
	n.stopLog()
}

// work runs the parts of the node. It ends them in order: named sequences need the node's worker to give back what was
// not issued, and the node needs ZooKeeper to report its end.
func (n *Node) work(connected context.Context) {
	issuerCtx, stopIssuer := context.WithCancel(context.Background())
	nodeCtx, stopNode := context.WithCancel(context.Background())
	defer stopIssuer()
	defer stopNode()
	var connecting, keeping, issuing sync.WaitGroup
	connecting.Go(func() {
		if err := n.backing.run(connected); err != nil {
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

// WaitReady waits until the node is ready, as Open does.
func (n *Node) WaitReady(ctx context.Context) error {
	served := n.node.Served()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for n.node.Issues() != nil {
		select {
		case <-served:
			served = nil // it has begun to serve, and may have stopped again
		case <-look.C:
		case <-n.done:
			return n.reason()
		case <-ctx.Done():
			return ids.Unavailable(ctx.Err(), n.node.Issues())
		}
	}
	return nil
}

// Close ends the node. Calls that wait fail with ids.ErrClosed. Close stores the bounds, so that
// the next start with this StateDir does not wait for the clock. It also reports the end to
// ZooKeeper. The report takes some milliseconds, up to 5 s if ZooKeeper is slow or has just gone, and
// a second if the last report had failed. If ctx is done first, Close gives ZooKeeper a second more to end the
// session. No ID is lost then, but a worker that Close releases may stay reserved until its lease
// expires.
//
// When Close returns, all goroutines of the node have ended. Close returns nil after an end in
// good order, ctx.Err() if ctx cut the end short, and otherwise the error that had ended the node
// before. It may be called more than once.
func (n *Node) Close(ctx context.Context) error {
	n.stop(ids.ErrClosed)
	var cut error
	select {
	case <-n.done:
	case <-ctx.Done():
		cut = ctx.Err()
		n.stopStore()
		<-n.done
	}
	if err := n.reason(); err != ids.ErrClosed {
		return err
	}
	return cut
}

// Done returns a channel that is closed when the node has ended: after Close, or because of an
// error, such as a clock that is wrong at the start. Close then returns the error.
func (n *Node) Done() <-chan struct{} { return n.done }

// reason returns why the node ends: ids.ErrClosed, or the error of a part. It returns nil while the
// node does not end.
func (n *Node) reason() error {
	err := context.Cause(n.ending)
	if errors.Is(err, context.Canceled) {
		return ids.ErrClosed
	}
	return err
}

// Drain prepares the end of the node. From now on Ready returns an error, so that load balancers
// send requests to other nodes. Next still gives IDs until Close. If release is true, Close releases
// the worker, as with Config.ReleaseOnClose.
func (n *Node) Drain(release bool) {
	n.node.Drain(release)
	n.issuer.Leave()
}

// Leave gives the ordered sequences that this node owns to other nodes, if there are any. It returns when that is
// done, or when ctx ends. Requests for them are passed on to the new owners until Close. Call it before a server of
// LineProtocol ends: else other nodes would ask this one in vain.
func (n *Node) Leave(ctx context.Context) {
	n.issuer.Leave()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for !n.issuer.Left() {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// Ready returns nil if Next would give an ID now or after a short wait. After Drain it returns an error. If other nodes
// take values of named sequences, it also returns an error until this node does. It is for readiness probes. Its errors
// are those of Next.
func (n *Node) Ready() error {
	if err := n.node.Ready(); err != nil {
		return n.refused(context.Background(), err)
	}
	return nil
}

// Live returns nil while the node's goroutines make progress, and otherwise the reason to restart
// the process. It does not depend on ZooKeeper. It is for liveness probes.
func (n *Node) Live() error { return n.node.Live() }

// LineProtocol returns the Backend and the Sequences of a lineproto.Config, with which the program serves the node's
// IDs and sequences to others, as the daemon flaked does. The server must end before Close.
func (n *Node) LineProtocol() (lineproto.Backend, lineproto.Sequences) { return n.node, n.issuer }

// advised returns err, with which Open fails, and what to do. connected is false if Open
// has waited for ZooKeeper in vain.
func advised(err error, connected bool) error {
	if !connected {
		return fmt.Errorf("%w. No connection to ZooKeeper: check Config.ZooKeeper, and that it runs and has a quorum",
			err)
	}
	if e, ok := errors.AsType[*ids.ReplyError](err); ok && e.Reason() == string(node.CauseConfirming) {
		return fmt.Errorf("%w. A new node waits for the cluster's confirming time before its first ID: give the "+
			"context of Open more time", err)
	}
	for _, row := range []struct {
		is     error
		advice string
	}{
		{coordinator.ErrNoCluster, "Check Config.ZooKeeper and Config.Cluster. Config.Bootstrap creates a cluster"},
		{store.ErrDenied, "Give Config.ZooKeeperAuth the user that created the records"},
		{store.ErrQuota, "Raise the quota"},
		{store.ErrLocalSession, "Set localSessionsUpgradingEnabled=true on all its servers"},
	} {
		if errors.Is(err, row.is) {
			return fmt.Errorf("%w. %s", err, row.advice)
		}
	}
	return err
}
