package seq

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/zkstore"
	"github.com/flaked/flaked/sequence"
)

// Goroutines ask while rounds run and the journal is written, and an operator deletes and creates the sequence. Every
// request that waits is woken.
func TestTakeWhileRoundsRun(t *testing.T) {
	mem := store.NewMem(nil)
	createCluster(mem.Session())
	is := startLive(t, mem.Session()).is
	s := &stage{t: t, mem: mem, now: time.Now().UnixMilli() - simEpoch}
	for is.read.Load() == 0 {
		runtime.Gosched()
	}
	var mu sync.Mutex
	var clients sync.WaitGroup
	issued := map[int64]bool{}
	s.create("order0", plain(), settings(100_000))
	for g := range 4 {
		clients.Go(func() {
			woken := make(chan struct{}, 1)
			for k := range 300 {
				var w sequence.Wait
				name := fmt.Appendf(nil, "order%d", k%7/6*(100+k))
				for {
					runs, err := is.Take(&w, name, 1+(k+g)%40, k%3 == 0, func() { woken <- struct{}{} }, nil)
					if err == sequence.ErrPending {
						select {
						case <-woken:
							continue
						case <-time.After(20 * time.Second):
							t.Error("a request is not woken")
							return
						}
					}
					mu.Lock()
					for _, r := range runs {
						for j := range r.Len {
							if v := int64(r.At(j)); issued[v] {
								t.Errorf("%d is issued twice", v)
							} else {
								issued[v] = true
							}
						}
					}
					mu.Unlock()
					break
				}
			}
		})
	}
	for k := range int64(20) {
		s.remove("order0")
		m := plain()
		m.Start = (k + 1) * 10_000_000 // a name that is created again after a loss needs a start above all values
		s.create("order0", m, settings(100_000))
		if err := raiseIncarnation(mem.Session(), 0); err != nil {
			t.Error(err)
		}
	}
	clients.Wait()
}

func (liveNode) Hold(int64) Hold { return Hold{Record: clusterPath, Version: store.AnyVersion} }

func (liveNode) Leaves() bool { return false }

func (liveNode) ReportLoss(int64, string) {}

func (liveNode) Cluster() (ClusterInfo, bool) {
	return ClusterInfo{UUID: "c", ConfirmTime: time.Millisecond, Self: "me"}, true
}

// startLive returns a node whose rounds run until the test ends.
func startLive(t *testing.T, st store.Store) liveNode {
	var n liveNode
	began := time.Now()
	n.is = New(Config{
		Store: st, Tenure: n, Follow: 200 * time.Millisecond,
		JournalFile: filepath.Join(t.TempDir(), "sequences.journal"),
		Now:         func() int64 { return time.Now().UnixMilli() },
		Mono:        func() int64 { return int64(time.Since(began)) + 1 },
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { n.is.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return n
}

// next returns the first of n values, and retries while the node is not ready.
func (n liveNode) next(t *testing.T, name string, count int) int64 {
	for deadline := time.Now().Add(30 * time.Second); ; {
		var w sequence.Wait
		woken := make(chan struct{}, 1)
		for {
			runs, err := n.is.Take(&w, []byte(name), count, true, func() { woken <- struct{}{} }, nil)
			if err == nil {
				return int64(runs[0].First)
			}
			if !errors.Is(err, sequence.ErrPending) {
				if time.Now().After(deadline) {
					t.Error(err)
					return -1
				}
				break
			}
			<-woken
		}
		time.Sleep(time.Millisecond) // a refusal: the test has a deadline
	}
}

// Many clients of three nodes share a sequence. Sorted by the time of asking, no value is below one that was answered
// before, and no value is missing.
func TestStrictOrderOverNodes(t *testing.T) {
	zkstore.Both(t, strictOrder)
}

func strictOrder(t *testing.T, open func() store.Store) {
	admin := open()
	createCluster(admin)
	nodes := []liveNode{startLive(t, open()), startLive(t, open()), startLive(t, open())}
	op := Operator{Store: admin}
	d := Definition{Name: "invoice", Mode: Strict, Map: plain(), Settings: settings(1000), StartGiven: true}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := op.Create(t.Context(), d); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
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
	r, _, err := op.Show(t.Context(), "invoice")
	var unanswered int64
	for _, n := range nodes {
		for _, u := range n.is.Report().Sequences {
			unanswered += u.Unanswered
		}
	}
	if err != nil || r.Next != total.Load()+unanswered {
		t.Errorf("%d positions are taken, %d answered and %d counted as not answered: %v", r.Next, total.Load(),
			unanswered, err)
	}
	t.Log(fmt.Sprint(r.Gen), "writes for", total.Load(), "values,", unanswered, "unanswered")
}

// liveNode is a node that runs by the clock of the machine, and is confirmed at once.
type liveNode struct{ is *Issuer }

// strictKeys asks two nodes with the same keys.
func strictKeys(h *house) {
	a, b := h.node(), h.node()
	d := Definition{Name: "invoice", Mode: Strict, Map: plain(), Settings: settings(1000), StartGiven: true}
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
		runs, err := g.is.Take(&w, []byte("invoice"), 1, false, func() {}, nil)
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
