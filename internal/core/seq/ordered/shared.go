package ordered

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/flaked/flaked/timeguard"
)

// Shared has the parts that the sections of a node share: how to ask other nodes, and which node should own a section.
// Its methods may be called by any goroutine.
type Shared struct {
	// Forward asks another node, nil: this node asks none. Go calls a function in a goroutine that Close waits for.
	// Parallel calls f for 0 to n-1 at once, and returns when all calls have. A test may replace them before the first
	// request.
	Forward  Forwarder
	Go       func(func())
	Parallel func(n int, f func(k int))
	// Now is AtMost for requests, ns: right also when the machine has just stood still.
	Now func() int64

	ownAddress string // where other nodes reach this one, "" for nowhere
	elapsed    *timeguard.Elapsed
	senders    senders
	cluster    atomic.Pointer[string] // UUID, nil before the node has joined it

	hadSections atomic.Bool // the node has known an ordered sequence since it started
	// nodes are the addresses of the nodes that may own sections: see KeepListed.
	nodes     atomic.Pointer[[]string]
	leaving   atomic.Bool  // the node gives its sections back, if there are others that may own them
	stopping  atomic.Bool  // the node gives its sections back, also if there is no other one
	movesLeft atomic.Int64 // how many sections may move to other nodes until the next heartbeat
}

// NewShared returns a Shared. It does no I/O. forward may be nil: this node asks no others. own is the address at which
// other nodes reach this one: HOST:PORT, "" for none.
func NewShared(forward Forwarder, own string, elapsed *timeguard.Elapsed) *Shared {
	sh := &Shared{
		Forward: forward, ownAddress: own, elapsed: elapsed, Parallel: parallel,
		//mutant:o2-at-least by internal/core/seq:TestOwnerAndBootClocksAtAnyRate -> Now: elapsed.AtLeast,
		Now: elapsed.ByWall().AtMost,
	}
	sh.senders.ctx, sh.senders.cancel = context.WithCancel(context.Background())
	sh.Go = sh.senders.start
	return sh
}

// Close ends the requests that are forwarded, and waits for their goroutines. None starts afterwards.
func (sh *Shared) Close() {
	sd := &sh.senders
	sd.mu.Lock()
	sd.cancel()
	sd.mu.Unlock()
	sd.wg.Wait()
}

// senders are the goroutines that forward requests. None starts after Shared.Close.
type senders struct {
	ctx    context.Context // of their calls
	cancel context.CancelFunc
	mu     sync.Mutex // makes start and Shared.Close exclude each other
	wg     sync.WaitGroup
}

// start calls f in a goroutine. After Shared.Close it does nothing: requests then wait in vain, as all do at the end.
func (sd *senders) start(f func()) {
	sd.mu.Lock()
	defer sd.mu.Unlock()
	if sd.ctx.Err() == nil {
		sd.wg.Go(f)
	}
}

// Join notes the cluster that the node has joined, "" for none yet.
func (sh *Shared) Join(uuid string) {
	if known := sh.cluster.Load(); uuid != "" && (known == nil || *known != uuid) {
		sh.cluster.Store(&uuid)
	}
}

// mustGiveBackAll reports whether this node must give all its sections back.
func (sh *Shared) mustGiveBackAll() bool {
	return sh.stopping.Load() || sh.leaving.Load() && sh.HasOthers()
}

// Leave makes this node give its sections back, if there are others that may own them. news: it had not been told
// before.
func (sh *Shared) Leave() (news bool) { return !sh.leaving.Swap(true) }

// Leaving reports whether Leave was called.
func (sh *Shared) Leaving() bool { return sh.leaving.Load() }

// Stop makes this node give all its sections back, also if there is no other one.
func (sh *Shared) Stop() { sh.stopping.Store(true) }

// HadSections reports whether the node has known an ordered sequence since it started.
func (sh *Shared) HadSections() bool { return sh.hadSections.Load() }
