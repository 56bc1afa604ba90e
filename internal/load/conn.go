package load

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// run holds the state that all parts of a load share.
type run struct {
	cfg     Config
	request []byte
	// block is the request, repeated. The bytes to send are always a part of it.
	block   []byte
	checker *checker
	// All times are in ns since base, by the monotonic clock.
	base  time.Time
	from  int64        // when measuring begins
	until atomic.Int64 // when it ends; an interruption sets it
	grace atomic.Int64 // how long to wait for replies after it

	// Only the watcher may use these until it has ended.
	interrupted bool
	use         use
}

func (r *run) now() int64 { return int64(time.Since(r.base)) }

func (r *run) measured(t int64) bool { return t >= r.from && t < r.until.Load() }

// lane is a share of the connections, with their measurements. An event loop has a lane
// to itself. Goroutines share lanes and lock them.
type lane struct {
	*run
	mu    sync.Mutex
	conns []*conn
	// interval is the time between requests of this lane in an open loop, in ns. offset
	// is a fraction of interval: an event loop begins so much later, so that lanes take
	// turns.
	interval, offset float64

	tally      taken
	good       int64 // good replies while measured
	unanswered int64
	latency    *hdrhistogram.Histogram

	// For the watcher.
	seenReplies, seenGood, seenErrors atomic.Int64
}

// conn is one connection's share of the load. It does no I/O.
type conn struct {
	lane  *lane
	index int // in the lane
	parse parser
	// rest is the beginning of a reply that is not whole yet.
	rest []byte

	flight int // requests under way
	// since is the time of the last progress: requests sent, or replies read. In a
	// closed loop all requests under way were sent at sentAt.
	since, sentAt int64
	// sent and answered count the requests of an open loop.
	sent, answered int64
	// debt is how many bytes must still be written. The first is at offset phase of the
	// request.
	debt, phase int
}

func newConn(l *lane, index int, number int32) *conn {
	c := &conn{lane: l, index: index}
	c.parse.conn = number
	c.open()
	return c
}

// open resets the state for a new connection in the place of a lost one. Requests of an
// open loop stay due.
func (c *conn) open() {
	cfg := &c.lane.cfg
	c.parse = parser{
		resp: cfg.Framing != Plain, batch: cfg.Batch, command: cfg.Command != "",
		check: cfg.Check, conn: c.parse.conn,
	}
	c.rest, c.debt, c.phase, c.flight = c.rest[:0], 0, 0, 0
}

// due returns when request k of this connection must be sent in an open loop, in ns
// since base. The connections of a lane take turns.
func (c *conn) due(k int64) int64 {
	l := c.lane
	return l.due(k*int64(len(l.conns)) + int64(c.index))
}

// due returns when request k of this lane must be sent in an open loop, in ns since base.
func (l *lane) due(k int64) int64 { return int64((l.offset + float64(k)) * l.interval) }

// pump adds the requests that must be sent now to the debt.
func (c *conn) pump(now int64) {
	l := c.lane
	until := l.until.Load()
	n := 0
	if l.cfg.Rate > 0 {
		// Requests that were due before the end are sent after it, too.
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

// chunk returns the next bytes to write.
func (c *conn) chunk() []byte {
	block := c.lane.block[c.phase:]
	return block[:min(c.debt, len(block))]
}

// wrote records that n bytes of the chunk were written.
func (c *conn) wrote(n int) {
	c.debt -= n
	c.phase = (c.phase + n) % len(c.lane.request)
}

// received handles input: b begins with rest, and the bytes that were read follow. It
// returns errReply if b holds bytes that are no reply.
func (c *conn) received(b []byte, now int64) error {
	l := c.lane
	l.tally.replies, l.tally.good = 0, 0
	used, err := c.parse.take(b, &l.tally)
	c.rest = append(c.rest[:0], b[used:]...)
	n := l.tally.replies
	if unasked := n - c.flight; unasked > 0 {
		// A server that is full sends an error before any request. A good reply without
		// a request is an error.
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

// settle removes n requests from those under way and records their latencies.
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

// lost records that the connection is lost, under the code of an error. Requests under
// way will not be answered. They count with the time that they have waited.
func (c *conn) lost(code string, now int64) {
	n := max(c.flight, 1)
	c.lane.tally.errors[code] += int64(n)
	c.lane.seenErrors.Add(int64(n))
	c.settle(c.flight, now)
}

// owes reports whether replies are still to come, or requests to be sent.
func (c *conn) owes() bool {
	return c.flight > 0 || c.unsent() > 0
}

// unsent returns how many requests are due before the end and not sent.
func (c *conn) unsent() int64 {
	l := c.lane
	if l.cfg.Rate == 0 {
		return 0
	}
	until := l.until.Load()
	n := int64(max(float64(until-c.due(c.sent))/(l.interval*float64(len(l.conns))), 0))
	for c.due(c.sent+n) < until { // the division was rounded down
		n++
	}
	return n
}

// late reports whether the connection has waited too long for replies.
func (c *conn) late(now int64) bool {
	return c.flight > 0 && now-c.since > int64(c.lane.cfg.Timeout)
}

// abandon ends a connection with the run. Requests that were due and not answered count
// with the time that they have waited.
func (c *conn) abandon(now int64) {
	l := c.lane
	l.unanswered += int64(c.flight)
	unsent := c.unsent()
	l.unanswered += unsent
	c.settle(c.flight, now)
	// At a rate far above the server's there are millions of these: one stands for its
	// neighbours.
	step := max(unsent/10_000, 1)
	for k := int64(0); k < unsent; k += step {
		if due := c.due(c.sent + k); l.measured(due) {
			_ = l.latency.RecordValues(max(now-due, 1), min(step, unsent-k))
		}
	}
}
