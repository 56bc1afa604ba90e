package seqstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/sync/errgroup"

	"github.com/flaked/flaked/internal/zkstore"
)

// Round does what is due: it follows the changes of operators, takes blocks, and deals with a loss
// of data. It returns an error of the store, after which the next Round tries again.
func (i *Issuer) Round(ctx context.Context) error {
	i.hear()
	i.noteSession()
	cluster, joined := i.cfg.Tenure.Cluster()
	if !joined {
		i.refuseAll(confirming(time.Second))
		i.forget()
		return i.recoverAlone(ctx)
	}
	err := zkstore.ErrUnreachable
	if i.link.session != 0 {
		err = i.round(ctx, cluster)
	}
	i.forget()
	if err != nil {
		i.refuseAll(&Refusal{Reason: NoBlock, Text: "this node holds no values of the sequence, and ZooKeeper cannot be reached. Retry, or try another node", RetryAfter: time.Second})
	}
	return err
}

func confirming(left time.Duration) *Refusal {
	return &Refusal{Reason: Confirming, Text: "this node reached ZooKeeper a short time ago, and ZooKeeper may have lost data. Retry, or try another node", RetryAfter: left}
}

func (i *Issuer) round(ctx context.Context, cluster ClusterInfo) error {
	sent := i.cfg.Mono()
	followed, err := i.follow(ctx, cluster)
	if err != nil {
		return err
	}
	if i.loss {
		if err := i.recover(ctx, cluster); err != nil {
			return err
		}
	}
	if i.state == nil {
		i.refuseAll(confirming(i.unconfirmed(cluster)))
		return nil
	}
	if err := i.workAll(ctx, cluster, i.due(followed)); err != nil {
		return err
	}
	if followed && !i.loss && !slices.ContainsFunc(i.list(), (*series).isStale) {
		i.read.Store(sent)
		i.followed.Store(&following{Followed{i.state.Changes + 1, i.state.Epoch}, i.link.session})
	}
	if i.loss {
		i.Wake()
	}
	return nil
}

// noteSession notes a new connection to ZooKeeper. Reading the clock after the session makes the
// connection look younger than it is, which is the safe side.
func (i *Issuer) noteSession() {
	session, now := i.cfg.Store.SessionID(), i.cfg.Mono()
	if session == i.link.session {
		if session == 0 {
			i.link.since = now
		}
		return
	}
	i.link, i.follows = link{session: session, since: now}, 0
	i.markChanged(nil, true) // ZooKeeper may have lost the last writes
	if i.state == nil {
		return
	}
	i.link.epoch = i.state.Epoch
	if cluster, joined := i.cfg.Tenure.Cluster(); joined && now-i.lastEarlier < int64(cluster.ConfirmTime) {
		return // nobody has taken a block in this epoch, so a loss that comes on top changes nothing
	}
	for _, s := range i.list() {
		s.mu.Lock()
		s.epoch = i.state.Epoch
		s.mu.Unlock()
	}
}

// refuseAll refuses the requests that wait, of all sequences.
func (i *Issuer) refuseAll(r *Refusal) {
	now := i.cfg.Mono()
	for _, s := range i.list() {
		s.change(func() {
			if len(s.waiting) > 0 {
				s.refuse(r, now)
			}
		})
	}
}

// roundTime is the time after which a round begins no more work. So requests that wait are woken in time.
const roundTime = patience / 2

