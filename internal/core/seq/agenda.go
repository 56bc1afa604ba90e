package seq

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// When rounds come, and on which series they work.

// alarms are the times at which Round must look at series. With 100,000 sequences a round must not look at each of them
// whenever one has run out of values. Any goroutine may use it.
type alarms struct {
	// woken has capacity 1: it makes Run call Round.
	woken chan struct{}

	mu  sync.Mutex
	all []*series // those that have an alarm
	// armed is the time until which Run last began to wait: the earliest of them, or the next heartbeat. It is
	// math.MaxInt64 before.
	armed int64
}

func newAlarms() *alarms { return &alarms{woken: make(chan struct{}, 1), armed: math.MaxInt64} }

// alarm is a time, ns of AtMost, 0 for none. from < at only for a renewal: it may ring from `from` on, if
// another renewal rings.
type alarm struct{ from, at int64 }

// wake makes Run call Round soon. It never blocks.
func (a *alarms) wake() {
	select {
	case a.woken <- struct{}{}:
	default:
	}
}

// wakeAt makes Round look at a series at this time, ns of AtMost.
func (a *alarms) wakeAt(s *series, at int64) {
	if a.set(s, alarm{at, at}) {
		a.wake()
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

// nextAlarm makes Round look at a series when it must. now is the present time, ns of AtMost.
func (rw roundIO) nextAlarm(s *series, now int64) {
	s.Mu.Lock()
	next := alarm{s.DueAt, s.DueAt}
	switch {
	case s.DueAt != 0 && s.owned() != nil:
		next.at = max(s.DueAt, s.PausedUntil, now+1) // a slow write may have left no time until the next one
		next.from = next.at - (s.DueAt - s.DueFrom)
	case s.PausedUntil > now:
		next.from, next.at = s.PausedUntil, s.PausedUntil
	}
	slowAt := int64(0)
	if m, ok := s.Issuing.(*ordered.Section); ok { // nextBatch has set this alarm, but an earlier one may have replaced it
		slowAt = m.SlowAt()
	}
	s.Mu.Unlock()
	// One of them may be 0 or past, and does not count. Of two that do, set keeps the earlier one.
	for _, one := range []alarm{next, {slowAt, slowAt}} {
		if one.at > now {
			rw.issuer.alarms.set(s, one)
		}
	}
}

// agenda has the work that rounds have yet to do, and the pace at which they may do it.
type agenda struct {
	// unfinished: /seq was read, or the last round has left work, so any series may need work.
	unfinished bool
	// rung are the series whose alarms have rung since a round last looked for work.
	rung []*series
	// round counts the rounds. tookWake: the present one has taken a wake, and hands it to the next one.
	round    int64
	tookWake bool
	// roundTime is the time after which a round begins no more work. Each read of /seq sets it.
	roundTime time.Duration
}

// note notes series whose alarms have rung, each once.
func (ag *agenda) note(rung []*series) {
	for _, s := range rung {
		if !s.rung {
			s.rung, ag.rung = true, append(ag.rung, s)
		}
	}
}

// popRung returns the series that were noted.
func (ag *agenda) popRung() []*series {
	all := ag.rung
	ag.rung = nil
	for _, s := range all {
		s.rung = false
	}
	return all
}

// longestRound is the greatest agenda.roundTime. So requests that wait are woken in time.
const longestRound = mode.Patience / 2

// limitRound makes rounds short if the node must do something between them: renew leases, or tell others within the
// confirming time that it still has records to put back. lost is how many.
func (ag *agenda) limitRound(leases bool, lost int, confirm time.Duration) {
	ag.roundTime = longestRound
	if leases {
		ag.roundTime = record.MinLease / 4
	}
	if lost > 0 && confirm > 0 {
		ag.roundTime = min(ag.roundTime, confirm/4)
	}
}

// popDue returns the series that need work, those first that requests wait for. If work is unfinished, it looks at all
// series, else at those whose alarms have rung. It sets the alarms of those that need no work.
func (rs *Rounds) popDue() (due []*series) {
	all := rs.agenda.popRung()
	nodes := int64(rs.follower.cluster.Nodes)
	if rs.agenda.unfinished {
		all = rs.issuer.series.list()
		rs.follower.noteSpread(all)
	}
	rw := rs.follower.roundIO()
	sit := rw.situation(rs.issuer.cfg.Elapsed.Now())
	var by [mode.Awaited + 1][]*series
	for _, s := range all {
		if u := s.urgency(sit); u != mode.Idle {
			by[u] = append(by[u], s)
		} else {
			rw.nextAlarm(s, sit.AtMost) // the clocks are not read for each of 100,000 series
		}
	}
	// Those that are cut off here are due again at the next heartbeat.
	refreshes := slices.Concat(by[mode.Refresh], by[mode.Reread])
	refreshes = refreshes[:min(len(refreshes), refreshesAtOnce(rs.issuer.cfg.Follow, nodes))]
	return slices.Concat(by[mode.Awaited], by[mode.Needed], refreshes)
}
