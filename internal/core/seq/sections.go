package seq

import (
	"context"
	"errors"
	"slices"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

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
	s.Mu.Lock()
	defer s.Mu.Unlock()
	m := s.owned()
	return m != nil && m.LeasedIn(session) && !s.Stale && len(s.Waiting) == 0
}

// renewal is the write of one section.
type renewal struct {
	s *series
	v mode.View
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
			if !hold.allows(r.t.Write) {
				err = mode.ErrNotSent
			}
		}
		if err == nil {
			for _, r := range all {
				i.traceWrite(r.s, r.v, r.t.Write, hold)
			}
			err = i.cfg.Store.Multi(store.OnSession(ctx, i.session), ops...)
		}
		for _, r := range all {
			i.wrote(r.s, r.v, r.t.Write, sent, err)
		}
		if !mode.NotMade(err) {
			return nil, err
		}
		v, err := i.look(ctx, nil, false)
		if err != nil || i.known.judge(v) != record.Good || v.State == nil {
			return some, err
		}
		i.seen = v.Found
	}
	return some, nil
}

// planRenewals returns the writes that are due.
func (i *Rounds) planRenewals(cluster ClusterInfo, some []*series) (all []renewal) {
	e := i.situation(cluster, i.cfg.Elapsed.Now())
	e.Now = max(e.Now, i.seen.State.Time)
	for _, s := range some {
		s.Mu.Lock()
		if m := s.owned(); m != nil && e.Sent >= m.Until() {
			m.Lapse(e.Sent)
		} else if m != nil {
			v := m.Last
			v.Cluster, v.ClusterVersion, v.State, v.Version = i.seen.Cluster, i.seen.ClusterVersion, i.seen.State,
				i.seen.Version
			if w := m.NextWrite(v, e); w != nil {
				all = append(all, renewal{s, v, stepOf(*w, s.Name, v, e.Nonce, e.By)})
			}
		}
		s.Mu.Unlock()
	}
	return all
}

// endOwnerships gives back all sections that this node owns.
func (i *Rounds) endOwnerships(ctx context.Context) error {
	i.node.GiveAll()
	cluster, joined := i.cfg.Tenure.Cluster()
	if i.noteSession(); !joined || i.session == 0 || i.seen.State == nil {
		return nil
	}
	var owned []*series
	for _, s := range i.list() {
		s.Mu.Lock()
		s.Waiting = nil // requests have ended
		if s.owned() != nil {
			owned = append(owned, s)
		}
		s.Mu.Unlock()
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

// keepPlace follows the list of nodes at each heartbeat, and leaves it when this node gives its sections away.
func (i *Rounds) keepPlace(ctx context.Context, cluster ClusterInfo, followed bool) error {
	leaving := i.node.IsLeaving()
	if !followed && leaving == i.sawLeaving {
		return nil
	}
	if leaving != i.sawLeaving {
		i.sawLeaving, i.unfinished = leaving, true // all that this node owns is due
	}
	err := i.node.Meet(ctx, i.cfg.Store, func() bool { return i.unconfirmed(cluster) == 0 && !i.flaps() })
	refused := err != nil && !errors.Is(err, store.ErrUnreachable)
	if refused && !i.unlisted {
		i.cfg.Log.Warn("sequences: this node cannot tell others that it may own ordered sequences", "error", err)
	}
	i.unlisted = refused
	if refused { // nothing else needs the list
		return nil
	}
	return err
}

// flaps reports whether a section was lost twice in a minute (O9).
func (i *Rounds) flaps() bool {
	now := i.now()
	for _, s := range i.list() {
		s.Mu.Lock()
		m, ok := s.Mode.(*ordered.Section)
		flaps := ok && m.Flaps(now)
		s.Mu.Unlock()
		if flaps {
			return true
		}
	}
	return false
}

// Leave makes this node give its ordered sequences to other nodes, if there are any. From then on it passes
// requests on.
func (i *Issuer) Leave() {
	if i.node.Leave() {
		i.Wake()
	}
}

// Left reports whether no section is left to give away: this node owns none, or no other node may own any.
func (i *Issuer) Left() bool { return !i.node.Used() || !i.node.Others() || !i.owns() }

// owns reports whether this node owns a section.
func (i *Issuer) owns() bool {
	return slices.ContainsFunc(i.list(), func(s *series) bool {
		s.Mu.Lock()
		defer s.Mu.Unlock()
		return s.owned() != nil
	})
}
