package ordered

import (
	"math"
	"time"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/timeguard"
)

// When the owner of an ordered sequence may issue, and when another node may take its place: the owner counts by
// AtMost, and the others by AtLeast, each on its own machine.

// lease is an ownership of the section, as the owner knows it. It is a chain: each renewal is acknowledged before the
// one before it ends (O5).
type lease struct {
	// owner is the nonce of the ownership, "" for none.
	owner string
	// until is the time at which the owner must stop issuing.
	until int64
	// sent is the time at which the last acknowledged write was sent. session is the session of that write, or of a
	// read of the record since.
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
	return lease{owner: w.Record.Owner, until: until, sent: sent, session: w.Session}
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
	//mutant:o2-no-lease by internal/core/seq:TestClockIsReadAfterTheRequest -> return l.owner != "" && !l.ending
	return l.owner != "" && now < l.until && !l.ending
}

// survives reports whether an ownership whose lease has not ended goes on when the record was read (O7). An operator
// may have changed the record since the owner wrote it, so its version is not compared. A record that is older than the
// owner's last write does not come here: series.owed takes it for a loss of data.
func (l *lease) survives(v mode.View) bool {
	return v.Record.Owner == l.owner && v.Record.Incarnation == v.Incarnation()
}

// watch measures how long a node has seen a record unchanged.
type watch struct {
	version     int32
	nonce       string
	session     int64
	incarnation int64
	since       timeguard.Moment // the end of the first read that showed it
}

// see takes over what was read. A record in another session or another incarnation is another one.
func (w *watch) see(v mode.View, session int64) {
	now := watch{v.Stat.Version, v.Record.Nonce, session, v.Incarnation(), w.since}
	if *w != now {
		now.since = v.AnsweredAt
		*w = now
	}
}

// freeIn returns how long this node must wait before it may take the section over: O4. ended is the last ownership of
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

// counters has the positions that the owner of a section issues from: first to end. Each lane is a counter over all of
// them, so that names of different lanes may get the same positions. A plain ordered sequence has one lane.
type counters struct {
	first, end int64
	// lanes[k] is the first position that lane k has not issued. Below first, it counts as first. high is the highest.
	lanes []int64
	high  int64
	// highWritten is the value of high at the last write. Above lowAbove, the owner needs more positions.
	highWritten, lowAbove int64
}

// issue counts n positions of a lane, and returns the first. ok is false if there are not so many left.
func (c *counters) issue(lane int, n int64) (p int64, ok bool) {
	if p = c.at(lane); p+n > c.end {
		return 0, false
	}
	if lane >= len(c.lanes) {
		c.lanes = append(c.lanes, make([]int64, lane+1-len(c.lanes))...)
	}
	c.lanes[lane] = p + n
	c.high = max(c.high, p+n)
	return p, true
}

// at returns the first position that a lane has not issued.
func (c *counters) at(lane int) int64 {
	if lane >= len(c.lanes) {
		return c.first
	}
	return max(c.lanes[lane], c.first)
}

// begin makes all lanes begin at the first position of a block.
func (c *counters) begin(b positions.Block) {
	c.first, c.end, c.high = b.First, b.End, b.First
}

// add adds a block. If it does not follow the last one, an operator has raised the next value, and all lanes go on
// there.
func (c *counters) add(b positions.Block) {
	switch {
	case b.Len() == 0:
	case b.First == c.end:
		c.end = b.End
	default:
		c.begin(b)
	}
}

// skipTo makes no lane issue a position below p.
func (c *counters) skipTo(p int64) {
	c.first = max(c.first, p)
	if n := c.first - c.high; n > 0 { // they are not used
		c.high, c.highWritten = c.high+n, c.highWritten+n
	}
}

// rest returns the positions that no lane has issued.
func (c *counters) rest() positions.Block { return positions.Block{First: c.high, End: c.end} }

// wrote notes a write. Three quarters of what is left now may be used before another one is needed.
func (c *counters) wrote() {
	c.highWritten, c.lowAbove = c.high, c.end-max(1, (c.end-c.high)/4)
}

func (c *counters) low() bool { return c.high > c.lowAbove }

// usedThird reports whether a third is used of what may be used before another write is needed. A renewal takes more
// positions then, which saves that write.
func (c *counters) usedThird() bool { return 3*(c.high-c.highWritten) > c.lowAbove-c.highWritten }

// ahead is the time for which an owner takes positions in advance. What is left of them is a gap if it is killed.
const ahead = 4 * time.Second

// want returns how many more positions the owner would like, and how many it needs at least. They begin at next. took
// is the time since the last write.
func (c *counters) want(next int64, took time.Duration, smallest int64, waiting []mode.Request) (want, need int64) {
	used := c.high - c.highWritten
	rate := float64(used) / max(took, time.Millisecond).Seconds()
	if next != c.end { // an operator has raised the next value: see add
		raised := *c
		raised.begin(positions.Block{First: next, End: next})
		c = &raised
	}
	// A burst of a moment does not tell what comes.
	want = c.high + max(smallest, min(int64(rate*ahead.Seconds()), 8*used)) - c.end
	need = math.MaxInt64
	for _, r := range waiting {
		lacks := c.at(r.Lane) + r.N - c.end
		want, need = max(want, lacks), min(need, lacks)
	}
	if len(waiting) == 0 {
		need = 1
	}
	return max(1, want), max(1, need)
}
