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
	// Forward asks another node, nil: this node asks none. Beside calls a function in a goroutine that Close waits for,
	// and Each calls one for 0 to n-1 at once, and returns when all have. A test may replace them before the first
	// request.
	Forward Forwarder
	Beside  func(func())
	Each    func(n int, f func(k int))
	// Now is AtMost for requests, ns: right also when the machine has just stood still.
	Now func() int64

	own     string // where other nodes reach this one, "" for nowhere
	elapsed *timeguard.Elapsed
	senders senders
	cluster atomic.Pointer[string] // UUID, nil before the node has joined it

	inUse atomic.Bool // the node has known an ordered sequence since it started
	// nodes are the addresses of the nodes that may own sections: see KeepListed.
	nodes    atomic.Pointer[[]string]
	leaving  atomic.Bool  // the node gives its sections to others
	stopping atomic.Bool  // the node gives its sections back, also if there is no other one
	movable  atomic.Int64 // how many sections may move to other nodes until the next heartbeat
}

// NewShared returns a Shared. It does no I/O. forward may be nil: this node asks no others. own is the address at which
// other nodes reach this one: HOST:PORT, "" for none.
func NewShared(forward Forwarder, own string, elapsed *timeguard.Elapsed) *Shared {
	sh := &Shared{
		Forward: forward, own: own, elapsed: elapsed, Each: atOnce,
		//mutant:o2-at-least by internal/core/seq:TestOwnerAndBootClocksAtAnyRate -> Now: elapsed.AtLeast,
		Now: elapsed.ByWall().AtMost,
	}
	sh.senders.ctx, sh.senders.cancel = context.WithCancel(context.Background())
	sh.Beside = sh.senders.start
	return sh
}

// Close ends the requests that are forwarded, and waits for their goroutines. None starts afterwards.
func (sh *Shared) Close() {
	p := &sh.senders
	p.mu.Lock()
	p.cancel()
	p.mu.Unlock()
	p.wg.Wait()
}

// senders are the goroutines that forward requests. None starts after Shared.Close.
type senders struct {
	ctx    context.Context // of their calls
	cancel context.CancelFunc
	mu     sync.Mutex // makes start and Shared.Close exclude each other
	wg     sync.WaitGroup
}

// start calls f in a goroutine. After Shared.Close it does nothing: requests then wait in vain, as all do at the end.
func (p *senders) start(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() == nil {
		p.wg.Go(f)
	}
}

// Join notes the cluster that the node has joined, "" for none yet.
func (sh *Shared) Join(uuid string) {
	if known := sh.cluster.Load(); uuid != "" && (known == nil || *known != uuid) {
		sh.cluster.Store(&uuid)
	}
}

// givesAll reports whether this node gives all its sections away.
func (sh *Shared) givesAll() bool { return sh.stopping.Load() || sh.leaving.Load() && sh.Others() }

// Leave makes this node give its sections to other nodes. news: it had not been told before.
func (sh *Shared) Leave() (news bool) { return !sh.leaving.Swap(true) }

// WasToldToLeave reports whether this node was told to give its sections to other nodes.
func (sh *Shared) WasToldToLeave() bool { return sh.leaving.Load() }

// GiveAll makes this node give all its sections back, also if there is no other one.
func (sh *Shared) GiveAll() { sh.stopping.Store(true) }

// Used reports whether the node has known an ordered sequence since it started.
func (sh *Shared) Used() bool { return sh.inUse.Load() }
