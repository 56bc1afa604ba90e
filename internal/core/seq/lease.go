package seq

import (
	"time"

	"github.com/flaked/flaked/timeguard"
)

// This file decides when the owner of an ordered sequence may issue, and when another node may take its place.
// The owner counts by AtMost, and the others by AtLeast, each on its own machine.

// The bounds of the lease of an owner, and its default.
const (
	MinLease     = time.Second
	MaxLease     = time.Minute
	DefaultLease = 3 * time.Second
)

// lease is an ownership of the section, as the owner knows it. It is a chain: each renewal is acknowledged before the
// one before it ends (O5).
type lease struct {
	// owner is the nonce of the ownership, "" for none.
	owner string
	// until is when the owner must stop issuing.
	until int64
	// sent is when the last write that ZooKeeper acknowledged was sent, and session where it was made, or the record
	// was read since.
	sent    int64
	session int64
	// ending: the owner issues nothing more, and is about to give the section back.
	ending bool
}

// leaseEnd returns when an owner must stop issuing whose last acknowledged write was sent at this time (O2). Another
// node waits for d from a later moment (O4). The margin is for clocks that run apart.
func leaseEnd(sent int64, d time.Duration) int64 {
	//mutant:o2-no-margin by TestClocksThatRunApart -> return sent + int64(d)
	return sent + int64(d-d/10)
}

// newLease returns the lease after a write that was acknowledged.
func newLease(t blockWrite, sent int64) lease {
	until := leaseEnd(sent, t.record.hold())
	return lease{owner: t.record.Owner, until: until, sent: sent, session: t.session}
}

// renewAt returns when the owner must write the record again. It may do so by a sixth of the lease earlier, together
// with others.
func renewAt(sent int64, d time.Duration) int64 { return sent + int64(d/3) }

// mayRenew reports whether the owner may do so now.
func (l *lease) mayRenew(now int64, d time.Duration) bool {
	return now >= renewAt(l.sent, d)-int64(d/6)
}

// valid reports whether the owner may issue at now. The caller must have read the clock after it received the request
// (O2).
func (l *lease) valid(now int64) bool {
	//mutant:o2-no-lease by TestClockIsReadAfterTheRequest -> return l.owner != "" && !l.ending
	return l.owner != "" && now < l.until && !l.ending
}

// survives reports whether an ownership whose lease has not ended goes on when the record was read (O7). An operator
// may have changed the record since the owner wrote it, so its version is not compared. A record that is older than the
// owner's last write does not come here: series.owed takes it for a loss of data.
func (l *lease) survives(v view) bool {
	return v.record.Owner == l.owner && v.record.Incarnation == v.incarnation()
}

// lostOwner is Record.Owner after a loss of data in which ZooKeeper may have lost an owner.
const lostOwner = "lost"

// HasOwner reports whether a node owns the sequence, as far as the record shows.
func (r Record) HasOwner() bool { return r.Owner != "" && r.Owner != lostOwner }

// watch is how long a node has seen a record unchanged.
type watch struct {
	version     int32
	nonce       string
	session     int64
	incarnation int64
	since       timeguard.Moment // the end of the first read that showed it
}

// see takes over what was read. A record in another session or another incarnation is another one.
func (w *watch) see(v view, session int64) {
	now := watch{v.stat.Version, v.record.Nonce, session, v.incarnation(), w.since}
	if *w != now {
		now.since = v.got
		*w = now
	}
}

// freeIn returns how long this node must wait before it may take the section over: O4. ended is the last ownership of
// this process, which issues nothing any more. least is the present time of AtLeast.
func (w watch) freeIn(v view, ended string, least int64) time.Duration {
	r := v.record
	// After a loss of data nothing that was held counts, also not what this process knows of its own (O8).
	if (r.Owner == "" || r.Owner == ended) && r.Incarnation == v.incarnation() { // else an owner may be missing
		return 0
	}
	//mutant:o4-no-wait by TestLanesBeginAnewAtATakeOver -> return 0
	return max(0, time.Duration(w.since.Least-least)+r.hold())
}
