package seq

import (
	"context"
	"sync"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
)

// Run calls Round at every heartbeat, and whenever Wake was called, until the context
// ends. Then it gives back what the node has not issued. Requests must have ended before. When Run returns, its
// goroutines have ended, unless the state directory does not answer: see Wait.
func (i *Issuer) Run(ctx context.Context) {
	journaled := make(chan struct{})
	i.writing.Go(func() {
		defer close(journaled)
		if i.journal != nil {
			i.keepJournal(ctx)
		}
	})
	var failing bool
	for ctx.Err() == nil {
		err := i.bounded(ctx, i.Round)
		if failing != (err != nil) && ctx.Err() == nil {
			if failing = err != nil; failing {
				i.cfg.Log.Warn("sequences: ZooKeeper failed, issuing what this node has", "error", err)
			} else {
				i.cfg.Log.Info("sequences: ZooKeeper answers again")
			}
		}
		i.pause(ctx, failing)
	}
	if err := i.inTime(func() error { <-journaled; return nil }); err != nil {
		i.cfg.Log.Warn("sequences: the unused values were not given back", "error", err)
	} else if err := i.bounded(context.WithoutCancel(ctx), i.giveBack); err != nil {
		i.cfg.Log.Warn("sequences: not all unused values of this node were given back", "error", err,
			"kept_for_restart", i.outlasts())
	}
	i.saveLast()
	i.relay.passing.end()
}

// Wait returns when all goroutines have ended that Run has started. Call it after Run, before others may use the state
// directory: a write that hangs there may still go on.
func (i *Issuer) Wait() { i.writing.Wait() }

// retryAfter is the pause after a round that failed. New requests do not shorten it.
const retryAfter = 100 * time.Millisecond

// pause waits until a round is due.
func (i *Issuer) pause(ctx context.Context, failing bool) {
	wake := i.wake
	if failing {
		ended, cancel := context.WithTimeout(ctx, retryAfter)
		<-ended.Done()
		cancel()
	}
	timer := time.NewTimer(i.alarms.arm(i.now(), i.cfg.Pulse.Until(i.cfg.Follow)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timer.C:
	}
}

func (i *Issuer) bounded(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limits.Round)
	defer cancel()
	return f(ctx)
}

// Wake makes Run call Round soon. It never blocks.
func (i *Issuer) Wake() {
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

// passing is the goroutines that pass requests on. None starts after the end.
type passing struct {
	ctx    context.Context // of their calls
	cancel context.CancelFunc
	mu     sync.Mutex // makes start and end exclude each other
	wg     sync.WaitGroup
}

// start calls f in a goroutine. After end it does nothing: requests then wait in vain, as all do after Run.
func (p *passing) start(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() == nil {
		p.wg.Go(f)
	}
}

// end ends the calls, and returns when the goroutines have ended.
func (p *passing) end() {
	p.mu.Lock()
	p.cancel()
	p.mu.Unlock()
	p.wg.Wait()
}
