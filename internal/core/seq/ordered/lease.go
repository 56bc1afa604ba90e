package ordered

import (
	"time"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/timeguard"
)

// When the owner of an ordered sequence may issue, and when another node may take its place: the owner goes by AtMost,
// and the others by AtLeast, each on its own machine.

// lease is an ownership of the section, as the owner knows it. It is a chain of renewals: each is acknowledged before
// the lease of the previous one ends (O5).
type lease struct {
	// owner is the nonce of the ownership, as in the record's Owner. "": this node is not the owner.
	owner string
	// until is the time at which the owner must stop issuing, ns of AtMost.
	until int64
	// sent is the time at which the last acknowledged write was sent, ns of AtMost. session is the session of that
	// write, or of a read of the record since.
	sent    int64
	session int64
	// ending: the owner issues nothing more, and is about to give the section back.
	ending bool
}

// leaseEnd returns when an owner must stop issuing: its last acknowledged write was sent at sent, and its lease is d
// (O2). Another node waits for all of d, from a later moment (O4). The margin is for clocks that run apart.
func leaseEnd(sent int64, d time.Duration) int64 {
	//mutant:o2-no-margin by internal/core/seq:TestClocksThatRunApart -> return sent + int64(d)
	return sent + int64(d-d/10)
}

// newLease returns the lease after a write that was acknowledged.
func newLease(w mode.Write, sent int64) lease {
	until := leaseEnd(sent, w.Record.Hold())
	return lease{owner: w.Record.Owner, until: until, sent: sent, session: w.Session}
}

// renewTimes returns when the owner must renew a lease of d, whose last write was sent at sent: at. It may do so from
// `from` on, together with other leases.
func renewTimes(sent int64, d time.Duration) (from, at int64) {
	at = sent + int64(d/3)
	return at - int64(d/6), at
}

// mayRenew reports whether the owner may renew the lease now, which is d long.
func (l *lease) mayRenew(now int64, d time.Duration) bool {
	from, _ := renewTimes(l.sent, d)
	return now >= from
}

// valid reports whether the owner may issue at now. The caller must have read the clock after it received the request
// (O2).
func (l *lease) valid(now int64) bool {
	//mutant:o2-no-lease by internal/core/seq:TestClockIsReadAfterTheRequest -> return l.owner != "" && !l.ending
	return l.owner != "" && now < l.until && !l.ending
}

// survives reports whether an ownership whose lease has not ended goes on by the record that was read (O7). An operator
// may have changed the record since the owner wrote it, so its version is not compared. A record that is older than the
// owner's last write does not come here: series.owed reports it as a loss of data.
func (l *lease) survives(v mode.View) bool {
	return v.Record.Owner == l.owner && v.Record.Incarnation == v.Incarnation()
}

// observation measures how long a node has seen a record unchanged. It has what the last read showed.
type observation struct {
	version     int32
	nonce       string
	session     int64
	incarnation int64
	since       timeguard.Moment // the end of the first read that showed it
}

// update notes what was read. In another session or another incarnation, a record counts as changed.
func (o *observation) update(v mode.View, session int64) {
	read := observation{v.Stat.Version, v.Record.Nonce, session, v.Incarnation(), o.since}
	if *o != read {
		read.since = v.AnsweredAt
		*o = read
	}
}

// freeIn returns how long this node must wait before it may take the section over (O4). ended is the nonce of the last
// ownership of this process, which issues nothing any more. now is the time of AtLeast.
func (o observation) freeIn(v mode.View, ended string, now int64) time.Duration {
	r := v.Record
	// After a loss of data nothing that was held counts, also not what this process knows of its own (O8).
	if (r.Owner == "" || r.Owner == ended) && r.Incarnation == v.Incarnation() { // else an owner may be missing
		return 0
	}
	//mutant:o4-no-wait by internal/core/seq:TestLanesBeginAnewAtATakeOver -> return 0
	return max(0, time.Duration(o.since.Least-now)+r.Hold())
}
