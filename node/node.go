package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/atomic"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// Node is one flaked node. Run is called once; everything else may be called at any
// time, from any goroutine.
type Node struct {
	cfg   Config
	log   hclog.Logger
	clock *timeguard.Issuing
	coord *coordinator.Coordinator

	// serving is the tenure that IDs are made from, nil while the node refuses;
	// refusal then says why. They are all that a GET looks at.
	serving atomic.Pointer[tenure]
	refusal atomic.Pointer[Refusal]

	kicked atomic.Int64 // when a GET last woke the keeper, monotonic ns

	// published, if set, is told that this node has begun to serve. mu is held.
	published func()

	// startSlack is added to how long a start waits for its clock.
	startSlack time.Duration

	kick chan struct{} // capacity 1: the keeper is to look at once
	poke chan struct{} // capacity 1: the extend loop is

	meter meter

	turns  turns      // for Live
	saveMu sync.Mutex // guards writes of the local record: the order they are made up in is the order they are written in

	keeper keeper

	mu sync.Mutex // guards state; never held during I/O
	state
}

// keeper is used by one goroutine only, the one that runs keep.
type keeper struct {
	heard int64 // when ZooKeeper last answered a start, monotonic ns
	// settleAt is when the slot may be settled, monotonic ns, and lastSettle the settling
	// time that the last grant asked for.
	settleAt   int64
	lastSettle time.Duration
	rounds     timeguard.Rounds
	owed       []debt
}

// state is what the loops share.
type state struct {
	phase   Phase
	cluster coordinator.Cluster
	rules
	// claim is our hold on the slot, in memory: it may be newer than the local record.
	// m is the reserved bound and generation the write count that are durable there;
	// claim.M and claim.Generation are only what Resume and Stop are told. Only the
	// goroutine of keep writes claim, cluster and rules, so it may read them without mu.
	claim      coordinator.Claim
	m          int64
	generation uint64
	served     time.Duration // serving, over restarts
	rotations  []int64       // Unix ms of fresh slots taken after a rollback
	// held is the tenure of the claim, published in serving or not.
	held *tenure
	// settled: ZooKeeper's record of the present term is settled. False after a start,
	// until the first heartbeat that settles it. claim.Settled stays true over a restart:
	// the node serves below the old bound meanwhile.
	settled bool
	// restartedFrom is the generation that the node began from without
	// ZooKeeper, until its restart is known there.
	restartedFrom uint64

	disk  diskState
	skew  skewState
	store storeState
}

// diskState is how the state directory does.
type diskState struct {
	err    error // why the reserved bound is not being extended
	saving bool  // the local record is being written, since then, monotonic ns
	since  int64
	// stallSaid: the log has that this takes long.
	stallSaid bool
}

// skewState is how our clock compares with others.
type skewState struct {
	wrong    bool // by most voters, for some rounds
	offset   timeguard.Offset
	verdict  timeguard.Verdict
	agreed   coordinator.Reading // of our clock, that most agreed with at last; zero: they did not
	warnedAt int64               // when clocks that differ were last logged, monotonic ns
}

// storeState is how ZooKeeper does.
type storeState struct {
	// address is where the record of our slot was last found, as Config.ZooKeeper.
	address string
	err     error // why the last heartbeat came to nothing
	beatAt  int64 // when the last one was acknowledged, Unix ms
	frozen  int64 // until when registration is frozen, Unix ms
}

// peek returns the state at this moment.
func (n *Node) peek() state {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state
}

// tenure is one holding of one slot by this process. A reservation keeps the
// one that it was made in.
type tenure struct {
	node   string
	worker int
	lo     int64 // floor, Unix ms
	gen    *worker.Generator
	counts bool // rollbacks, in its IDs
}

// Phase is what a node is doing.
type Phase string

const (
	Starting Phase = "starting" // no slot yet
	Settling Phase = "settling" // has a slot that is not settled: a forgotten owner gets time to come back
	Waiting  Phase = "waiting"  // until the clock reaches what the predecessor may have used
	Serving  Phase = "serving"
	Refusing Phase = "refusing" // has a slot and must not use it: its clock is wrong, or the disk takes no writes
	Stopping Phase = "stopping"
)

// Phases are all of them.
func Phases() []Phase { return []Phase{Starting, Settling, Waiting, Serving, Refusing, Stopping} }

// New validates the configuration. It does no I/O.
func New(cfg Config) (*Node, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, log: cfg.Logger.Named("node"), clock: cfg.Issuing, kick: make(chan struct{}, 1), poke: make(chan struct{}, 1)}
	n.cfg.Cache = meteredCache{cfg.Cache, cfg.Clock.Mono, &n.meter.disk}
	n.coord, err = coordinator.New(coordinator.Config{
		Store: cfg.Store, Now: n.clock.NowMs, Ledger: ledger{n}, Labels: cfg.Labels,
		Interval: cfg.Heartbeat, Logger: cfg.Logger.Named("coordinator"),
	})
	if err != nil {
		return nil, err
	}
	n.refuse(Starting, CauseNoWorkerYet)
	return n, nil
}

// Run takes a slot and keeps it until the context ends; then it stops cleanly,
// which takes a few seconds at most. It returns nil after a clean stop.
func (n *Node) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var disk sync.WaitGroup
	disk.Go(func() { n.extendLoop(ctx) })
	err := n.keep(ctx)
	cancel()
	disk.Wait()
	stopCtx, done := context.WithTimeout(context.WithoutCancel(ctx), n.stopTime())
	defer done()
	n.stop(stopCtx)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// stopTime is what telling ZooKeeper of a stop may take: not much when it did
// not answer the last heartbeat either.
func (n *Node) stopTime() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.store.err != nil {
		return min(n.cfg.CallTimeout, time.Second)
	}
	return n.cfg.CallTimeout
}

// now is the issuing clock in Unix milliseconds.
func (n *Node) now() int64 { return n.clock.NowMs() }

// mono is the monotonic clock in nanoseconds: what waits are measured by.
func (n *Node) mono() int64 { return n.cfg.Clock.Mono() }

// refuse enters a phase in which the node makes no IDs, for a cause that clients
// are told.
func (n *Node) refuse(p Phase, cause Cause) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refuseLocked(Refusal{Phase: p, Cause: cause})
}

// refuseLocked is refuse with the figures of a refusal. mu is held.
func (n *Node) refuseLocked(r Refusal) {
	n.phase = r.Phase
	n.refusal.Store(&r)
	n.serving.Store(nil)
}

// wake has a loop look at once.
func wake(loop chan<- struct{}) {
	select {
	case loop <- struct{}{}:
	default:
	}
}
