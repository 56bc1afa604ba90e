package ordered

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
)

// Requests for ordered sequences are passed on to the owner. All that wait for one lane share one request to it.

// Node has the parts that the sections of a node share: how to ask other nodes, and which node should own a section.
// Its methods may be called by any goroutine.
type Node struct {
	// Pass asks another node: see NewNode. Beside calls a function in a goroutine that Close waits for, and Each calls
	// one for 0 to n-1 at once, and returns when all have. A test may replace them before the first request.
	Pass   func(ctx context.Context, ask Ask) (Answer, error)
	Beside func(func())
	Each   func(n int, f func(k int))
	// Now is AtMost for requests, ns: right also when the machine has just stood still.
	Now func() int64

	own     string // where other nodes reach this one, "" for nowhere
	elapsed *timeguard.Elapsed
	senders senders
	cluster atomic.Pointer[string] // UUID, nil before the node has joined it

	inUse atomic.Bool // the node knows an ordered sequence
	// nodes are the addresses of the nodes that may own sections: see place.
	nodes   atomic.Pointer[[]string]
	leaving atomic.Bool  // the node gives its sections to others
	ending  atomic.Bool  // the node gives its sections back, also if there is no other one
	movable atomic.Int64 // how many sections may move to other nodes until the next heartbeat
}

// NewNode returns a Node. It does no I/O.
//
// pass asks another node for values. It returns an *ids.ReplyError if that node refuses, an error that wraps
// ErrNotAsked if the request was certainly not sent, and another one if the outcome is not known. nil: this node asks
// no others. own is the address at which other nodes reach this one: HOST:PORT, "" for none.
func NewNode(
	pass func(ctx context.Context, ask Ask) (Answer, error), own string, elapsed *timeguard.Elapsed,
) *Node {
	n := &Node{
		Pass: pass, own: own, elapsed: elapsed, Each: atOnce,
		//mutant:o2-at-least by internal/core/seq:TestOwnerAndBootClocksAtAnyRate -> Now: elapsed.AtLeast,
		Now: elapsed.ByWall().AtMost,
	}
	n.senders.ctx, n.senders.cancel = context.WithCancel(context.Background())
	n.Beside = n.senders.start
	return n
}

// Close ends the requests that are passed on, and waits for their goroutines. None starts afterwards.
func (n *Node) Close() {
	p := &n.senders
	p.mu.Lock()
	p.cancel()
	p.mu.Unlock()
	p.wg.Wait()
}

// senders are the goroutines that pass requests on. None starts after Node.Close.
type senders struct {
	ctx    context.Context // of their calls
	cancel context.CancelFunc
	mu     sync.Mutex // makes start and Node.Close exclude each other
	wg     sync.WaitGroup
}

// start calls f in a goroutine. After Node.Close it does nothing: requests then wait in vain, as all do at the end.
func (p *senders) start(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() == nil {
		p.wg.Go(f)
	}
}

// Join notes the cluster that the node has joined, "" for none yet.
func (n *Node) Join(uuid string) {
	if known := n.cluster.Load(); uuid != "" && (known == nil || *known != uuid) {
		n.cluster.Store(&uuid)
	}
}

// The nodes that may own sections are listed in ZooKeeper, each with an ephemeral record that is named after its
// address. Rendezvous hashing gives each section a place among them: the node that is asked first when nobody owns the
// section. It has no part in safety.

// place returns the address of the node that should own a section: this one if there is no other.
func (n *Node) place(section string) string {
	nodes := n.nodes.Load()
	if nodes == nil || len(*nodes) == 0 {
		return n.own
	}
	return Place(*nodes, section)
}

// Place returns the address, of those that are listed, of the node that should own a section. "": there is none.
func Place(addresses []string, section string) (best string) {
	var most uint64
	for _, address := range addresses {
		h := fnv.New64a()
		h.Write([]byte(address + " " + section)) // never fails
		// The last bytes of the section change only the lower bits, which must count, too.
		if w := h.Sum64() * 0x9E3779B97F4A7C15; best == "" || w^w>>29 > most {
			best, most = address, w^w>>29
		}
	}
	return best
}

// movesAtOnce is the number of sections that a node gives away at each heartbeat, because they have their place at
// another node.
const movesAtOnce = 8

// Others reports whether another node may own sections.
func (n *Node) Others() bool {
	nodes := n.nodes.Load()
	return nodes != nil && slices.ContainsFunc(*nodes, func(a string) bool { return a != n.own })
}

// leaves reports whether this node gives all its sections away.
func (n *Node) leaves() bool { return n.ending.Load() || n.leaving.Load() && n.Others() }

// Leave makes this node give its sections to other nodes. news: it had not been told before.
func (n *Node) Leave() (news bool) { return !n.leaving.Swap(true) }

// IsLeaving reports whether this node was told to give its sections to other nodes.
func (n *Node) IsLeaving() bool { return n.leaving.Load() }

// GiveAll makes this node give all its sections back, also if there is no other one.
func (n *Node) GiveAll() { n.ending.Store(true) }

// Used reports whether the node knows an ordered sequence.
func (n *Node) Used() bool { return n.inUse.Load() }

// takeMove reports whether this node should give a section away now, because the section has its place at another one.
// That uses up one of movesAtOnce.
func (n *Node) takeMove(section string) bool {
	return n.Others() && n.place(section) != n.own && n.movable.Add(-1) >= 0
}

// KeepListed reads the list of the nodes that may own sections, and keeps this node on it while it may.
func (n *Node) KeepListed(ctx context.Context, st store.Store, may func() bool) error {
	if !n.inUse.Load() || n.Pass == nil {
		return nil
	}
	nodes, err := st.Children(ctx, record.NodesDir)
	if err != nil && !errors.Is(err, store.ErrNoNode) {
		return err
	}
	n.movable.Store(movesAtOnce)
	listed, stays := slices.Contains(nodes, n.own), n.own != "" && !n.leaving.Load() && may()
	switch {
	case stays && !listed:
		if err := st.EnsureRoot(ctx, record.StatePath, record.NodesDir); err != nil {
			return err
		}
		_, err := st.Create(ctx, record.NodesDir+"/"+n.own, nil, store.Ephemeral)
		if err != nil && !errors.Is(err, store.ErrExists) {
			return err
		}
		nodes = append(nodes, n.own)
	case !stays && listed:
		err := st.Delete(ctx, record.NodesDir+"/"+n.own, store.AnyVersion)
		if err != nil && !errors.Is(err, store.ErrNoNode) {
			return err
		}
		nodes = slices.DeleteFunc(nodes, func(a string) bool { return a == n.own })
	}
	n.nodes.Store(&nodes)
	return nil
}
