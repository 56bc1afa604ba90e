package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/flaked/flaked/worker"
)

// NodeGroup is the nodes of one process. Each node has its own state directory and holds its own
// worker. Together they can make more IDs than the ceiling of one worker. A group only hands
// out the IDs of its nodes. The workers and bounds of the nodes keep the IDs unique, as they
// do for nodes in separate processes.
type NodeGroup struct {
	nodes []*Node
	// order is the nodes by ascending worker. IDs come from the lowest worker that has some
	// left in the tick, so that the IDs of a tick grow.
	order atomic.Pointer[[]*Node]
	// mu serialises sort: the order that is stored last must be the newest.
	mu sync.Mutex
	// served is closed once a node has begun to serve.
	served  chan struct{}
	serving sync.Once
}

// NewNodeGroup returns a group of one node or more. The nodes must not be running yet.
func NewNodeGroup(nodes ...*Node) *NodeGroup {
	g := &NodeGroup{nodes: nodes, served: make(chan struct{})}
	for _, n := range nodes {
		n.published = g.sort
		if len(nodes) > 1 {
			n.coord.Process, n.coord.Siblings = g.process, g.workers
		}
	}
	g.sort()
	return g
}

// Run runs the nodes until the context ends or one node ends with an error. Then all nodes
// stop. Run returns the first such error, and nil if the context was cancelled.
func (g *NodeGroup) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for _, n := range g.nodes {
		running.Go(func() {
			if err := n.Run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Reserve takes between 1 and k IDs of one tick and one worker. It may wait, as Node.Reserve
// does. Its errors are *Refusal.
//
// If the layout has the worker above the segment and the sequence, the IDs of a group grow as
// those of one node do. Within a tick lower workers go first. No node makes an ID of an
// earlier tick than the latest tick that any node has used. If the clock is behind that
// latest tick, the node that used it decides whether the group waits or refuses.
func (g *NodeGroup) Reserve(ctx context.Context, k int) (worker.Run, error) {
	if len(g.nodes) == 1 {
		return g.nodes[0].Reserve(ctx, k)
	}
	for waited := time.Duration(0); ; {
		run, wait, err := g.round(k, waited)
		if err != nil || run.Len > 0 {
			return run, err
		}
		if ctx.Err() != nil {
			return worker.Run{}, errStopping
		}
		if wait.gen == nil {
			continue
		}
		if err := wait.gen.Wait(ctx, wait.pause); err != nil {
			return worker.Run{}, errStopping
		}
		if wait.pause.Rollback {
			waited += wait.pause.For
		}
	}
}

// wait is a pause that a generator needs before it can make an ID. A nil gen means that there
// is nothing to wait for.
type wait struct {
	gen   *worker.Generator
	pause worker.Pause
}

// standing is how far the nodes that serve have come.
type standing struct {
	// serves: at least one node serves.
	serves bool
	// refused is why the first node in the order that does not serve refuses, nil if all
	// nodes serve.
	refused error
	// latest is the latest tick that a node has made IDs of. ahead is that node, with the
	// highest worker if there are several, and place is its index in the order. A node that
	// has made no ID does not count: its floor may be far ahead, and must not hold up others.
	ahead  *Node
	place  int
	latest worker.Tick
	// first is the lowest floor of the nodes that have made no ID, math.MaxInt64 if there
	// are none.
	first worker.Tick
	// now is the tick of the clock. furthest is the last tick that may be borrowed.
	now, furthest worker.Tick
}

func (g *NodeGroup) standing(nodes []*Node) standing {
	s := standing{first: math.MaxInt64}
	for i, n := range nodes {
		t := n.serving.Load()
		if t == nil {
			s.refused = cmp.Or[error](s.refused, n.refusal.Load())
			continue
		}
		switch last, made := t.gen.Last(); {
		case !made:
			s.first = min(s.first, last+1)
		case s.ahead == nil || last >= s.latest:
			s.ahead, s.latest, s.place = n, last, i
		}
		s.now, s.furthest = t.gen.Now()
		s.serves = true
	}
	return s
}

// wentBack reports whether the clock is behind the last ID, by more than may be borrowed.
// The node that made this ID then decides for the group.
func (s standing) wentBack() bool { return s.ahead != nil && s.latest > s.furthest }

// begins returns the first tick to ask for.
func (s standing) begins() worker.Tick {
	if s.ahead == nil {
		return max(s.now, s.first)
	}
	return max(s.now, s.latest)
}

// round asks the nodes in order for up to k IDs of one tick. If no node has any, round
// returns what to wait for. A wait without a generator means: ask again at once. waited is
// how long the request has waited for a rollback so far.
func (g *NodeGroup) round(k int, waited time.Duration) (worker.Run, wait, error) {
	nodes := *g.order.Load()
	s := g.standing(nodes)
	if !s.serves {
		return worker.Run{}, wait{}, s.refused
	}
	if s.wentBack() {
		t, run, pause, err := s.ahead.try(k, waited)
		switch {
		case err != nil || run.Len > 0 && t.counts:
			return run, wait{}, err
		case run.Len > 0:
			// The clock has just caught up, and lower workers must go first. Discard these IDs.
			return worker.Run{}, wait{}, nil
		}
		return run, wait{t.gen, pause}, nil
	}
	tick := s.begins()
	for last := min(s.furthest, tick+1); tick <= last; tick++ {
		for i, n := range nodes {
			if tick == s.latest && i < s.place {
				continue // its IDs would be lower than some made already
			}
			if t := n.serving.Load(); t != nil {
				if run, ok := t.gen.TryAt(k, tick); ok {
					return run, wait{}, nil
				}
			}
		}
	}
	return g.none(nodes, s.now, tick)
}

// none returns what to wait for, or the error if all nodes refuse. round calls it when no
// node had IDs of any tick below the one given. now is the tick of the clock in that round.
func (g *NodeGroup) none(nodes []*Node, now, tick worker.Tick) (worker.Run, wait, error) {
	var refused error
	for _, n := range nodes {
		t := n.serving.Load()
		if t == nil {
			refused = cmp.Or[error](refused, n.refusal.Load())
			continue
		}
		if at, _ := t.gen.Now(); at != now {
			return worker.Run{}, wait{}, nil // the clock has moved on meanwhile
		}
		err := t.gen.Ready()
		if err == nil {
			pause := t.gen.Until(tick)
			if pause.For <= 0 {
				pause.For = time.Millisecond // the tick has begun: a bound is missing
			}
			return worker.Run{}, wait{t.gen, pause}, nil
		}
		refused = cmp.Or(refused, n.explain(t, err))
	}
	return worker.Run{}, wait{}, refused
}

// sort stores the order of the nodes. It must be called whenever a node begins to serve.
func (g *NodeGroup) sort() {
	g.mu.Lock()
	defer g.mu.Unlock()
	number := func(n *Node) int {
		if t := n.serving.Load(); t != nil {
			return t.worker
		}
		return -1 // not serving
	}
	sorted := slices.Clone(g.nodes)
	slices.SortStableFunc(sorted, func(a, b *Node) int { return cmp.Compare(number(a), number(b)) })
	g.order.Store(&sorted)
	if number(sorted[len(sorted)-1]) >= 0 {
		g.serving.Do(func() { close(g.served) })
	}
}

// Served returns a channel that is closed once a node of the group has begun to serve.
func (g *NodeGroup) Served() <-chan struct{} { return g.served }

// Ceiling returns how many IDs the nodes that serve can make in a second, or in one tick if a
// tick is longer. It is 0 while no node serves.
func (g *NodeGroup) Ceiling() (sum int64) {
	for _, n := range g.nodes {
		if t := n.serving.Load(); t != nil {
			sum += t.gen.Ceiling()
		}
	}
	return sum
}

// Waits returns how many reservations have begun to wait for a tick so far.
func (g *NodeGroup) Waits() (sum int64) {
	for _, n := range g.nodes {
		sum += n.meter.worker.TickWaits.Load()
	}
	return sum
}

// Ready returns nil if a request would get an ID from any of the nodes, now or after a short
// wait. Otherwise it returns the *Refusal. It makes no ID.
func (g *NodeGroup) Ready() (err error) {
	if s := g.standing(*g.order.Load()); s.wentBack() && len(g.nodes) > 1 {
		return s.ahead.Ready()
	}
	for _, n := range g.nodes {
		e := n.Ready()
		if e == nil {
			return nil
		}
		if err == nil {
			err = e
		}
	}
	return err
}

// Drain prepares the stop of the group: from now on Ready returns a *Refusal with CauseDraining,
// so that clients leave. Reserve still makes IDs. If release is true, the nodes release their
// workers when they stop, as with Config.ReleaseOnExit.
func (g *NodeGroup) Drain(release bool) {
	for _, n := range g.nodes {
		n.releases.Store(release)
		n.draining.Store(true)
	}
}

// Live returns nil while all nodes are live, otherwise the error of one that is not.
func (g *NodeGroup) Live() error {
	for _, n := range g.nodes {
		if err := n.Live(); err != nil {
			return err
		}
	}
	return nil
}

// Now returns the time of the clock that IDs are made by.
func (g *NodeGroup) Now() time.Time { return g.nodes[0].Now() }

// Layout returns the cluster's layout, or the zero Layout while it is not known.
func (g *NodeGroup) Layout() worker.Layout {
	for _, n := range g.nodes { // a starting node does not know it yet
		if l := n.Layout(); l != (worker.Layout{}) {
			return l
		}
	}
	return worker.Layout{}
}

// Worker describes the first node in one line. In a group of several nodes the line also has
// the workers of all nodes.
func (g *NodeGroup) Worker() string {
	text := g.nodes[0].Worker()
	if len(g.nodes) > 1 {
		text += " workers=" + g.Numbers()
	}
	return text
}

// process returns the identity of the first node. The records of all nodes carry it, to show
// that they share a process. It outlives a restart.
func (g *NodeGroup) process() string {
	first := g.nodes[0]
	first.mu.Lock()
	defer first.mu.Unlock()
	return first.claim.Node
}

// workers returns the workers that the nodes hold, ascending.
func (g *NodeGroup) workers() []int {
	var workers []int
	for _, n := range g.nodes {
		n.mu.Lock()
		if n.held != nil {
			workers = append(workers, n.held.worker)
		}
		n.mu.Unlock()
	}
	slices.Sort(workers)
	return workers
}

// Numbers returns the workers that the nodes hold, as "3,7", or "none".
func (g *NodeGroup) Numbers() string {
	workers := g.workers()
	if len(workers) == 0 {
		return "none"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(workers), " ", ","), "[]")
}

// Snapshots returns a Snapshot of each node, in the order of NewNodeGroup's arguments.
func (g *NodeGroup) Snapshots() []Snapshot {
	all := make([]Snapshot, len(g.nodes))
	for i, n := range g.nodes {
		all[i] = n.Snapshot()
	}
	return all
}
