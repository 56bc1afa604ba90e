package worker

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

func TestSystemSleep(t *testing.T) {
	sleep := systemSleep()
	for _, d := range []time.Duration{-1, 0, 1, 200 * time.Microsecond, exactBelow, exactBelow + 3*time.Millisecond,
		200 * time.Microsecond} {
		// Of several sleeps at once, one has the timer and the others do without it.
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				start := time.Now()
				if err := sleep(context.Background(), d); err != nil {
					t.Error(err)
				}
				if slept := time.Since(start); slept < d {
					t.Errorf("%s: woke after %s", d, slept)
				}
			})
		}
		wg.Wait()
	}
}

func TestSystemSleepEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	start := time.Now()
	if err := systemSleep()(ctx, time.Hour); err != context.Canceled {
		t.Error(err)
	}
	if slept := time.Since(start); slept > time.Minute {
		t.Errorf("woke after %s", slept)
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