// workAll works on each series that needs it, several at a time, and notes a loss of data. It ends early if
// the time is over, if ZooKeeper fails, or if there is a sign of a loss, because the epoch must be raised
// soon. The next round goes on.
func (i *Issuer) workAll(ctx context.Context, cluster ClusterInfo, due []*series) error {
	var group errgroup.Group
	group.SetLimit(i.cfg.Parallel)
	lost := make(chan string, 1)
	var failed, early atomic.Bool
	began, e := i.cfg.Mono(), i.situation()
	for _, s := range due {
		group.Go(func() error {
			if len(i.signs) > 0 || len(lost) > 0 || failed.Load() || i.cfg.Mono()-began >= int64(roundTime) {
				early.Store(true)
				s.change(func() {}) // the requests see whether they have waited too long
				return nil
			}
			err := i.work(ctx, cluster, s, e)
			var sign *lostError
			switch {
			case errors.As(err, &sign):
				select {
				case lost <- sign.reason:
				default:
				}
				s.change(func() {}) // as above
				return nil
			case errors.Is(err, ErrDamaged):
				var news bool
				if s.change(func() { news = s.damaged(i.cfg.Mono()) }); news {
					i.cfg.Log.Error("the record of a sequence in ZooKeeper is damaged", "path", recordPath(s.name), "error", err)
				}
				return nil
			case err != nil:
				failed.Store(true)
			}
			return err
		})
	}
	err := group.Wait()
	if i.unfinished = early.Load() || err != nil || len(lost) > 0; i.unfinished && err == nil {
		i.Wake()
	}
	select {
	case reason := <-lost:
		i.noteLoss(reason)
	default:
	}
	return err
}

// situation returns what the decisions of a round go by.
func (i *Issuer) situation() situation {
	return situation{by: i.cfg.By, spread: i.spread, sent: i.cfg.Mono(), now: i.cfg.Now()}
}

// due returns the series that need work, those first that requests wait for. It looks at all series after /seq
// was read, and if the last round has left some. Otherwise it looks at those that requests have asked for.
func (i *Issuer) due(followed bool) (due []*series) {
	all := i.next()
	if followed || i.follows == 0 || i.unfinished {
		all = i.list()
		i.spread = spread(countUsed(all), i.nodes)
	}
	var by [awaited + 1][]*series
	for _, s := range all {
		u := s.urgency(i.situation())
		by[u] = append(by[u], s)
	}
	renewals := by[renew][:min(len(by[renew]), renewalsAtOnce(i.cfg.Follow, i.nodes))]
	return slices.Concat(by[awaited], by[needed], renewals)
}

// countUsed returns the number of series that this node takes blocks of.
func countUsed(all []*series) (n int64) {
	for _, s := range all {
		s.mu.Lock()
		if s.used() {
			n++
		}
		s.mu.Unlock()
	}
	return n
}

// lostError: a record shows that ZooKeeper has lost data.
type lostError struct{ reason string }

func (e *lostError) Error() string { return e.reason }

// maxAttempts is the number of writes with unknown outcome that a node remembers for a sequence. The block
// of an older one is lost if it was written.
const maxAttempts = 8

// maxConflicts is the number of tries in one round while another node is faster.
const maxConflicts = 3

// work reads the record of a series and does what is due.
func (i *Issuer) work(ctx context.Context, cluster ClusterInfo, s *series, e situation) (err error) {
	for conflicts := range maxConflicts {
		e.sent = i.cfg.Mono()
		v, known := s.lastWritten(i.state)
		if !known || conflicts > 0 {
			if v, err = i.look(ctx, s, false); err != nil {
				return err
			}
		}
		if v.state == nil || judgeState(v.state, i.state) == foundLost || v.state.Epoch > i.state.Epoch {
			return &lostError{statePath + " is missing, older than before, or of a later epoch"}
		}
		if again, err := i.restore(ctx, s, v); err != nil {
			return err
		} else if again {
			continue
		}
		if err := i.readKeys(ctx, s, &v); err != nil {
			return err
		}
		e.keys = v.keys
		if v.secret, err = i.settleKey(ctx, s, v, v.record); err != nil {
			return err
		}
		e.epoch, e.now, e.unconfirmed, e.nonce = v.state.Epoch, i.cfg.Now(), i.unconfirmed(cluster), i.cfg.Nonce()
		changed, refusal, err := i.byTemplate(ctx, s, v, e.unconfirmed)
		if err != nil {
			return err
		}
		if changed {
			continue
		}
		e.refusal = refusal
		taken, err := s.decide(v, e)
		if err != nil || taken == nil {
			return err
		}
		conflict, err := i.write(ctx, s, v, *taken)
		if err != nil || !conflict {
			return err
		}
	}
	i.pauseSeries(s)
	return nil
}

