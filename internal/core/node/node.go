package node

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/timeguard"
)

// Node is one flaked node. Call Run once. All other exported methods but Remember may be called at any time, from any
// goroutine. Two goroutines run a node: that of keeper, and that of extendLoop.
type Node struct {
	cfg   Config
	log   hclog.Logger
	clock *timeguard.IssuingClock
	// elapsed measures how much time passes (C31), for named sequences, too.
	elapsed *timeguard.Elapsed

	// serving is the tenure that IDs are made from. It is nil while the node refuses, and refusal then says why, and in
	// which phase. Both are stored while mu is held. To make an ID, a GET reads only serving.
	serving atomic.Pointer[tenure]
	refusal atomic.Pointer[Refusal]

	// view is the coordinator's state as last published. The keeper decides by coord, and publishes before it lets go
	// of a step. All others go by view: IDs, refusals, named sequences, snapshots and the local record. It is never
	// nil. Only the keeper stores it, while mu is held. If there is a tenure, View.Claim is of its slot.
	view atomic.Pointer[coordinator.View]

	keeperWokenAt atomic.Int64 // when a rollback last woke the keeper, monotonic ns

	began      chan struct{} // closed once the node has begun to serve
	wakeKeeper chan struct{} // capacity 1: wakes the keeper
	wakeDisk   chan struct{} // capacity 1: wakes extendLoop

	meter   meter
	started int64 // New, Unix ms by the machine's clock

	turns turns // for Live
	// saveMu is held from building a local record until the record is written. Otherwise an
	// older record could overwrite a newer one.
	saveMu sync.Mutex

	keeper *keeper

	noting sync.WaitGroup // timers that call noteStall

	mu stateMutex // guards state, never held during I/O or while a logger runs
	state
}

// stateMutex is a mutex with log lines that wait until it is unlocked: a logger that blocks must not stop refusals and
// probes, which need the mutex.
type stateMutex struct {
	mu   sync.Mutex
	said []func()
}

func (m *stateMutex) Lock() { m.mu.Lock() }

// Unlock unlocks the mutex and then logs what was said meanwhile.
func (m *stateMutex) Unlock() {
	said := m.said
	m.said = nil
	m.mu.Unlock()
	for _, line := range said {
		line()
	}
}

// say has a line logged once mu is unlocked. mu is held.
func (n *Node) say(log func(msg string, args ...any), msg string, args ...any) {
	n.mu.said = append(n.mu.said, func() { log(msg, args...) })
}

// state is shared by the two loops and by callers.
type state struct {
	// Only the keeper writes rules, so the keeper may read them without mu.
	rules
	// reservedUntil is the reserved bound (Unix ms) and generation the write count of the durable local record. Only
	// these are current: Claim has both as of its last read, grant or heartbeat.
	reservedUntil int64
	generation    uint64
	// served is how long the node has served, over all its restarts.
	served time.Duration
	// loss is a loss of data that named sequences have found, and that the coordinator does not know yet. nil: none.
	loss *foundLoss
	// resumed: this process began with the claim of its state directory, and has not become a newcomer since. It may
	// register with that identity if the claim shows that it never held a slot. journal is the count of the journal of
	// named sequences that the state file had.
	resumed bool
	journal uint64
	// rotations are the times when fresh slots were taken after a rollback, Unix ms.
	rotations []int64
	// tenure is that of View.Claim, whether or not serving has it. nil: none.
	tenure *tenure

	// confirmed: this process has confirmed a worker.
	confirmed bool
	// beganAt is the time at which the node began to serve, monotonic ns. 0: not yet.
	beganAt int64
	// sequencesReady: Ready need not look at named sequences any more.
	sequencesReady bool

	disk    diskState
	skew    skewState
	reports reportState
	drain   drainState
}

// drainState has what Drain was called with.
type drainState struct {
	asked   bool // Drain was called
	release bool // the node must release its worker when it stops
}

// skewState has the results of comparing this node's clock with other clocks.
type skewState struct {
	// rounds counts the heartbeats in a row after which most voters have found the clock wrong.
	rounds timeguard.Rounds
	// offset and verdict are of the last comparison.
	offset  timeguard.Offset
	verdict timeguard.Verdict
}

// reportState has the results of reporting to ZooKeeper.
type reportState struct {
	// address names the ZooKeeper where the record of this node's slot was last found, in the form of Config.ZooKeeper.
	address string
	// err is the error of the last round: of ZooKeeper, or of the disk or the clock when the round's result was
	// applied. It is nil if that round succeeded, and before the first round.
	err error
	// beatAt is the time at which the last heartbeat was acknowledged, Unix ms. 0: none yet.
	beatAt int64
	// frozen is the end of the freeze of registration, Unix ms. 0: not frozen.
	frozen int64
}

