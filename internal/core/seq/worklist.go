package seq

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/sync/errgroup"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// workAll works on each series that needs it, several at a time, and reports a loss of data. It ends early if
// the time is over, if ZooKeeper fails, or if it has lost data. The next round goes on. complete is false then.
func (rs *Rounds) workAll(ctx context.Context, due []*series) (complete bool, err error) {
	var group errgroup.Group
	var lost atomic.Pointer[lostError]
	var early atomic.Bool
	rw, began, most := rs.follower.roundIO(), rs.issuer.now(), int64(rs.agenda.roundTime)
	work := func(s *series) error {
		if early.Load() || rs.issuer.now()-began >= most {
			early.Store(true)
			s.wakeWaiting() // the requests see whether they have waited too long
			return nil
		}
		sign, err := rw.noteFailure(s, rw.work(ctx, s))
		if sign != nil {
			lost.CompareAndSwap(nil, sign)
		}
		if sign != nil || err != nil {
			early.Store(true)
		}
		return err
	}
	// Names that end with * come first: families, and templates. The sections of a family may have other names than in
	// the life that the node knows (S36). After an error the second pass only wakes requests.
	for _, first := range []bool{true, false} {
		l := &worklist{rs: rs, sections: !first}
		for _, s := range due {
			//mutant:s36-sections-first by TestFamilyIsReadBeforeItsSections -> if first != positions.IsPattern("") {
			if positions.IsPattern(s.Name) == first {
				l.left = append(l.left, s)
			}
		}
		for range min(rs.issuer.cfg.Parallel, len(l.left)) {
			group.Go(func() (failed error) {
				for s := l.next(); s != nil; s = l.next() {
					failed = cmp.Or(failed, work(s))
				}
				return failed
			})
		}
		err = group.Wait() // the first error of both passes
	}
	rs.agenda.unfinished = early.Load()
	rs.noteWorked(lost.Load(), err)
	return !rs.agenda.unfinished, err
}

// noteFailure refuses requests for a series on which the work has failed. It returns what ends the work on all series:
// a sign of a loss of data, or an error of ZooKeeper.
func (rw roundIO) noteFailure(s *series, failed error) (sign *lostError, err error) {
	switch {
	case errors.As(failed, &sign):
		s.change(func() { s.Refuse(mode.Confirming(time.Second), rw.issuer.now()) })
		return sign, nil
	case errors.Is(failed, record.ErrDamaged), errors.Is(failed, record.ErrUnknownMode):
		rw.unusable(s, failed)
		return nil, nil
	case errors.As(failed, new(noRoomError)): // what others need may be allowed
		rw.overQuota(s, failed)
		return nil, nil
	}
	return nil, failed
}

// noteWorked notes how the work on series has ended, and which sign of a loss of data was found, nil for none.
func (rs *Rounds) noteWorked(sign *lostError, failed error) {
	if sign != nil {
		rs.follower.current = false // the next round reads /cluster and /seq first
	}
	switch {
	case sign != nil && !sign.later:
		rs.follower.report(sign.reason) // Tenure.ReportLoss wakes the Issuer
	case sign != nil, rs.agenda.unfinished && failed == nil:
		rs.issuer.Wake()
	}
}

// worklist has the series that a round has yet to work on. Several goroutines take them out.
type worklist struct {
	rs *Rounds
	// sections: families were read, so names for which requests come during the round may come first.
	sections bool

	mu            sync.Mutex // guards these, and the agenda
	left, awaited []*series
}

// next returns the series that comes next, nil for none. Those come first for which requests have come since the round
// began: with 100,000 series that must be read after a start, they would wait for seconds.
func (l *worklist) next() *series {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.left) > 0 || len(l.awaited) > 0 {
		if l.sections {
			l.awaited = append(l.awaited, l.rs.popAwaited()...)
		}
		from := &l.left
		if len(l.awaited) > 0 {
			from = &l.awaited
		}
		s := (*from)[0]
		if *from = (*from)[1:]; s.workedIn != l.rs.agenda.round {
			s.workedIn = l.rs.agenda.round
			return s
		}
	}
	return nil
}

// popAwaited returns the series for which requests have come, and which this round has not come to. The next round
// looks at the others whose alarms have rung.
func (rs *Rounds) popAwaited() (awaited []*series) {
	select {
	case <-rs.issuer.alarms.woken:
		rs.agenda.tookWake = true
	default:
		return nil
	}
	sit := rs.follower.roundIO().situation(rs.issuer.cfg.Elapsed.Now())
	for _, s := range rs.issuer.alarms.rings(rs.issuer.now()) {
		if s.workedIn != rs.agenda.round && s.urgency(sit) == mode.Awaited {
			awaited = append(awaited, s)
		} else {
			rs.agenda.note([]*series{s})
		}
	}
	return awaited
}
