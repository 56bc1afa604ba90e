package ordered

import (
	"time"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/timeguard"
)

// When the owner of an ordered sequence may issue, and when another node may take its place: the owner goes by AtMost,
// and the others by AtLeast, each on its own machine.

// lease is an ownership of the section, as the owner knows it. It is a chain: each renewal is acknowledged before the
// one before it ends (O5).
type lease struct {
	// ownership is its nonce, "" for none.
	ownership string
	// until is the time at which the owner must stop issuing, ns of AtMost.
	until int64
	// sent is the time at which the last acknowledged write was sent, ns of AtMost. session is the session of that
	// write, or of a read of the record since.
	sent    int64
	session int64
	// ending: the owner issues nothing more, and is about to give the section back.
	ending bool
}

// leaseEnd returns when an owner must stop issuing whose last acknowledged write was sent at this time (O2). Another
// node waits for d from a later moment (O4). The margin is for clocks that run apart.
func leaseEnd(sent int64, d time.Duration) int64 {
	//mutant:o2-no-margin by internal/core/seq:TestClocksThatRunApart -> return sent + int64(d)
	return sent + int64(d-d/10)
}

// newLease returns the lease after a write that was acknowledged.
func newLease(w mode.Write, sent int64) lease {
	until := leaseEnd(sent, w.Record.Hold())
	return lease{ownership: w.Record.Owner, until: until, sent: sent, session: w.Session}
}

// renewAt returns when the owner must write the record again: at. It may do so from `from` on, together with others.
func renewAt(sent int64, d time.Duration) (from, at int64) {
	at = sent + int64(d/3)
	return at - int64(d/6), at
}

// mayRenew reports whether the owner may write the record again now.
func (l *lease) mayRenew(now int64, d time.Duration) bool {
	from, _ := renewAt(l.sent, d)
	return now >= from
}

// valid reports whether the owner may issue at now. The caller must have read the clock after it received the request
// (O2).
func (l *lease) valid(now int64) bool {
	//mutant:o2-no-lease by internal/core/seq:TestClockIsReadAfterTheRequest -> return l.ownership != "" && !l.ending
	return l.ownership != "" && now < l.until && !l.ending
}

// survives reports whether an ownership whose lease has not ended goes on by the record that was read (O7). An operator
// may have changed the record since the owner wrote it, so its version is not compared. A record that is older than the
// owner's last write does not come here: series.owed reports it as a loss of data.
func (l *lease) survives(v mode.View) bool {
	return v.Record.Owner == l.ownership && v.Record.Incarnation == v.Incarnation()
}

// watch measures how long a node has seen a record unchanged.
type watch struct {
	version     int32
	nonce       string
	session     int64
	incarnation int64
	since       timeguard.Moment // the end of the first read that showed it
}

// see applies what was read. A record in another session or another incarnation is another one.
func (w *watch) see(v mode.View, session int64) {
	now := watch{v.Stat.Version, v.Record.Nonce, session, v.Incarnation(), w.since}
	if *w != now {
		now.since = v.AnsweredAt
		*w = now
	}
}

// freeIn returns how long this node must wait before it may take the section over (O4). ended is the last ownership of
// this process, which issues nothing any more. least is the present time of AtLeast.
func (w watch) freeIn(v mode.View, ended string, least int64) time.Duration {
	r := v.Record
	// After a loss of data nothing that was held counts, also not what this process knows of its own (O8).
	if (r.Owner == "" || r.Owner == ended) && r.Incarnation == v.Incarnation() { // else an owner may be missing
		return 0
	}
	//mutant:o4-no-wait by internal/core/seq:TestLanesBeginAnewAtATakeOver -> return 0
	return max(0, time.Duration(w.since.Least-least)+r.Hold())
}