// peeked is the state, the phase and the view at one moment.
type peeked struct {
	state
	phase Phase
	*coordinator.View
}

// peek returns a copy of the state at this moment.
func (n *Node) peek() peeked {
	n.mu.Lock()
	defer n.mu.Unlock()
	return peeked{n.state, n.phase(), n.view.Load()}
}

// Phase is one of the phases of a node's life, from starting to stopping.
type Phase string

const (
	Starting   Phase = "starting"   // has no slot
	Confirming Phase = "confirming" // has an unconfirmed slot: a holder that ZooKeeper lost may come back
	Waiting    Phase = "waiting"    // has a slot whose floor is ahead of the clock
	Serving    Phase = "serving"
	Refusing   Phase = "refusing" // has a slot and must not use it: its clock is wrong, or the disk takes no writes
	Stopping   Phase = "stopping"
)

// Phases returns every phase.
func Phases() []Phase { return []Phase{Starting, Confirming, Waiting, Serving, Refusing, Stopping} }

// phase returns the present phase. mu is held.
func (n *Node) phase() Phase {
	if n.serving.Load() != nil {
		return Serving
	}
	return n.refusal.Load().Phase
}

// New returns a node, or an error if the configuration is not valid. It does no I/O.
func New(cfg Config) (*Node, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, log: cfg.Logger.Named("node"), clock: timeguard.NewIssuing(cfg.Clock),
		elapsed:    timeguard.NewElapsed(cfg.Clock),
		wakeKeeper: make(chan struct{}, 1), wakeDisk: make(chan struct{}, 1), began: make(chan struct{})}
	n.started = cfg.Clock.Wall() / 1e6
	n.keeper = &keeper{Node: n}
	n.keeper.coord = coordinator.New(coordinator.Config{
		Store: cfg.Store, Now: n.clock.NowMs, Elapsed: n.elapsed, Ledger: n.keeper, Labels: cfg.Labels,
		Interval: cfg.Heartbeat, Followed: cfg.Followed, Trace: cfg.Trace, Logger: cfg.Logger.Named("coordinator"),
	})
	n.view.Store(n.keeper.coord.View())
	n.refuse(Starting, CauseNoWorkerYet)
	return n, nil
}

// Run acquires a slot and holds it until the context ends. Then it stops: it records the end on the disk, and reports
// it to ZooKeeper for up to Config.RoundTimeout. Run returns nil if the context was cancelled. A stop that could not be
// recorded is logged. Any other error has ended the node. All goroutines of Run have ended then.
func (n *Node) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var disk sync.WaitGroup
	disk.Go(func() { n.extendLoop(ctx) })
	err := n.keeper.keep(ctx)
	cancel()
	disk.Wait()
	stopCtx, done := context.WithTimeout(context.WithoutCancel(ctx), n.stopTime())
	defer done()
	n.keeper.stop(stopCtx)
	n.noting.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// stopTime returns how long a stop may take to report to ZooKeeper: Config.RoundTimeout, but
// at most a second if the last round of calls failed.
func (n *Node) stopTime() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.reports.err != nil {
		return min(n.cfg.RoundTimeout, time.Second)
	}
	return n.cfg.RoundTimeout
}

// Elapsed measures how much time passes (C31). Heartbeats correct it by the clock of ZooKeeper's leader.
func (n *Node) Elapsed() *timeguard.Elapsed { return n.elapsed }

// now returns the issuing clock in Unix milliseconds.
func (n *Node) now() int64 { return n.clock.NowMs() }

// monotonic returns the monotonic clock in nanoseconds. Waits are measured by it.
func (n *Node) monotonic() int64 { return n.cfg.Clock.Mono() }

// refuse enters a phase in which the node makes no IDs. Clients are told the cause.
func (n *Node) refuse(p Phase, cause Cause) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refuseLocked(Refusal{Phase: p, Cause: cause})
}

// refuseLocked is refuse for a complete Refusal. mu is held.
func (n *Node) refuseLocked(r Refusal) {
	n.refusal.Store(newRefusal(r))
	n.serving.Store(nil)
}

// wake makes a loop begin its next round at once. It never blocks.
func wake(loop chan<- struct{}) {
	select {
	case loop <- struct{}{}:
	default:
	}
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
