package seq

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
)

func TestUnknownNamesAreForgotten(t *testing.T) {
	s := newStage(t)
	a := s.node()
	for k := range 20_000 {
		a.ask(fmt.Sprint("unknown", k), 1, false)
		if k%100 == 99 {
			s.run(time.Second)
		}
	}
	if n := len(a.is.list()); n > 1000 {
		t.Errorf("the node remembers %d unknown names", n)
	}
	s.create("unknown7", plain(), settings(1000))
	s.run(3 * time.Second)
	if v := a.ask("unknown7", 1, false).first(); v != 1 {
		t.Error(v)
	}
}

func TestNameCreatedAgainWithAHigherStart(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.create("order", plain(), settings(1000))
	a.ask("order", 5000, false).first()
	s.remove("order")
	s.run(4 * time.Second)
	m := plain()
	m.Start = 1_000_000
	s.create("order", m, settings(1000))
	s.run(4 * time.Second)
	if v := a.ask("order", 1, false).first(); v != 1_000_000 {
		t.Error(v)
	}
}

// A node that knows the tombstone sees a new sequence of this name after a purge. No data are lost.
func TestPurgeIsNotALossOfData(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.create("order", plain(), settings(1000))
	for range 10 {
		a.ask("order", 40, false).first()
	}
	s.remove("order")
	s.run(20 * time.Minute)
	if err := s.operator().Purge(context.Background(), "order"); err != nil {
		t.Fatal(err)
	}
	s.create("order", plain(), settings(1000))
	s.run(5 * time.Second)
	if e := s.incarnation(); e != 0 {
		t.Errorf("the incarnation is %d", e)
	}
	if v := a.ask("order", 1, false).first(); v != 1 {
		t.Error(v)
	}
}

// ZooKeeper is wiped. One node knows that a sequence was deleted, and another one does not.
func TestDeletionIsPutBackAfterAWipe(t *testing.T) {
	s := newStage(t)
	a, b := s.node(), s.node()
	s.create("order", plain(), settings(1000))
	a.ask("order", 1, false).first()
	b.ask("order", 1, false).first()
	b.store.Partition()
	a.ask("order", 1000, false).first()
	s.remove("order")
	s.run(4 * time.Second)
	s.mem.Wipe()
	b.store.Heal()
	s.run(5 * stageConfirm)
	for _, n := range []*actor{a, b} {
		if r := n.ask("order", 100, true).reason(); r != NoSequence {
			t.Error(r)
		}
	}
}

func TestImpossibleRequestRefusesNoOther(t *testing.T) {
	s := newStage(t)
	a := s.node()
	m := plain()
	m.Max = 300
	s.create("order", m, settings(1000))
	large, small := a.ask("order", 400, true), a.ask("order", 1, false)
	_ = a.round()
	if v := small.first(); v != 1 {
		t.Error(v)
	}
	if r := large.reason(); r != Exhausted {
		t.Error(r)
	}
	s.create("other", plain(), settings(10)) // a burst of 100
	large, small = a.ask("other", 400, true), a.ask("other", 1, false)
	_ = a.round()
	if v := small.first(); v != 1 {
		t.Error(v)
	}
	if r := large.reason(); r != TooMany {
		t.Error(r)
	}
}

func TestDamagedRecordConcernsOneSequence(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.create("good", plain(), settings(1000))
	s.create("bad", plain(), settings(1000))
	s.run(5 * time.Second)
	a.ask("bad", 1, false).first()
	if _, err := s.mem.Session().Set(context.Background(), recordPath("bad"), []byte("x"), store.AnyVersion); err != nil {
		t.Fatal(err)
	}
	a.noteLoss()
	s.run(time.Hour) // longer than the hold
	if v := a.ask("good", 1, false).first(); v < 1 {
		t.Error(v)
	}
	if r := a.ask("bad", 1, false).reason(); r != Frozen {
		t.Error(r)
	}
}

// deleteAll deletes the record of a sequence, the keys of keyed, and all above them.
func (s *stage) deleteAll(name string, keyed ...Record) {
	s.t.Helper()
	st, ctx := s.mem.Session(), context.Background()
	paths := []string{recordPath(name), bucketPath(name), recordsDir}
	for _, r := range keyed {
		paths = append(paths, secretPath(r.ID), secretsDir)
	}
	for _, path := range append(paths, statePath) {
		if err := st.Delete(ctx, path, store.AnyVersion); err != nil {
			s.t.Fatal(err)
		}
	}
}

