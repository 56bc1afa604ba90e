package seq

import (
	"context"
	"errors"
	"slices"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

// renewalsInOne is the most records that one transaction renews.
const renewalsInOne = 100

// renewTogether makes the writes of the sections among due that this node owns, many in one transaction. It returns
// those that are left: all other series, sections that must be read first, and those for which requests wait. With an
// error it returns none.
func (rs *Rounds) renewTogether(ctx context.Context, due []*series) (rest []*series, err error) {
	var leased []*series
	for _, s := range due {
		if s.renewsTogether(rs.follower.session) {
			leased = append(leased, s)
		} else {
			rest = append(rest, s)
		}
	}
	for some := range slices.Chunk(leased, renewalsInOne) {
		failed, err := rs.renew(ctx, some)
		if err != nil {
			return nil, err
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
	return m != nil && m.OwnsIn(session) && m.Last != nil && !s.Stale && len(s.Waiting) == 0
}

// renew makes the writes of some sections in one transaction. If that fails because something has changed, it reads
// /cluster and /seq and tries again, and then returns the sections. If ZooKeeper has no room, it returns them at once:
// each has its own write then, so that one that is too large does not stop the others.
func (rs *Rounds) renew(ctx context.Context, some []*series) (failed []*series, err error) {
	for range 2 {
		rw := rs.follower.roundIO()
		all := rs.planRenewals(rw, some)
		if len(all) == 0 {
			return nil, nil
		}
		err := rw.commitTogether(ctx, rs.follower.seen.CheckOps(), all)
		if errors.Is(err, store.ErrQuota) {
			return some, nil
		} else if !mode.NotMade(err) {
			return nil, err
		}
		v, err := rw.lookState(ctx)
		if err != nil || rw.losses.Finding(v.Snapshot) != record.Good || v.State == nil {
			return some, err
		}
		rs.follower.seen = v.Snapshot
	}
	return some, nil
}

// commitTogether makes the writes of many series in one transaction, which needs what checks name unchanged, and the
// node's slot.
func (rw roundIO) commitTogether(ctx context.Context, checks []store.Op, all []part) (err error) {
	slot, sent := rw.issuer.cfg.Tenure.Slot(rw.session), rw.issuer.now()
	ops := append(checks, slot.check())
	for _, p := range all {
		ops = append(ops, p.t.ops...)
		if !slot.allows(p.t.Write) {
			err = mode.ErrNotSent
		}
	}
	if err == nil {
		for _, p := range all {
			rw.traceWrite(p.s, p.v, p.t.Write, slot)
		}
		err = rw.issuer.cfg.Store.Multi(store.OnSession(ctx, rw.session), ops...)
	}
	for _, p := range all {
		rw.wrote(p.s, p.v, p.t.Write, sent, err)
	}
	return err
}

// planRenewals returns the writes that are due. It sets the alarms of the sections that need none yet.
func (rs *Rounds) planRenewals(rw roundIO, some []*series) (all []part) {
	sit := rw.situation(rs.issuer.cfg.Elapsed.Now())
	seen := rs.follower.seen
	sit.SeqTime = max(sit.SeqTime, seen.State.Time)
	for _, s := range some {
		idle := false
		s.Mu.Lock()
		if m := s.owned(); m != nil && !m.EndIfLapsed(sit.AtMost) {
			v := *m.Last
			v.Cluster, v.ClusterVersion, v.State, v.StateVersion = seen.Cluster, seen.ClusterVersion, seen.State, seen.StateVersion
			if w := m.NextWrite(v, sit); w != nil {
				all = append(all, part{s, v, stepOf(*w, s.Name, v, sit.Nonce, sit.By)})
			} else {
				idle = true
			}
		}
		s.Mu.Unlock()
		if idle { // its lease must still be renewed before the next heartbeat
			rw.nextAlarm(s, sit.AtMost)
		}
	}
	return all
}
