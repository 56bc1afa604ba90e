package worker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// After Close has returned no reservation succeeds, and none reaches End.
func TestNoIDAfterClose(t *testing.T) {
	g, err := NewGenerator(GeneratorConfig{Layout: Leaf(), Clock: systemClock{}, Rollback: leafRule{}})
	if err != nil {
		t.Fatal(err)
	}
	g.Extend(forever)
	var highest atomic.Int64
	var wg sync.WaitGroup
	started := make(chan struct{}, 8)
	for range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				id, err := g.Next(context.Background())
				if err != nil {
					if !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
					return
				}
				for {
					h := highest.Load()
					if int64(id) <= h || highest.CompareAndSwap(h, int64(id)) {
						break
					}
				}
				if i == 10 {
					started <- struct{}{}
				}
			}
		})
	}
	for range 8 {
		<-started
	}
	g.Close()
	end := g.End()
	wg.Wait()
	if f, _ := Leaf().Decode(ID(highest.Load())); f.Tick >= end {
		t.Errorf("tick %d was issued, End said %d", f.Tick, end)
	}
}

func TestNoDuplicatesBetweenGoroutines(t *testing.T) {
	l := Leaf()
	l.SequenceBits = 18 // enough that the ceiling does not slow the race down
	l.TimeBits = 35
	l.Unit = 64 * time.Millisecond
	g, err := NewGenerator(GeneratorConfig{Layout: l, Clock: systemClock{}, Rollback: leafRule{}})
	if err != nil {
		t.Fatal(err)
	}
	g.Extend(l.MaxTick())
	const goroutines, each = 8, 20_000
	all := make([][]ID, goroutines)
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() {
			ids := make([]ID, 0, each)
			for len(ids) < each {
				run, err := g.Reserve(context.Background(), 1+i*3)
				if err != nil {
					t.Error(err)
					return
				}
				for k := range run.Len {
					ids = append(ids, run.At(k))
				}
			}
			if !slices.IsSorted(ids) {
				t.Error("not increasing within a goroutine")
			}
			all[i] = ids
		})
	}
	wg.Wait()
	merged := slices.Concat(all...)
	slices.Sort(merged)
	if n := len(slices.Compact(slices.Clone(merged))); n != len(merged) {
		t.Errorf("%d IDs, %d different", len(merged), n)
	}
}

func TestContextEndsALongWait(t *testing.T) {
	l := Leaf()
	l.Unit = time.Second
	g, _ := newManual(t, func(cfg *GeneratorConfig) { cfg.Layout = l; cfg.Sleep = nil })
	if run, err := g.Reserve(context.Background(), 5000); err != nil || run.Len != 4096 {
		t.Fatalf("%d, %v", run.Len, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { _, err := g.Next(ctx); done <- err }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
