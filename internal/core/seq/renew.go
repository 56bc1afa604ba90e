package seq

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

// alarms are the times at which Round must look at series. With 100,000 sequences a round must not look at each of them
// whenever one has run out of values. Any goroutine may use it.
type alarms struct {
	mu  sync.Mutex
	all []*series // those that have an alarm
	// armed is the earliest of them when Run last began to wait, math.MaxInt64 before.
	armed int64
}

// alarm is a time, ns of AtMost, 0 for none. That of a renewal also rings when the alarm of another
// renewal does, from the time from on. Else from and at are the same.
type alarm struct{ from, at int64 }

// soon is a time that has passed.
const soon = 1

// wakeAt makes Round look at a series at this time, ns of AtMost.
func (i *Issuer) wakeAt(s *series, at int64) {
	if i.alarms.set(s, alarm{at, at}) {
		i.Wake()
	}
}

// set sets the alarm of a series, if new is earlier than the alarm that is set. A series has no more than one. set
// reports whether Run may sleep beyond new. A round need not care: Run arms the alarms after it, before it sleeps.
func (a *alarms) set(s *series, new alarm) (early bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.alarm.at == 0 {
		a.all = append(a.all, s)
	}
	if s.alarm.at == 0 || new.at < s.alarm.at {
		s.alarm = new
	}
	return new.at < a.armed
}

// rings removes and returns the series whose time has come, and those that may ring together with them.
func (a *alarms) rings(now int64) (due []*series) {
	a.mu.Lock()
	defer a.mu.Unlock()
	renews := slices.ContainsFunc(a.all, func(s *series) bool { return s.alarm.from < s.alarm.at && s.alarm.at <= now })
	a.all = slices.DeleteFunc(a.all, func(s *series) bool {
		if s.alarm.at > now && !(renews && s.alarm.from <= now) {
			return false
		}
		s.alarm = alarm{}
		due = append(due, s)
		return true
	})
	return due
}

// arm returns the time until the first alarm, most at most.
func (a *alarms) arm(now int64, most time.Duration) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.armed = now + int64(most)
	for _, s := range a.all {
		a.armed = min(a.armed, s.alarm.at)
	}
	return max(0, time.Duration(a.armed-now))
}

// nextAlarm makes Round look at a series when it must.
func (i *Rounds) nextAlarm(s *series) {
	now := i.now()
	s.mu.Lock()
	next := alarm{s.lookAt, s.lookAt}
	switch {
	case s.lookAt != 0 && s.owned() != nil:
		next.at = max(s.lookAt, s.notBefore, now+1) // a slow write may have left no time until the next one
		next.from = next.at - int64(s.known.Hold()/6)
	case s.notBefore > now:
		next.from, next.at = s.notBefore, s.notBefore
	}
	slowAt := int64(0)
	if m, ok := s.mode.(*ordered); ok { // nextBatch has set this alarm, but an earlier one may have replaced it
		slowAt = m.slowAt()
	}
	s.mu.Unlock()
	// One of them may be 0 or past, and does not count. Of two that do, set keeps the earlier one.
	for _, one := range []alarm{next, {slowAt, slowAt}} {
		if one.at > now {
			i.alarms.set(s, one)
		}
	}
}

// renewalsInOne is the most records that one transaction renews.
const renewalsInOne = 100

// renewTogether makes the writes of the sections among due that this node owns, many in one transaction. It returns the
// series that need a round of their own: a record has changed, or a request waits.
func (i *Rounds) renewTogether(ctx context.Context, cluster ClusterInfo, due []*series) (rest []*series, err error) {
	var leased []*series
	for _, s := range due {
		if s.renewsTogether(i.session) {
			leased = append(leased, s)
		} else {
			rest = append(rest, s)
		}
	}
	for some := range slices.Chunk(leased, renewalsInOne) {
		failed, err := i.renew(ctx, cluster, some)
		if err != nil {
			return append(rest, leased...), err
		}
		rest = append(rest, failed...)
	}
	return rest, nil
}

// renewsTogether reports whether the next write of the series needs no read and answers no request.
func (s *series) renewsTogether(session int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.owned()
	return m != nil && m.leasedIn(session) && !s.stale && len(s.waiting) == 0
}

// renewal is the write of one section.
type renewal struct {
	s *series
	v sight
	t step
}

// renew makes the writes of some sections in one transaction. If that fails because something has changed, it reads
// /cluster and /seq and tries again, and then returns the sections.
func (i *Rounds) renew(ctx context.Context, cluster ClusterInfo, some []*series) (failed []*series, err error) {
	for range 2 {
		all := i.planRenewals(cluster, some)
		if len(all) == 0 {
			return nil, nil
		}
		hold, sent := i.cfg.Tenure.Hold(i.session), i.now()
		ops := append(i.seen.Checks(), hold.check())
		var err error
		for _, r := range all {
			ops = append(ops, r.t.ops...)
			if !hold.allows(r.t.blockWrite) {
				err = errNotSent
			}
		}
		if err == nil {
			for _, r := range all {
				i.traceWrite(r.s, r.v, r.t.blockWrite, hold)
			}
			err = i.cfg.Store.Multi(store.OnSession(ctx, i.session), ops...)
		}
		for _, r := range all {
			i.wrote(r.s, r.v, r.t.blockWrite, sent, err)
		}
		if !notMade(err) {
			return nil, err
		}
		v, err := i.look(ctx, nil, false)
		if err != nil || i.known.judge(v) != record.Good || v.State == nil {
			return some, err
		}
		i.seen = v
	}
	return some, nil
}

// planRenewals returns the writes that are due.
func (i *Rounds) planRenewals(cluster ClusterInfo, some []*series) (all []renewal) {
	e := i.situation(cluster, i.cfg.Elapsed.Now())
	e.now = max(e.now, i.seen.State.Time)
	for _, s := range some {
		s.mu.Lock()
		if m := s.owned(); m != nil && e.sent >= m.until() {
			m.lapse(e.sent)
		} else if m != nil {
			v := m.last
			v.Cluster, v.ClusterVersion, v.State, v.Version = i.seen.Cluster, i.seen.ClusterVersion, i.seen.State,
				i.seen.Version
			if w := m.nextWrite(v, e); w != nil {
				all = append(all, renewal{s, v, w.step(s.name, v, e.nonce, e.by)})
			}
		}
		s.mu.Unlock()
	}
	return all
}

// endOwnerships gives back all sections that this node owns.
func (i *Rounds) endOwnerships(ctx context.Context) error {
	i.relay.ending.Store(true)
	cluster, joined := i.cfg.Tenure.Cluster()
	if i.noteSession(); !joined || i.session == 0 || i.seen.State == nil {
		return nil
	}
	var owned []*series
	for _, s := range i.list() {
		s.mu.Lock()
		s.waiting = nil // requests have ended
		if s.owned() != nil {
			owned = append(owned, s)
		}
		s.mu.Unlock()
	}
	rest, err := i.renewTogether(ctx, cluster, owned)
	if err != nil {
		return err
	}
	for _, s := range rest { // records that have changed keep those that are written together with them, too
		if err := i.work(ctx, cluster, s); err != nil {
			return err
		}
	}
	return nil
}
