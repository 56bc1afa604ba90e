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

// Group is the nodes of one process, each of which holds a worker of its own, by
// a state directory of its own. Together they make more IDs than the ceiling of
// one. What keeps IDs apart is between the nodes, wherever they run; a group only
// hands out what they make.
type Group struct {
	nodes []*Node
	// order is that of the workers' numbers: IDs come from the lowest that has some
	// left in its tick, so those of a tick grow.
	order atomic.Pointer[[]*Node]
	mu    sync.Mutex // guards sorting: the last to begin is in the order
}

// NewGroup makes a group of one node or more.
func NewGroup(nodes ...*Node) *Group {
	g := &Group{nodes: nodes}
	for _, n := range nodes {
		n.published = g.sort
		if len(nodes) > 1 {
			n.coord.Process, n.coord.Siblings = g.process, g.workers
		}
	}
	g.sort()
	return g
}

// Run runs the nodes until the context ends, or until one of them can't go on:
// then all stop. Its error is that one's.
func (g *Group) Run(ctx context.Context) error {
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

// Reserve takes between 1 and k IDs of one tick and one worker. Its errors are
// *Refusal.
//
// IDs of the group grow as those of one node do, where the worker is above segment
// and sequence: within a tick lower workers go first, no node makes IDs of a tick
// before one that any has made IDs of, and what a rollback rule says of the one
// that is furthest ahead goes for all.
func (g *Group) Reserve(ctx context.Context, k int) (worker.Run, error) {
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

// wait is what a generator has to wait for.
type wait struct {
	gen   *worker.Generator
	pause worker.Pause
}

// standing is how far the workers that serve have come.
type standing struct {
	serves  bool  // one does
	refused error // why not, where one does not
	// ahead is the highest worker that has made IDs of the latest tick, and place where
	// it is in the order. One that has made none holds nobody up, however far ahead its
	// floor is.
	ahead         *Node
	place         int
	latest        worker.Tick
	first         worker.Tick // the lowest floor of those that have made none
	now, furthest worker.Tick // the clock's tick, and the last that may be borrowed
}

func (g *Group) standing(nodes []*Node) standing {
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

// wentBack tells whether the clock is behind the last ID. Then the group does what
// the worker does that made this ID.
func (s standing) wentBack() bool { return s.ahead != nil && s.latest > s.furthest }

// begins is the first tick to ask for.
func (s standing) begins() worker.Tick {
	if s.ahead == nil {
		return max(s.now, s.first)
	}
	return max(s.now, s.latest)
}

// round asks the nodes in order for IDs of one tick. Where none has any it says
// what is to be waited for; nothing when they are to be asked again at once.
func (g *Group) round(k int, waited time.Duration) (worker.Run, wait, error) {
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
			// The clock has just come back: lower workers go first. These are burnt.
			return worker.Run{}, wait{}, nil
		}
		return run, wait{t.gen, pause}, nil
	}
	tick := s.begins()
	for last := min(s.furthest, tick+1); tick <= last; tick++ {
		for i, n := range nodes {
			if tick == s.latest && i < s.place {
				continue // it was not serving when a higher one made IDs of this tick
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

// none is for when no node has IDs of the ticks before one that were looked at.
func (g *Group) none(nodes []*Node, now, tick worker.Tick) (worker.Run, wait, error) {
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
				pause.For = time.Millisecond // the clock is there: what is missing is a bound
			}
			return worker.Run{}, wait{t.gen, pause}, nil
		}
		refused = cmp.Or(refused, n.explain(t, err))
	}
	return worker.Run{}, wait{}, refused
}

// sort puts the nodes in order: whenever one begins to serve.
func (g *Group) sort() {
	g.mu.Lock()
	defer g.mu.Unlock()
	number := func(n *Node) int {
		if t := n.serving.Load(); t != nil {
			return t.worker
		}
		return -1 // whichever it gets
	}
	sorted := slices.Clone(g.nodes)
	slices.SortStableFunc(sorted, func(a, b *Node) int { return cmp.Compare(number(a), number(b)) })
	g.order.Store(&sorted)
}

// Ceiling returns how many IDs the nodes that serve can make in a second, or in one
// tick where a tick is longer; 0 while none serves.
func (g *Group) Ceiling() (sum int64) {
	for _, n := range g.nodes {
		if t := n.serving.Load(); t != nil {
			sum += t.gen.Ceiling()
		}
	}
	return sum
}

// Waits returns how many reservations have begun to wait for a tick so far.
func (g *Group) Waits() (sum int64) {
	for _, n := range g.nodes {
		sum += n.meter.worker.TickWaits.Load()
	}
	return sum
}

// Ready is nil when an ID would be made, by any of the nodes. It makes none.
func (g *Group) Ready() (err error) {
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

// Live is nil while all nodes do their work.
func (g *Group) Live() error {
	for _, n := range g.nodes {
		if err := n.Live(); err != nil {
			return err
		}
	}
	return nil
}

// Now is the clock that IDs are made by.
func (g *Group) Now() time.Time { return g.nodes[0].Now() }

// Layout returns the cluster's layout, or the zero Layout while it is not known.
func (g *Group) Layout() worker.Layout {
	for _, n := range g.nodes { // one that is starting does not know it yet
		if l := n.Layout(); l != (worker.Layout{}) {
			return l
		}
	}
	return worker.Layout{}
}

// Worker is the first node in one line; of several, with the workers of all.
func (g *Group) Worker() string {
	text := g.nodes[0].Worker()
	if len(g.nodes) > 1 {
		text += " workers=" + g.Numbers()
	}
	return text
}

// process is what the records of the nodes have in common: the identity of the
// first, which outlives a restart.
func (g *Group) process() string {
	first := g.nodes[0]
	first.mu.Lock()
	defer first.mu.Unlock()
	return first.claim.Node
}

// workers are those that the nodes hold, ascending.
func (g *Group) workers() []int {
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
func (g *Group) Numbers() string {
	workers := g.workers()
	if len(workers) == 0 {
		return "none"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(workers), " ", ","), "[]")
}

// Snapshots are the states of the nodes at this moment.
func (g *Group) Snapshots() []Snapshot {
	all := make([]Snapshot, len(g.nodes))
	for i, n := range g.nodes {
		all[i] = n.Snapshot()
	}
	return all
}
