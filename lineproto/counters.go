package lineproto

import (
	"strings"
	"sync/atomic"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
)

// result is the outcome of a request, as it is counted: resultOK, or one plus
// the index of an error's code in replies.Codes.
type result uint8

const (
	resultOK   result = 0
	numResults        = 1 + len(replies.Codes)
)

// resultOf returns the result of a request that was answered with an error. An unknown code counts as ERR.
func resultOf(e *ids.ReplyError) result {
	return 1 + result(max(0, replies.Index(e.Code)))
}

// counters are the counts of a server since New, over all of its listeners.
type counters struct {
	open, total, refused, idle, slow, badTLS atomic.Int64

	ids atomic.Int64
	// sizes counts answered requests by the number of IDs in the reply: sizeBucket.
	sizes     [numSizes]atomic.Int64
	durations durations
	// requests counts by row of the command table and result. The last row is for input
	// that is no command.
	requests [][numResults]atomic.Int64
}

// tally holds the counts of a session that the server's counters do not have yet. It
// holds one kind of request at a time, as clients mostly repeat themselves. So a
// pipelined batch of GETs costs three atomic additions, and an idle connection needs no
// table.
type tally struct {
	ids, requests int64
	index         int
	result        result
	// size is the bucket (sizeBucket) of the IDs asked for. sized counts the requests
	// in it.
	size  int
	sized int64
	// untimed counts the requests whose duration has not been measured yet.
	untimed int64
}

func (t *tally) add(s *session, index int, r result, n int64) {
	if t.index != index || t.result != r {
		s.fold()
		t.index, t.result = index, r
	}
	t.requests += n
	t.untimed += n
}

// issued counts requests that were answered with n IDs each.
func (t *tally) issued(s *session, n int, requests int64) {
	if b := sizeBucket(n); b != t.size {
		s.fold()
		t.size = b
	}
	t.sized += requests
	t.ids += int64(n) * requests
}

// fold adds the counts of the session to the server's counters. The engine calls it
// whenever it flushes.
func (s *session) fold() {
	t, c := &s.counts, &s.srv.counters
	if t.requests > 0 {
		c.requests[t.index][t.result].Add(t.requests)
		t.requests = 0
	}
	if t.ids > 0 {
		c.ids.Add(t.ids)
		c.sizes[t.size].Add(t.sized)
		t.ids, t.sized = 0, 0
	}
}

// measure counts the requests that have just been answered by their duration. It began at began.
func (s *session) measure(began int64) {
	if n := s.counts.untimed; n > 0 {
		s.counts.untimed = 0
		s.srv.counters.durations.add(s.srv.elapsed()-began, n)
	}
}

// Counters are the counts of a server since New. A connection adds its own when it
// flushes its output.
type Counters struct {
	// ConnsOpen is the number of connections that are being served, and ConnsTotal the
	// number of all that ever were. ConnsRefused counts connections over MaxConns,
	// which ConnsOpen and ConnsTotal leave out.
	ConnsOpen, ConnsTotal, ConnsRefused int64
	// ConnsIdle counts connections that IdleTimeout, FirstByteTimeout or AuthTimeout
	// closed. ConnsSlow counts those that WriteTimeout closed, because their client did
	// not read.
	ConnsIdle, ConnsSlow int64
	// ConnsBadTLS counts connections that were closed because of a failed TLS
	// handshake, or of a handshake at an address without TLS. Handshakes that took too long are in ConnsIdle.
	ConnsBadTLS int64
	// IDs is the number of IDs in replies, whether or not the client has read them.
	IDs int64
	// Sizes counts answered requests for IDs by the number of IDs in the reply. Its Sum
	// is IDs.
	Sizes Histogram
	// Durations counts requests by how long they took, in seconds.
	Durations Histogram
	// Requests has a row for each command's "OK", even if it is zero, and for each
	// error that has occurred. The rows are in the order of the command table.
	Requests []RequestCount
}

// RequestCount is the number of requests of a command that had one result.
type RequestCount struct {
	Command string // "GET"; "other" for non-commands
	Result  string // "OK" or the error's code
	N       int64
}

// Counters returns the current counts. They are read one after the other, so requests
// that are answered meanwhile may be in some of them only.
func (s *Server) Counters() Counters {
	c := &s.counters
	out := Counters{
		ConnsOpen: c.open.Load(), ConnsTotal: c.total.Load(), ConnsRefused: c.refused.Load(),
		ConnsIdle: c.idle.Load(), ConnsSlow: c.slow.Load(),
		ConnsBadTLS: c.badTLS.Load(), IDs: c.ids.Load(),
		Durations: c.durations.histogram(),
	}
	out.Sizes = histogram(c.sizes[:], func(i int) float64 { return float64(int64(1) << (2 * i)) }, float64(out.IDs))
	for i := range c.requests {
		name := "other"
		if i < len(s.table) {
			name = s.table[i].name
		}
		for r := range c.requests[i] {
			n := c.requests[i][r].Load()
			switch {
			case r > 0 && n > 0:
				out.Requests = append(out.Requests, RequestCount{name, string(replies.Codes[r-1].Code), n})
			case r == 0 && i < len(s.table):
				out.Requests = append(out.Requests, RequestCount{name, "OK", n})
			}
		}
	}
	return out
}

// Each calls f with the counts one by one, named as in STATS: conns_open, ids,
// requests_get_ok. It leaves out the histograms.
func (c Counters) Each(f func(name string, n int64)) {
	f("conns_open", c.ConnsOpen)
	f("conns_total", c.ConnsTotal)
	f("conns_refused", c.ConnsRefused)
	f("conns_idle_closed", c.ConnsIdle)
	f("conns_slow_closed", c.ConnsSlow)
	f("conns_bad_tls", c.ConnsBadTLS)
	f("ids", c.IDs)
	for _, r := range c.Requests {
		f("requests_"+strings.ToLower(r.Command+"_"+r.Result), r.N)
	}
}
