package load

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// run is what all parts of a load share.
type run struct {
	cfg     Config
	request []byte
	// block is the request over and over: the bytes to send are a stretch of it.
	block   []byte
	checker *checker
	// All moments are ns since base, by the monotonic clock.
	base  time.Time
	from  int64        // when measuring begins
	until atomic.Int64 // and ends; brought forward by an interruption
	grace atomic.Int64 // how long replies are waited for after that

	// The watcher's, until it has ended.
	interrupted bool
	use         use
}

func (r *run) now() int64 { return int64(time.Since(r.base)) }

func (r *run) measured(t int64) bool { return t >= r.from && t < r.until.Load() }

// lane is a share of the connections, and what they measure. An event loop has
// one to itself; goroutines lock it.
type lane struct {
	*run
	mu    sync.Mutex
	conns []*conn
	// interval is between requests of this lane in an open loop, ns; offset is
	// where in the first one it begins, so that lanes take turns.
	interval, offset float64

	tally      taken
	good       int64 // replies while it was measured
	unanswered int64
	latency    *hdrhistogram.Histogram

	// For whoever watches.
	seenReplies, seenGood, seenErrors atomic.Int64
}

// conn is one connection's share of the load. It does no I/O.
type conn struct {
	lane  *lane
	index int // in the lane
	parse parser
	// rest is the beginning of a reply whose end has not come yet.
	rest []byte

	flight int // requests on the way
	// since is when there was last progress: requests sent, or replies read. In a
	// closed loop all that is on the way was sent at sentAt.
	since, sentAt int64
	// sent and answered number an open loop's requests.
	sent, answered int64
	// debt is how many bytes have still to be written, from offset phase of the
	// request on.
	debt, phase int
}

func newConn(l *lane, index int, number int32) *conn {
	c := &conn{lane: l, index: index}
	c.parse.conn = number
	c.open()
	return c
}

// open is a new connection in the place of one that is lost. Requests that are
// due go on being so.
func (c *conn) open() {
	cfg := &c.lane.cfg
	c.parse = parser{
		resp: cfg.Framing != Plain, batch: cfg.Batch, command: cfg.Command != "",
		check: cfg.Check, conn: c.parse.conn,
	}
	c.rest, c.debt, c.phase, c.flight = c.rest[:0], 0, 0, 0
}

// due is when request k of this connection has to be sent, in an open loop. The
// connections of a lane take turns.
func (c *conn) due(k int64) int64 {
	l := c.lane
	return int64(l.offset + float64(k*int64(len(l.conns))+int64(c.index))*l.interval)
}

// pump adds what has to be sent now to the debt.
func (c *conn) pump(now int64) {
	l := c.lane
	until := l.until.Load()
	n := 0
	if l.cfg.Rate > 0 {
		// What was due before the end is sent after it, too.
		for room := l.cfg.Pipeline - c.flight; n < room; n++ {
			if due := c.due(c.sent + int64(n)); due > now || due >= until {
				break
			}
		}
		c.sent += int64(n)
	} else if c.flight == 0 && now < until {
		n = l.cfg.Pipeline
		c.sentAt = now
	}
	if n == 0 {
		return
	}
	if c.flight == 0 {
		c.since = now
	}
	c.flight += n
	c.debt += n * len(l.request)
}

// chunk is the next bytes to write.
func (c *conn) chunk() []byte {
	block := c.lane.block[c.phase:]
	return block[:min(c.debt, len(block))]
}

// wrote is that n bytes of it were.
func (c *conn) wrote(n int) {
	c.debt -= n
	c.phase = (c.phase + n) % len(c.lane.request)
}

// received takes what was read, after rest.
func (c *conn) received(b []byte, now int64) error {
	l := c.lane
	l.tally.replies, l.tally.good = 0, 0
	used, err := c.parse.take(b, &l.tally)
	c.rest = append(c.rest[:0], b[used:]...)
	n := l.tally.replies
	if unasked := n - c.flight; unasked > 0 {
		// A server that is full says so before anything is asked.
		if n = c.flight; unasked > l.tally.replies-l.tally.good {
			err = errReply
		}
	}
	c.since = now
	c.settle(n, now)
	if l.measured(now) {
		l.good += int64(l.tally.good)
	}
	l.seenReplies.Add(int64(l.tally.replies))
	l.seenGood.Add(int64(l.tally.good))
	l.seenErrors.Add(int64(l.tally.replies - l.tally.good))
	if len(l.tally.stretches) > flushAt {
		l.flush()
	}
	return err
}

const flushAt = 4096

// flush hands IDs to the checker.
func (l *lane) flush() {
	if len(l.tally.stretches) > 0 {
		l.checker.add(l.tally.stretches)
		l.tally.stretches = l.tally.stretches[:0]
	}
}

// settle takes n requests off the way, and the time they took.
func (c *conn) settle(n int, now int64) {
	l := c.lane
	c.flight -= n
	if l.cfg.Rate == 0 {
		if n > 0 && l.measured(c.sentAt) {
			_ = l.latency.RecordValues(max(now-c.sentAt, 1), int64(n))
		}
		return
	}
	for range n {
		if due := c.due(c.answered); l.measured(due) {
			_ = l.latency.RecordValues(max(now-due, 1), 1)
		}
		c.answered++
	}
}

// lost is that the connection is, and why. What was on the way will not be
// answered: it counts with the time that was waited.
func (c *conn) lost(code string, now int64) {
	n := max(c.flight, 1)
	c.lane.tally.errors[code] += int64(n)
	c.lane.seenErrors.Add(int64(n))
	c.settle(c.flight, now)
}

// owes tells whether replies are still to come, or requests to be sent.
func (c *conn) owes() bool {
	return c.flight > 0 || c.unsent() > 0
}

// unsent is how many requests are due before the end and not sent.
func (c *conn) unsent() int64 {
	l := c.lane
	if l.cfg.Rate == 0 {
		return 0
	}
	until := l.until.Load()
	n := int64(max(float64(until-c.due(c.sent))/(l.interval*float64(len(l.conns))), 0))
	for c.due(c.sent+n) < until { // by as many as the division was rounded
		n++
	}
	return n
}

// late tells whether replies have been waited for too long.
func (c *conn) late(now int64) bool {
	return c.flight > 0 && now-c.since > int64(c.lane.cfg.Timeout)
}

// abandon is the end: what was due and not answered counts with the time that
// was waited.
func (c *conn) abandon(now int64) {
	l := c.lane
	l.unanswered += int64(c.flight)
	unsent := c.unsent()
	l.unanswered += unsent
	c.settle(c.flight, now)
	// At a rate far above what a server can do these are millions: one stands for
	// its neighbours.
	step := max(unsent/10_000, 1)
	for k := int64(0); k < unsent; k += step {
		if due := c.due(c.sent + k); l.measured(due) {
			_ = l.latency.RecordValues(max(now-due, 1), min(step, unsent-k))
		}
	}
}
