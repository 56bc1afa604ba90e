package seq

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// Rounds keep an Issuer: they follow the changes of operators, take blocks, and do all other I/O. One goroutine calls
// Recall and then Run, and nobody else reaches what stands here: an Issuer has no way to it. The goroutines that work on
// series in a round only read known, session, spread and roundTime, while Round waits for them.
type Rounds struct {
	*Issuer
	known knowledge
	// session is the present connection to ZooKeeper, 0: none.
	session int64
	// current: this session has followed /seq, and nothing since has shown a loss of data. Else Round must read it before
	// anything else. readAt is when it has done so last, ns of AtMost.
	current bool
	readAt  int64
	// unfinished: the last round has left work to the next one. unmet are the buckets whose names it has to meet.
	unfinished bool
	unmet      []string
	// rung are the series whose alarms have rung since a round last looked for work.
	rung []*series
	// roundTime is the time after which a round begins no more work. Each read of /seq sets it.
	roundTime time.Duration
	spread    time.Duration // see the function spread
	// seen has /cluster and /seq as they were last read and compared, for renewals only. It lacks what
	// this node has raised since, so the next renewal fails once and reads them again: see Renew. known counts for all
	// else, and does not learn what renew reads.
	seen record.Found
	// restored is what the others have not heard of yet: see tellInTime.
	restored restored
	// sawLeaving is the value of node.IsLeaving at the last call of keepPlace.
	sawLeaving bool
	// unlisted: ZooKeeper refuses the list of nodes that may own sections.
	unlisted bool
	// connected is the number of workers of the cluster that are connected.
	connected int64
	saves
	// writing are the goroutines that write to the state directory.
	writing sync.WaitGroup
	// swept is the time at which this node last forgot unused names, in ns of AtMost.
	swept int64
	// quotaTold is the time of the last log line about a quota, ns of AtMost, longAgoNs for none.
	quotaTold atomic.Int64
}

func newRounds(of *Issuer) *Rounds {
	i := &Rounds{Issuer: of, known: knowsNothing(), roundTime: longestRound}
	i.publish(noProgress())
	i.quotaTold.Store(longAgoNs)
	i.beside = i.writing.Go
	i.keep = func(Witness) error { return nil }
	if dir := of.cfg.Dir; dir != nil {
		i.keep = func(w Witness) error { return saveWitness(dir, w) }
	}
	return i
}

// publish makes p the progress that all goroutines load.
func (i *Rounds) publish(p progress) { i.progress.Store(&p) }

// Recall takes over what an earlier process of this node has left in the directory. Call it once, before Run, and not
// beside Round. It returns the peers that the earlier process had met, and their cluster.
func (i *Rounds) Recall() (cluster string, met []coordinator.Peer) {
	if i.cfg.Dir == nil {
		return "", nil
	}
	i.journal.find()
	w, ok := loadWitness(i.cfg.Dir)
	if ok {
		i.remember(w)
	}
	return w.State.Cluster, w.Met
}

// Run calls Round at every heartbeat, and whenever Wake was called, until the context
// ends. Then it gives back what the node has not issued. Requests must have ended before. When Run returns, its
// goroutines have ended, unless the state directory does not answer: see Wait.
func (i *Rounds) Run(ctx context.Context) {
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
	i.node.Close()
}

// Wait returns when all goroutines have ended that Run has started. Call it after Run, before others may use the state
// directory: a write that hangs there may still go on.
func (i *Rounds) Wait() { i.writing.Wait() }

// retryAfter is the pause after a round that failed. New requests do not shorten it.
const retryAfter = 100 * time.Millisecond

// pause waits until a round is due.
func (i *Rounds) pause(ctx context.Context, failing bool) {
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

func (i *Rounds) bounded(ctx context.Context, f func(context.Context) error) error {
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
