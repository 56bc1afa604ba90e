package seq

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
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
	// seen has /cluster and /seq with their versions, as a round or a renewal last read them. Only renewals go by seen:
	// if this node has written /seq since, the next one fails once, and reads both again. All else goes by known.
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
		bounded, cancel := context.WithTimeout(ctx, limits.Round)
		err := i.Round(bounded)
		cancel()
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
	} else {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), limits.Round)
		if err := i.giveBack(bounded); err != nil {
			i.cfg.Log.Warn("sequences: not all unused values of this node were given back", "error", err,
				"kept_for_restart", i.outlasts())
		}
		cancel()
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

// Wake makes Run call Round soon. It never blocks.
func (i *Issuer) Wake() {
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

// A node that stops keeps what it issues in keepSeconds, and at least keepValues of a sequence that is used now
// and then. So it finds values in its journal when it starts again. The rest goes back to ZooKeeper.
const keepSeconds, keepValues = 15, 15

// giveBack ends the sequences of a node that stops. The journal keeps what the next process needs in its first
// seconds. The rest goes back to ZooKeeper, where nobody has taken a block since: first out of the journal, then into
// ZooKeeper (S33). Requests must have ended before.
func (i *Rounds) giveBack(ctx context.Context) error {
	left := i.endOwnerships(ctx)
	return errors.Join(left, i.giveBackRests(ctx))
}

func (i *Rounds) giveBackRests(ctx context.Context) error {
	rests := i.collectRests()
	views, err := i.lookAtRests(ctx, rests)
	if err != nil && i.outlasts() { // nothing goes back: all of it stays in the journal
		for k := range rests {
			rests[k].returns = nil
		}
	}
	if saved := i.saveRests(rests); saved != nil {
		return errors.Join(saved, err)
	}
	for k, r := range rests {
		if ctx.Err() != nil { // the time is over: the journal keeps the rest
			rests[k].returns = nil
		}
		if rests[k].returns == nil {
			continue
		}
		again, failed := i.commit(ctx, r.s, views[k], *r.returns)
		err = errors.Join(err, failed)
		if again || failed != nil && !errors.Is(failed, store.ErrUnreachable) { // nothing was written
			rests[k].returns = nil
		}
	}
	return errors.Join(err, i.saveRests(rests)) // it has again what could not be given back
}

// rest is what a node that stops holds of a sequence.
type rest struct {
	s    *series
	keep held
	give record.Remainder
	// may: the node could give that back. returns is the step that does so. nil: the journal keeps it.
	may     bool
	returns *step
}

// outlasts reports whether what the node holds outlasts the process.
func (i *Issuer) outlasts() bool { return i.journal != nil && !i.cfg.Tenure.Leaves() }

// collectRests takes what the node holds out of all sequences.
func (i *Rounds) collectRests() (all []rest) {
	seconds, values := int64(0), int64(0)
	if i.outlasts() {
		seconds, values = keepSeconds, keepValues
	}
	now := i.now()
	for _, s := range i.list() {
		s.Mu.Lock()
		if s.kept != nil {
			all = append(all, rest{s: s, keep: *s.kept})
		} else if m := s.stocked(); m != nil {
			keep, any := m.held(m.stock.After(0))
			split := m.stock.After(seconds * m.pace.second(m.Issued, now))
			if now-m.AskedAt < int64(time.Minute) { // it is used, now and then
				split = max(split, m.stock.After(values))
			}
			if any { // requests have ended: what is left was not issued
				m.traceBound(m.stock.After(0))
			}
			give, may := m.takeRest()
			give.Block.First = max(give.Block.First, split)
			if any {
				all = append(all, rest{s: s, keep: keep, give: give, may: may && give.Block.Len() > 0})
			}
		}
		s.Mu.Unlock()
	}
	return all
}

// lookAtRests reads the records, and decides which rests can be given back.
func (i *Rounds) lookAtRests(ctx context.Context, rests []rest) (views []view, err error) {
	views = make([]view, len(rests))
	if !slices.ContainsFunc(rests, func(r rest) bool { return r.may }) {
		return views, nil
	}
	cluster, joined := i.cfg.Tenure.Cluster()
	if i.cfg.Store.SessionID() == 0 {
		return views, errors.New("ZooKeeper is not connected")
	}
	if i.noteSession(); !joined || i.known.seq() == nil || i.known.owes() || i.unconfirmed(cluster) > 0 {
		return views, errors.New("this node may not write now")
	}
	for k, r := range rests {
		if !r.may {
			continue
		}
		v, err := i.look(ctx, r.s, true)
		if err != nil {
			return views, err
		}
		if i.known.judge(v) != record.Good || v.Record == nil {
			continue
		}
		if after, possible := v.Record.ReturnOf(r.give, v.Incarnation()); possible {
			st := stepOf(mode.Write{Write: record.Write{Record: after}}, r.s.Name, v.View, i.cfg.Nonce(), i.cfg.By)
			rests[k].returns, views[k] = &st, v
		}
	}
	return views, nil
}

// saveRests writes what the node keeps into the journal: all that is not given back.
func (i *Rounds) saveRests(rests []rest) error {
	j := i.journal
	if j == nil {
		return nil
	}
	if i.cfg.Tenure.Leaves() {
		return i.inTime(j.remove)
	}
	all := make([]held, 0, len(rests))
	for _, r := range rests {
		//mutant:s33-given-back-and-kept by seqsim -> if false {
		if r.returns != nil { // out of the journal before it is returned (S33)
			r.keep = r.keep.below(r.give.Block.First)
		}
		if len(r.keep.Blocks) > 0 {
			all = append(all, r.keep)
		}
	}
	j.mu.Lock()
	node, begun := j.node, j.begun
	j.mu.Unlock()
	if !begun || node == "" {
		return nil
	}
	return i.inTime(func() error { return i.writeJournal(all, node, i.progress.Load().knewAllAt) })
}

// inTime calls f, which works on the disk, and waits for limits.Round at most. A disk that hangs must not keep the node
// from giving its worker back.
func (i *Rounds) inTime(f func() error) error {
	ended := make(chan error, 1)
	i.writing.Go(func() { ended <- f() })
	late := time.NewTimer(limits.Round)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C:
		return errors.New("the state directory does not answer")
	}
}

// below returns the part of h below p.
func (h held) below(p int64) held {
	h.Last.End = min(h.Last.End, p)
	var blocks []positions.Block
	for _, b := range h.Blocks {
		if b.End = min(b.End, p); b.Len() > 0 {
			blocks = append(blocks, b)
		}
	}
	h.Blocks = blocks
	return h
}
