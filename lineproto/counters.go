package lineproto

import (
	"strings"

	"go.uber.org/atomic"
)

// result of a request, as it is counted: resultOK, or an error's code plus one.
type result uint8

const (
	resultOK   result = 0
	numResults        = 1 + numCodes
)

func resultOf(e *Error) result { return 1 + result(e.Code.known()) }

// counters are a server's, over all of its listeners since New.
type counters struct {
	open, total, refused, idle, slow, badTLS atomic.Int64

	ids       atomic.Int64
	sizes     [numSizes]atomic.Int64 // answered requests for IDs, by how many
	durations durations
	requests  [][numResults]atomic.Int64 // by row of the command table, then bad ones
}

// tally is what a session has counted and not yet added to the server's
// counters. It holds one kind of request, which is how traffic comes; so a
// pipelined batch of GETs costs two atomic additions and an idle connection
// no table of its own.
type tally struct {
	ids, requests int64
	index         int
	result        result
	size          int   // bucket of what was asked for
	sized         int64 // how often
	untimed       int64 // requests since the last that took measured
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

// fold adds what the session has counted to the server's counters. The engine
// calls it whenever it flushes.
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

// Counters are what a server has done since New. Connections in the midst of
// a batch add theirs when they flush it.
type Counters struct {
	// ConnsOpen is how many connections are being served now; ConnsTotal how
	// many ever were, not counting ConnsRefused, those over MaxConns.
	ConnsOpen, ConnsTotal, ConnsRefused int64
	// ConnsIdle were closed by IdleTimeout or FirstByteTimeout, ConnsSlow
	// because their client did not read its replies (WriteTimeout).
	ConnsIdle, ConnsSlow int64
	// ConnsBadTLS were closed as their TLS handshake failed.
	ConnsBadTLS int64
	// IDs is how many IDs were given in answers, read by the client or not.
	IDs int64
	// Sizes are answered requests for IDs by how many they were answered with.
	// Its Sum is IDs.
	Sizes Histogram
	// Durations are in seconds; empty without Config.Measure.
	Durations Histogram
	// Requests has a row for each command's "OK", zero or not, and for each
	// error that there was, in the order of HELP.
	Requests []RequestCount
}

// RequestCount is how many requests of a command came to a result.
type RequestCount struct {
	Command string // "GET"; "other" for what is no command
	Result  string // "OK" or the error's code
	N       int64
}

// Counters returns a snapshot; its numbers are read one after the other.
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
				out.Requests = append(out.Requests, RequestCount{name, Code(r - 1).String(), n})
			case r == 0 && i < len(s.table):
				out.Requests = append(out.Requests, RequestCount{name, "OK", n})
			}
		}
	}
	return out
}

// Each calls f with the counters one by one, named as in STATS: conns_open,
// ids, requests_get_ok.
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
