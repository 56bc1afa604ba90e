package client

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/dialog"
)

// queued returns a pool of two nodes, with calls for one value of each of these sequences in its queue.
func queued(t *testing.T, names ...string) *pool {
	p := open(t, Config{Addrs: []string{"a.invalid", "b.invalid"}}).values
	for _, name := range names {
		k := newCall()
		k.reset(query{verb: "NEXT " + name, name: name}, 1, time.Now().Add(long))
		p.queue = append(p.queue, k)
	}
	return p
}

// filled returns the job that the calls in the queue make for a node.
func filled(p *pool, node int) *job {
	j := &job{}
	p.fill(j, p.nodes[node], true, time.Now())
	return j
}

func TestCallsForOneSequenceShareARequestBetweenOthers(t *testing.T) {
	p := queued(t, "order", "user", "order", "user", "user")
	if j := filled(p, 0); len(j.calls) != 2 || j.want != 2 || j.query.verb != "NEXT order" || len(p.queue) != 3 {
		t.Fatalf("first: %d calls for %q, and %d are left", len(j.calls), j.query.verb, len(p.queue))
	}
	if j := filled(p, 0); len(j.calls) != 3 || j.query.verb != "NEXT user" || len(p.queue) != 0 {
		t.Errorf("second: %d calls for %q, and %d are left", len(j.calls), j.query.verb, len(p.queue))
	}
}

// Calls that shared a refused request share the next one too, unless fewer values may succeed.
func TestCallsThatWereRefusedShareTheNextRequest(t *testing.T) {
	for text, want := range map[string]int{
		"-NOTREADY reason=no-block x":   3,
		"-NOTREADY reason=confirming x": 3,
		"-NOTREADY reason=ceiling x":    1,
		"-ERR reason=too-many x":        1,
		"-EXHAUSTED reason=exhausted x": 1,
	} {
		p := queued(t, "order", "order", "order")
		j := filled(p, 0)
		first, last := j.calls[0], j.calls[2]
		p.requeueOrFail(j, dialog.Refusal("a.invalid", text))
		if len(p.queue) != 3 || p.queue[0] != first || p.queue[2] != last {
			t.Fatalf("%s: the queue has %d calls, or in another order", text, len(p.queue))
		}
		if j := filled(p, 1); len(j.calls) != want {
			t.Errorf("%s: %d calls in the next request, not %d", text, len(j.calls), want)
		}
	}
}

// A call that a node has refused does not go there again with a call that it has not.
func TestCallDoesNotJoinARequestToANodeThatRefusedIt(t *testing.T) {
	p := queued(t, "order", "order")
	p.queue[1].refused = []*node{p.nodes[0]}
	if j := filled(p, 0); len(j.calls) != 1 || len(p.queue) != 1 {
		t.Errorf("%d calls, and %d are left", len(j.calls), len(p.queue))
	}
	keyed := queued(t, "order", "order")
	keyed.queue[0].oneLine, keyed.queue[1].oneLine = true, true
	if j := filled(keyed, 0); len(j.calls) != 1 {
		t.Errorf("%d calls with one key share a request", len(j.calls))
	}
}

// A call goes to a node that has not refused it, also if the call before it in the queue has ended.
func TestNodeIsChosenForTheCallThatGoesThere(t *testing.T) {
	for name, end := range map[string]func(k *call){
		"abandoned": func(k *call) { k.state.Store(abandoned) },
		"too late":  func(k *call) { k.last, k.deadline = ids.ErrUnavailable, time.Now() },
	} {
		p := queued(t, "order", "order")
		end(p.queue[0])
		p.queue[1].refused = []*node{p.nodes[0]}
		w := newConnWorker(p)
		if ready, _ := p.assign(w); !ready || w.job.node != p.nodes[1] || len(w.job.calls) != 1 || len(p.queue) != 0 {
			t.Errorf("%s: %v, %+v, and %d are left", name, ready, w.job, len(p.queue))
		}
	}
}

func TestPrefetchedValuesEndWithTheContextAndTheClient(t *testing.T) {
	_, addrs := nodes(t, 1)
	c := open(t, Config{Addrs: addrs})
	order := c.SequenceWith("order", SequenceConfig{Prefetch: 100, MaxAge: time.Hour}).(*namedSequence)
	if _, err := order.Next(by(t, long)); err != nil {
		t.Fatal(err)
	}
	until(t, "values are prefetched", func() bool {
		order.stock.mu.Lock()
		defer order.stock.mu.Unlock()
		return order.stock.have > 0
	})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if v, err := order.Next(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %d %v", v, err)
	}
	c.Close()
	if v, err := order.Next(by(t, long)); !errors.Is(err, ids.ErrClosed) {
		t.Errorf("after Close: %d %v", v, err)
	}
}

// While one node is down and the other refuses for a moment, a call goes on trying the one that is up.
func TestSequenceWaitsForTheNodeThatIsUp(t *testing.T) {
	servers, addrs := nodes(t, 2)
	servers[1].Stop()
	servers[0].Refuse(3, "NOTREADY", "reason=no-block retry_after_ms=1 wait")
	c := open(t, Config{Addrs: addrs})
	if v, err := c.Sequence("order").Next(by(t, long)); v != 1 || err != nil {
		t.Errorf("%d %v", v, err)
	}
}
