package seq

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/sequence"
)

// Requests, rounds, writes of the journal and a stop at the same time. No request waits for ever, and no value comes
// twice, also not from the next process.
func TestJournalBesideRequests(t *testing.T) {
	s, a := newJournaled(t)
	s.create("other", plain(), settings(100_000))
	var mu sync.Mutex
	seen, clock := map[string]map[int64]bool{"order": {}, "other": {}}, time.Now()
	a.is.cfg.Mono = func() int64 { return s.now*1e6 + int64(time.Since(clock)) }
	var journal []byte // as the disk has it
	a.is.journal.write = func(data []byte) error { mu.Lock(); journal = data; mu.Unlock(); return nil }
	ask := func(name string, n int, whole bool) {
		var w sequence.Wait
		for {
			woken := make(chan struct{}, 1)
			runs, err := a.is.Take(&w, []byte(name), n, whole, func() { woken <- struct{}{} }, nil)
			if !errors.Is(err, sequence.ErrPending) {
				mu.Lock()
				for _, r := range runs {
					for k := range r.Len {
						if v := int64(r.At(k)); err == nil {
							if seen[name][v] {
								t.Errorf("%s %d twice", name, v)
							}
							seen[name][v] = true
						}
					}
				}
				mu.Unlock()
				return
			}
			select {
			case <-woken:
			case <-time.After(10 * time.Second):
				t.Errorf("%s %d waits for ever", name, n)
				return
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { a.is.keepJournal(ctx) })
	parts.Go(func() {
		for ctx.Err() == nil {
			_ = a.is.Round(ctx)
			select {
			case <-ctx.Done():
			case <-a.is.wake:
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	var clients sync.WaitGroup
	for k := range 8 {
		clients.Go(func() {
			for j := range 300 {
				ask([]string{"order", "other"}[(k+j)%2], 1+(j*k)%7, k == 3)
			}
		})
	}
	clients.Wait()
	cancel()
	parts.Wait()
	a.journal = journal
	a.again(true)
	for name := range seen {
		if v := a.ask(name, 1, false).first(); seen[name][v] {
			t.Errorf("the next process issues %s %d again", name, v)
		}
	}
}