// pauseSeries lets a round that comes a little later try again. If a thousand nodes ask for one name at once, each
// success of one makes all others fail, so that they must not all try again at once.
func (i *Issuer) pauseSeries(s *series) {
	s.mu.Lock()
	most := 10 * time.Millisecond << min(s.conflicts, 7)
	if s.known != nil && s.known.Mode == Strict {
		most = strictPause * time.Duration(max(1, s.others(i.cfg.Mono())))
	}
	s.conflicts++
	s.mu.Unlock()
	i.pauseUpTo(s, most)
}

// pauseUpTo makes the rounds leave a series alone for a random time.
func (i *Issuer) pauseUpTo(s *series, most time.Duration) {
	now := i.cfg.Mono()
	d := i.cfg.Retry(most, func() {
		i.add(s)
		i.Wake()
	})
	s.mu.Lock()
	s.notBefore = now + int64(d)
	s.mu.Unlock()
}

// unconfirmed returns the time left until this node may write, 0 if it may. After it has reached
// ZooKeeper, a node waits for the confirming time: in that time, other nodes notice if ZooKeeper has
// lost data, and raise the epoch.
func (i *Issuer) unconfirmed(cluster ClusterInfo) time.Duration {
	left := max(0, time.Duration(i.link.since-i.cfg.Mono())+cluster.ConfirmTime)
	if left == 0 && !i.cfg.Tenure.Confirmed(i.link.session) {
		return i.cfg.Follow
	}
	return left
}

// look reads /seq and the record of a series. It reads again after a sync if the first look seems to
// show a loss of data, or if an outcome must be known.
func (i *Issuer) look(ctx context.Context, s *series, synced bool) (view, error) {
	s.mu.Lock()
	known := s.known
	synced = synced || len(s.attempts) > 0 || i.state.Epoch > s.epoch
	s.mu.Unlock()
	for reads := 1; ; reads++ {
		if synced {
			if err := i.cfg.Store.Sync(ctx, "/"); err != nil && !errors.Is(err, zkstore.ErrNoNode) {
				return view{}, err
			}
		}
		found, err := i.cfg.Store.GetAll(ctx, statePath, recordPath(s.name))
		if err != nil {
			return view{}, err
		}
		v, err := parseView(found)
		if err != nil {
			return view{}, err
		}
		if v.state != nil && judgeState(v.state, i.state) != foundLost && judge(v.record, known, v.state.Purged) != foundLost {
			return v, nil
		}
		if synced && reads > 1 { // once more, because a purge may have come between the two reads
			return v, nil
		}
		synced = true
	}
}

// write writes the record of a series, in the session in which the node may write. conflict means
// that another write was faster.
func (i *Issuer) write(ctx context.Context, s *series, v view, t taking) (conflict bool, err error) {
	check := zkstore.CheckOp{Path: statePath, Version: v.version}
	sent := i.cfg.Mono()
	ops := setRecord(check, s.name, t.record, v.stat.Version)
	if t.keys != nil {
		ops = append(ops, t.keys.write(t.record.ID)...)
	}
	err = i.cfg.Store.Multi(zkstore.OnSession(ctx, i.link.session), ops...)
	if len(t.requests) > 0 {
		return i.writtenStrict(s, v, t, sent, err)
	}
	switch {
	case err == nil:
		s.change(func() { s.accept(t, i.cfg.Mono()) })
	case errors.Is(err, zkstore.ErrBadVersion), errors.Is(err, zkstore.ErrNoNode):
		return true, nil
	case errors.Is(err, zkstore.ErrUnreachable):
		s.change(func() {
			s.attempts, s.tried = append(s.attempts[max(0, len(s.attempts)+1-maxAttempts):], t), v.stat.Version
		})
	}
	return false, err
}
