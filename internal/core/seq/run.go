package seq

import (
	"context"
	"errors"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/store"
)

// Run calls Round at every heartbeat, and whenever Wake was called, until the context
// ends. Then it gives back what the node has not issued. Requests must have ended before.
func (i *Issuer) Run(ctx context.Context) {
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
	if err := i.bounded(context.WithoutCancel(ctx), i.giveBack); err != nil {
		i.cfg.Log.Warn("sequences: the unused values of this node were not given back", "error", err)
	}
	i.saveLast()
}

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
	timer := time.NewTimer(i.cfg.Pulse.Until(i.cfg.Follow))
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

// giveBack lowers the next position of each sequence to the first one that the node has not issued, if nobody has
// taken a block since.
func (i *Issuer) giveBack(ctx context.Context) error {
	var all []*series
	var rests []blockWrite
	for _, s := range i.list() {
		s.mu.Lock()
		if s.mode != nil {
			if rest, ok := s.mode.drop(); ok {
				all, rests = append(all, s), append(rests, rest)
			}
		}
		s.mu.Unlock()
	}
	if len(rests) == 0 {
		return nil
	}
	if i.cfg.Store.SessionID() == 0 {
		return store.ErrUnreachable
	}
	cluster, joined := i.cfg.Tenure.Cluster()
	if i.noteSession(); !joined || i.known.state == nil || i.known.owes() || i.unconfirmed(cluster) > 0 {
		return errors.New("this node may not write now")
	}
	for k, s := range all {
		if err := i.giveBackOne(ctx, s, rests[k]); err != nil {
			return err
		}
	}
	return nil
}

func (i *Issuer) giveBackOne(ctx context.Context, s *series, rest blockWrite) error {
	v, err := i.look(ctx, s, true)
	if err != nil || i.known.judge(v) != foundGood || v.record == nil {
		return err
	}
	r, possible := v.record.returnOf(rest, v.incarnation())
	if !possible {
		return nil
	}
	_, err = i.commit(ctx, s, v, blockWrite{record: r}.step(s.name, v, i.cfg.Nonce(), i.cfg.By))
	return err
}
