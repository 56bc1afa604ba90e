package seq

import (
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// This file decides when the owner of an ordered sequence may issue, and when another node may take its place. All times
// are ns of CLOCK_BOOTTIME of the machine that decides, never wall clocks. Two machines' clocks may run 5 % apart.

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
	// sent is when the last write that ZooKeeper acknowledged was sent, in this session. version is that of the record
	// then, and written its nonce.
	sent    int64
	session int64
	version int32
	written string
	// last is what this write has left in ZooKeeper.
	last view
	// ending: the owner issues nothing more, and is about to give the section back.
	ending bool
}

// leaseEnd returns when an owner must stop issuing whose last acknowledged write was sent at this time (O2). Another
// node waits for d from a later moment (O4). The margin is for clocks that run apart.
func leaseEnd(sent int64, d time.Duration) int64 {
	//mutant:o2-no-margin by TestClocksThatRunApart -> return sent + int64(d)
	return sent + int64(d-d/10)
}

// newLease returns the lease after a write that was acknowledged. v is what was read before.
func newLease(t blockWrite, v view, sent int64) lease {
	//mutant:o2-from-the-acknowledgement by seqsim -> sent += int64(t.record.hold())
	l := lease{owner: t.record.Owner, until: leaseEnd(sent, t.record.hold()), sent: sent, session: t.session}
	if l.version = v.stat.Version + 1; l.version == store.AnyVersion { // two writes were needed: see setVersion
		l.version++
	}
	l.written, l.last = t.record.Nonce, v
	l.last.record, l.last.stat = &t.record, store.Stat{Version: l.version}
	return l
}

// renewAt returns when the owner must write the record again. It may do so by a sixth of the lease earlier, together
// with others.
func renewAt(sent int64, d time.Duration) int64 { return sent + int64(d/3) }

// valid reports whether the owner may issue at now. The caller must have read the clock after it received the request
// (O2).
func (l *lease) valid(now int64) bool {
	//mutant:o2-no-lease by seqsim -> return l.owner != "" && !l.ending
	return l.owner != "" && now < l.until && !l.ending
}

// survives reports whether the ownership goes on, although the record was read: in the state in which the owner left it
// (O7), or as an operator has changed it since in the same session. In another session ZooKeeper may have lost data,
// so that an old record with this owner shows nothing.
func (l *lease) survives(v view, session int64) bool {
	r := v.record
	same := v.stat.Version == l.version && r.Nonce == l.written
	//mutant:o7-own-nonce by seqsim -> changed := r.Owner == l.owner
	changed := session == l.session && v.stat.Version > l.version && r.Owner == l.owner
	return (same || changed) && r.Incarnation == v.incarnation()
}

// watch is how long a node has seen a record unchanged.
type watch struct {
	version     int32
	nonce       string
	session     int64
	incarnation int64
	since       int64 // the end of the first read that showed it
}

// see takes over what was read. A record in another session or another incarnation is another one.
func (w *watch) see(v view, session int64) {
	now := watch{v.stat.Version, v.record.Nonce, session, v.incarnation(), w.since}
	if *w != now {
		now.since = v.got
		//mutant:o4-from-the-start-of-the-read by TestTakeOverCountsFromTheEndOfTheRead -> now.since = v.read
		*w = now
	}
}

// freeIn returns how long this node must wait before it may take the section over: O4. ended is the last ownership of
// this process, which issues nothing any more.
func (w watch) freeIn(v view, ended lease, now int64) time.Duration {
	r := v.record
	if r.Incarnation == v.incarnation() { // else an owner may be missing in the record, because the data are older
		//mutant:o7-own-nonce-in-any-session by seqsim -> own := r.Owner == ended.owner
		own := r.Owner == ended.owner && ended.session == w.session
		if r.Owner == "" || own {
			return 0
		}
	}
	//mutant:o4-no-wait by seqsim -> return 0
	return max(0, time.Duration(w.since-now)+r.hold())
}
