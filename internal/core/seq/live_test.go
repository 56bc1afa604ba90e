package seq

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/await"
	"github.com/flaked/flaked/internal/testkit/memcluster"
	"github.com/flaked/flaked/internal/testkit/zkstore"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// Goroutines ask while rounds run and the journal is written, and an operator deletes and creates a sequence. Every
// request that waits is woken.
func TestTakeWhileRoundsRun(t *testing.T) {
	s := &stage{t: t, Cluster: memcluster.New(func() int64 { return time.Now().UnixNano() })}
	s.now = time.Now().UnixMilli() - simEpoch
	createCluster(s.Mem.Session(), 0)
	n := startLive(t, s.Mem.Session())
	for n.is.issuer.progress.Load().knewAllAt == longAgoNs {
		runtime.Gosched()
	}
	var issued sync.Map
	note := func(name string, v int64) {
		if _, twice := issued.LoadOrStore(fmt.Sprint(name, " ", v), nil); twice {
			t.Errorf("%s %d is issued twice", name, v)
		}
	}
	s.create("order", plain(), settings(100_000))
	s.create("steady", plain(), settings(100_000))
	var clients sync.WaitGroup
	for g := range 4 {
		clients.Go(func() {
			for k := range 150 {
				count := 1 + (k+g)%40
				for v, last := n.next(t, "steady", count), int64(count); last > 0; last-- {
					note("steady", v+last-1)
				}
				runs, _ := n.take(t, []string{"order", fmt.Sprint("unknown", k)}[k%7/6], count, k%3 == 0)
				for _, r := range runs {
					for j := range r.Len {
						note("order", int64(r.At(j)))
					}
				}
			}
		})
	}
	for k := range int64(20) {
		s.remove("order")
		m := plain()
		m.Start = (k + 1) * 10_000_000 // a name that is created again after a loss needs a start above all values
		s.create("order", m, settings(100_000))
		if err := raiseIncarnation(s.Mem.Session(), 0, 0); err != nil {
			t.Error(err)
		}
	}
	clients.Wait()
}

func (liveNode) Slot(int64) Slot {
	return Slot{Path: record.ClusterPath, Version: store.AnyVersion, Incarnation: anyIncarnation}
}

func (liveNode) ReleasesAtStop() bool { return false }

func (liveNode) ReportLoss(int64, string) {}

func (liveNode) Cluster() (ClusterInfo, bool) {
	return ClusterInfo{UUID: "c", ConfirmTime: time.Millisecond, Self: "me"}, true
}

// startLive returns a node whose rounds run until the test ends.
func startLive(t *testing.T, st store.Store) liveNode {
	var n liveNode
	_, n.is = New(Config{
		Store: st, Tenure: n, Follow: 200 * time.Millisecond,
		Dir:     &memDir{},
		Elapsed: timeguard.NewElapsed(timeguard.System()),
	})
	n.is.Recall()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { n.is.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return n
}

// take asks for values once.
func (n liveNode) take(t *testing.T, name string, count int, whole bool) ([]worker.Run, error) {
	var w sequence.Wait
	woken := make(chan struct{}, 1)
	for {
		runs, err := n.is.issuer.Take(&w, []byte(name), count, whole, func() { woken <- struct{}{} }, nil)
		if !errors.Is(err, sequence.ErrPending) {
			return runs, err
		}
		select {
		case <-woken:
		case <-time.After(20 * time.Second):
			t.Errorf("a request for %s is not woken", name)
			return nil, err
		}
	}
}

// next returns the first of n values, and retries while the node is not ready.
func (n liveNode) next(t *testing.T, name string, count int) int64 {
	var runs []worker.Run
	var err error
	if !await.Within(30*time.Second, func() bool {
		runs, err = n.take(t, name, count, true)
		return err == nil
	}) {
		t.Error(err)
		return -1
	}
	return int64(runs[0].First)
}

// Many clients of three nodes share a sequence. Sorted by the time of asking, no value is below one that was answered
// before, and no value is missing.
func TestStrictOrderOverNodes(t *testing.T) {
	zkstore.Both(t, strictOrder)
}

func strictOrder(t *testing.T, open func() store.Store) {
	admin := open()
	createCluster(admin, 0)
	nodes := []liveNode{startLive(t, open()), startLive(t, open()), startLive(t, open())}
	op := operator.Commands{Store: admin}
	d := operator.Definition{Name: "invoice", Mode: record.Strict, Map: plain(), Settings: settings(1000), StartGiven: true}
	var err error
	if !await.Within(30*time.Second, func() bool {
		_, err = op.Create(t.Context(), d)
		return err == nil
	}) {
		t.Fatal(err)
	}
	var top, total atomic.Int64 // the highest value answered, and the number of all
	var seen sync.Map
	var clients sync.WaitGroup
	for k := range 24 {
		clients.Go(func() {
			for i := range 25 {
				before, n := top.Load(), 1+i%3
				v := nodes[k%3].next(t, "invoice", n)
				if v <= before {
					t.Errorf("%d, after %d was answered", v, before)
				}
				for j := range int64(n) {
					if _, twice := seen.LoadOrStore(v+j, nil); twice {
						t.Errorf("%d is issued twice", v+j)
					}
				}
				for last := v + int64(n) - 1; ; {
					if was := top.Load(); was >= last || top.CompareAndSwap(was, last) {
						break
					}
				}
				total.Add(int64(n))
			}
		})
	}
	clients.Wait()
	r, _, err := op.Find(t.Context(), "invoice")
	var unanswered int64
	for _, n := range nodes {
		for _, u := range n.is.issuer.Report().Sequences {
			unanswered += u.Unanswered
		}
	}
	if err != nil || r.Next != total.Load()+unanswered {
		t.Errorf("%d positions are taken, %d answered and %d counted as not answered: %v", r.Next, total.Load(),
			unanswered, err)
	}
	t.Log(fmt.Sprint(r.WriteCount), "writes for", total.Load(), "values,", unanswered, "unanswered")
}

// liveNode is a node that runs by the clock of the machine, and is confirmed at once.
type liveNode struct{ is *Rounds }

// strictKeys asks two nodes with the same keys.
func strictKeys(h *house) {
	a, b := h.node(), h.node()
	d := operator.Definition{Name: "invoice", Mode: record.Strict, Map: plain(), Settings: settings(1000), StartGiven: true}
	if _, err := h.operator().Create(h.Context(), d); err != nil {
		h.Fatal(err)
	}
	first := map[string]int64{}
	for k := range 40 {
		key, g := fmt.Sprint("key-", k%13), a
		if k%3 == 0 {
			g = b
		}
		v := g.askKey(key)
		if first[key] == 0 {
			first[key] = v
		}
		if v != first[key] {
			h.Errorf("%s has %d, and then %d", key, first[key], v)
		}
	}
	if r, _ := h.record("invoice"); r.Next != 13 {
		h.Errorf("%d positions are taken for 13 keys", r.Next)
	}
}

func (g *guest) askKey(key string) int64 {
	g.h.Helper()
	w := sequence.Wait{Key: key}
	for range 20 {
		runs, err := g.is.issuer.Take(&w, []byte("invoice"), 1, false, func() {}, nil)
		if err == nil {
			return int64(runs[0].First)
		}
		if !errors.Is(err, sequence.ErrPending) {
			g.h.Fatal(err)
		}
		g.round()
		g.h.now += 100
	}
	g.h.Fatal("no answer")
	return 0
}
