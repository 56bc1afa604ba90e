package seq

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/testkit/story"
	"github.com/flaked/flaked/sequence"
)

// tale is a history of the simulation that is written by hand: nothing in it is random, and nothing happens inside of
// calls. Its text is in testdata, for people who review a change of the core. It tells what the Issuers do, and not the
// heartbeats.
type tale struct {
	*history
	*story.Story
	waiting []*simLate // requests
}

const taleStep = 100 // ms

// newTale returns a cluster of nodes that have confirmed their workers.
func newTale(nodes int) *tale {
	h := &history{seed: 1, rng: rand.New(rand.NewPCG(1, 1)), given: map[string]bool{}, takings: map[string][]simTaking{},
		intended: map[string]simTaking{}, highest: map[string]int64{}, strict: map[string]*simStrict{},
		purged: map[string]bool{}, right: bootRight, inside: true, faulty: 1 << 60, lease: 3000, hold: 600_000,
		confirm: 12 * time.Second, heartbeat: 3 * time.Second}
	a := &tale{history: h, Story: &story.Story{Begin: simEpoch, Now: func() int64 { return simEpoch + h.now },
		Hidden: []string{"nonce", "id", "node", "reported_clock", "heartbeat_ms", "lease_until", "confirmed"},
		Shown:  []string{"name", "owner"}, Drawn: []string{"owner"}}}
	h.tell = a.tell
	h.Cluster = clusterAt(&h.now)
	h.Mem.SetEpoch(1)
	createCluster(h.Mem.Session(), nodes)
	a.Skip(func() {
		for range nodes {
			h.addNode()
		}
		for _, n := range h.nodes {
			n.machine.SetSkew(0)
			n.machine.SetRates(1000, 1000)
		}
		a.lasts(20 * time.Second)
		_, err := h.operator(h.Mem.Session()).Create(context.Background(), operator.Definition{Name: simOrdered, Mode: record.Ordered,
			Map:      sequence.Map{Start: 1, Increment: 1, Max: sequence.MaxJavaScript},
			Settings: record.Settings{Block: 32, SupplyMs: 1000, HoldMs: h.lease, Ceiling: 1000, HardCeiling: 1000}, StartGiven: true})
		if err != nil {
			h.violated("create", "%v", err)
		}
		a.lasts(40 * time.Second)
	})
	return a
}

func nodeName(n *simNode) string { return string(rune('A' + n.id)) }

func (a *tale) tell(n *simNode, cfg *Config) {
	who := nodeName(n)
	cfg.Store, cfg.Trace = a.Store(who, cfg.Store), a.Trace(who)
	pass := cfg.Forward
	cfg.Forward = func(ctx context.Context, ask ordered.PeerRequest) (ordered.Answer, error) {
		a.Say(who, "asks the node at %s for %d values of %s", ask.Address, ask.N, ask.Name)
		got, err := pass(ctx, ask)
		if err != nil {
			a.Say(who, "is not answered: %v", err)
		} else {
			a.Say(who, "is answered: from %d on", got.First)
		}
		return got, err
	}
}

// lasts lets time pass. Nodes do what is due, and requests that wait look again.
func (a *tale) lasts(d time.Duration) {
	for end := a.now + d.Milliseconds(); a.now < end; {
		a.now += taleStep
		for _, n := range a.nodes {
			a.does(n)
		}
		waiting := a.waiting
		a.waiting = nil
		for _, w := range waiting {
			a.tries(w)
		}
	}
}

// does makes a node do what is due.
func (a *tale) does(n *simNode) {
	if a.now < n.pauseTill {
		return
	}
	n.fly()
	beats := a.now-n.lastBeat >= n.untilBeat()
	if beats {
		n.beat()
	}
	if beats || n.is.issuer.alarms.arm(n.is.issuer.now(), time.Hour) == 0 {
		a.Step(nodeName(n), "round", 2, n.round)
	}
}

// asks sends a request to a node.
func (a *tale) asks(n *simNode, count int) {
	a.Say("client "+nodeName(n), "asks for %d values of %s", count, simOrdered)
	a.tries(&simLate{n: n, is: n.is, name: simOrdered, count: count, before: a.highest[simOrdered]})
}

// tries looks whether a request gets its values. Otherwise it waits on.
func (a *tale) tries(w *simLate) {
	who := "client " + nodeName(w.n)
	for range 3 {
		runs, err := w.is.issuer.Take(&w.w, []byte(w.name), w.count, w.whole, func() {}, nil)
		switch {
		case errors.Is(err, sequence.ErrPending):
			w.n.round()
			w.n.fly()
			continue
		case err != nil:
			a.Say(who, "is refused: %v", err)
		default:
			last := runs[len(runs)-1]
			a.Say(who, "gets %d to %d", runs[0].First, last.At(last.Len-1))
			a.check(w.n, w.name, runs, w.count, w.before)
		}
		return
	}
	a.Step(who, "waits", 1, func() { a.Say(who, "waits") })
	a.waiting = append(a.waiting, w)
}

func TestStories(t *testing.T) {
	a := newTale(3)
	ownerChange(a)
	if a.wrong != "" {
		t.Error(a.wrong)
	}
	a.Check(t, "owner_change.txt", fmt.Sprintf("Three nodes serve an ordered sequence with a lease of %d ms. Its owner changes.", a.lease))
}

func ownerChange(a *tale) {
	one, two, three := a.nodes[1], a.nodes[0], a.nodes[2]
	a.Title("A node passes the first request on to the node that the name chooses, which becomes the owner")
	a.asks(two, 3)
	a.asks(one, 3)
	a.lasts(4 * time.Second)
	a.Title("The owner loses ZooKeeper. It counts until its lease ends. Then another node takes the sequence")
	a.asks(one, 3)
	one.store.Partition()
	a.Say("ZooKeeper", "does not reach B")
	a.lasts(time.Second)
	a.asks(two, 3)
	a.lasts(2500 * time.Millisecond)
	a.asks(one, 3)
	a.asks(two, 3)
	a.lasts(5 * time.Second)
	a.Title("It is back, and passes requests on to the new owner")
	one.store.Heal()
	a.lasts(4 * time.Second)
	a.asks(one, 3)
	a.lasts(time.Second)
	a.Title("The owner stops, and gives the sequence away. Another node takes it at once")
	a.Say("A", "stops")
	if err := two.is.giveBack(context.Background()); err != nil {
		a.violated("stop", "%v", err)
	}
	a.nodes = slices.DeleteFunc(a.nodes, func(n *simNode) bool { return n == two })
	a.asks(three, 3)
	a.lasts(2 * time.Second)
}