// ZooKeeper is put back while a round reads. The session in which the round began knew an older incarnation.
func TestLossInTheMiddleOfARound(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.create("order", plain(), settings(1000))
	a.ask("order", 10, false).first()
	a.noteLoss() // incarnation 2, in the session that began in incarnation 1
	s.run(5 * stageConfirm)
	a.ask("order", 40, false).first()
	s.run(5 * stageConfirm)
	c, known := s.mem.Snapshot(), a.is.named("order")
	for gen := known.known.Gen; known.known.Gen == gen; s.now += 100 {
		a.ask("order", 40, false).first()
	}
	armed := true
	a.calls = func(call store.Call) store.Fault {
		if armed && call.Path == recordPath("order") {
			armed = false
			s.mem.Restore(c)
			s.mem.SetEpoch(9)
		}
		return store.NoFault
	}
	a.is.markChanged([]string{"order"}, false)
	s.run(stageConfirm)
	if e := s.incarnation(); e != 2 {
		t.Errorf("the incarnation is %d, not 2", e)
	}
}

// ZooKeeper is slow, and many sequences are asked for.
func TestRequestsAreWokenAlthoughZooKeeperIsSlow(t *testing.T) {
	s := newStage(t)
	a := s.node()
	var all []*call
	for k := range 90 {
		name := fmt.Sprintf("order%02d", k)
		s.create(name, plain(), settings(1000))
		all = append(all, a.ask(name, 1, false))
	}
	began := s.now
	a.calls = func(store.Call) store.Fault {
		s.now += 100
		for _, c := range all {
			if !c.woken && !c.done && s.now-began > 8000 {
				t.Fatalf("a request for %s waits after %d ms", c.name, s.now-began)
			}
		}
		return store.NoFault
	}
	for s.now-began < 20_000 {
		_ = a.round()
		for _, c := range all {
			c.again()
		}
		s.now += 100
	}
}

// A node that cannot take blocks yet, and is short of values, must not read all the time.
func TestShortStockDoesNotWakeAllTheTime(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.create("order", plain(), settings(1000))
	a.ask("order", 20, false).first()
	s.run(time.Second)
	a.hold = func() Hold { return Hold{Record: a.slot, Version: store.AnyVersion, Wait: stageConfirm} }
	wakes := 0
	left := a.is.named("order").segment().stock.Left()
	for range left - 2 {
		a.ask("order", 1, false)
		select {
		case <-a.is.wake:
			wakes++
		default:
		}
		_ = a.round()
	}
	if wakes > 5 {
		t.Errorf("%d requests wake the round %d times", left-2, wakes)
	}
}

// Goroutines ask while rounds run, and an operator deletes and creates the sequence. Every request that
// waits is woken.
func TestTakeWhileRoundsRun(t *testing.T) {
	mem := store.NewMem(nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	createCluster(mem.Session())
	began := time.Now()
	is := New(Config{
		Store: mem.Session(), Tenure: atOnce{}, Follow: time.Millisecond,
		Now:  func() int64 { return time.Now().UnixMilli() },
		Mono: func() int64 { return int64(time.Since(began)) + 1 },
	})
	var rounds, clients sync.WaitGroup
	rounds.Go(func() {
		for ctx.Err() == nil {
			_ = is.Round(ctx)
		}
	})
	s := &stage{t: t, mem: mem, now: time.Now().UnixMilli() - simEpoch}
	for is.read.Load() == 0 {
		runtime.Gosched()
	}
	var mu sync.Mutex
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
	for range 20 {
		s.remove("order0")
		s.create("order0", plain(), settings(100_000))
		if err := raiseIncarnation(mem.Session(), 0); err != nil {
			t.Error(err)
		}
	}
	clients.Wait()
	cancel()
	rounds.Wait()
}

// atOnce is a tenure that needs no confirming time.
type atOnce struct{}

func (atOnce) Hold(int64) Hold { return Hold{Record: clusterPath, Version: store.AnyVersion} }

func (atOnce) ReportLoss(int64, string) {}

func (atOnce) Cluster() (ClusterInfo, bool) {
	return ClusterInfo{UUID: "c", ConfirmTime: 4 * time.Millisecond}, true
}
