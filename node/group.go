package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/flaked/flaked/lineproto"
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
// *lineproto.Error.
func (g *Group) Reserve(ctx context.Context, k int) (worker.Run, error) {
	if len(g.nodes) == 1 {
		return g.nodes[0].Reserve(ctx, k)
	}
	for waited := time.Duration(0); ; {
		run, wait, err := g.round(k, waited)
		if err != nil || run.Len > 0 {
			return run, err
		}
		if wait.t == nil {
			continue
		}
		if err := wait.t.gen.Wait(ctx, wait.pause); err != nil {
			return worker.Run{}, errStopping
		}
		if wait.pause.Rollback {
			waited += wait.pause.For
		}
	}
}

// wait is what a tenure's generator has to wait for.
type wait struct {
	t     *tenure
	pause worker.Pause
}

// round asks the nodes in order, until one has IDs. Where none has, it says what
// is to be waited for; nothing when they are to be asked again at once.
func (g *Group) round(k int, waited time.Duration) (worker.Run, wait, error) {
	var least wait
	var refused error
	for _, n := range *g.order.Load() {
		t, run, pause, err := n.try(k, waited)
		switch {
		case err != nil:
			refused = cmp.Or(refused, err)
		case run.Len == 0:
			if least.t == nil || pause.For < least.pause.For {
				least = wait{t, pause}
			}
		case least.t != nil && !least.pause.Rollback && t.tick(run) >= least.pause.Tick:
			// A tick has begun since a lower worker was asked, which has IDs again now
			// and is to go first. These are burnt.
			return worker.Run{}, wait{}, nil
		default:
			return run, wait{}, nil
		}
	}
	if least.t == nil {
		return worker.Run{}, wait{}, refused
	}
	return worker.Run{}, least, nil
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

// Ready is nil when an ID would be made, by any of the nodes. It makes none.
func (g *Group) Ready() (err error) {
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

// Version is the release.
func (g *Group) Version() string { return g.nodes[0].Version() }

// Decode takes an ID apart by the cluster's layout.
func (g *Group) Decode(id worker.ID) (text string, err error) {
	for _, n := range g.nodes { // one that is starting does not know the layout yet
		if text, err = n.Decode(id); err == nil {
			return text, nil
		}
	}
	return "", err
}

// Worker is the first node in one line; of several, with the workers of all.
func (g *Group) Worker() string {
	text := g.nodes[0].Worker()
	if len(g.nodes) > 1 {
		text += " workers=" + g.numbers()
	}
	return text
}

// numbers are the workers that the nodes hold, ascending.
func (g *Group) numbers() string {
	var numbers []int
	for _, s := range g.Snapshots() {
		if s.Worker != nil {
			numbers = append(numbers, *s.Worker)
		}
	}
	if len(numbers) == 0 {
		return "none"
	}
	slices.Sort(numbers)
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ","), "[]")
}

// Snapshots are the states of the nodes at this moment.
func (g *Group) Snapshots() []Snapshot {
	all := make([]Snapshot, len(g.nodes))
	for i, n := range g.nodes {
		all[i] = n.Snapshot()
	}
	return all
}

// Stats are the group's figures for STATS: the first node's, and of several how
// the workers of all do.
func (g *Group) Stats() []lineproto.Stat {
	stats := g.nodes[0].Stats()
	if len(g.nodes) == 1 {
		return stats
	}
	ready := 0
	for _, n := range g.nodes {
		if n.Ready() == nil {
			ready++
		}
	}
	return append(stats,
		lineproto.Stat{Name: "workers", Value: g.numbers()},
		lineproto.Stat{Name: "workers_ready", Value: fmt.Sprint(ready)})
}
