package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// Framing is the format of requests and replies.
type Framing string

const (
	Plain  Framing = "plain"  // lines out, lines back
	RESP   Framing = "resp"   // arrays out, RESP values back
	Inline Framing = "inline" // lines out, RESP values back: Redis's inline commands
)

// Limits of a Config.
const (
	MaxConns    = 60_000
	MaxPipeline = 10_000
	MaxBatch    = 1_000_000
	MaxThreads  = 64
)

// Config describes a load.
type Config struct {
	// Network and Address are those of net.Dial.
	Network, Address string
	// Dial opens a connection that is ready for requests. It is for servers that need a
	// handshake or a password. nil means net.Dial. If a connection is neither a plain
	// TCP nor a unix one, goroutines serve all of them.
	Dial func(ctx context.Context) (net.Conn, error)

	// Conns is the number of connections. 0 means 1.
	Conns int
	// Pipeline is how many requests a connection may have under way. A closed loop sends
	// that many at once and then waits for all replies. 0 means 1.
	Pipeline int
	// Batch is the number of IDs of a request: GET n, or GET id COUNT n in RESP. 0 and 1
	// mean a plain GET.
	Batch int
	// Threads is the number of event loops, at most Conns. 0 means 1.
	Threads int

	// Framing is Plain if it is empty.
	Framing Framing
	// Command is sent instead of GET, to measure other servers. Each request gets one
	// reply, of any kind. Check has no effect then. Empty means GET.
	Command string
	// Check turns on the check of IDs: no ID twice, increasing on each connection.
	Check bool

	// Rate is how many requests are due in a second, over all connections (open loop).
	// 0 means a closed loop: a connection sends again when it has all replies.
	Rate float64
	// Warmup is how long the load runs before it is measured. 0 means that it is
	// measured from the start.
	Warmup time.Duration
	// Duration is how long the load is measured. It is required.
	Duration time.Duration
	// Timeout is how long a connection waits for replies without getting any. 0 means
	// five seconds.
	Timeout time.Duration
	// Spin is how long an event loop polls before it sleeps. The time that the
	// generator needs to wake up is then in no latency, and its core is busy. 0 means
	// no polling.
	Spin time.Duration

	// PID is the server's process on this machine, whose CPU time and memory are read.
	// 0 means none.
	PID int
	// OnProgress is called with the progress four times a second, unless it is nil.
	OnProgress func(Progress)

	goroutines bool // for tests: no event loop
}

// Progress holds the counts of a run so far.
type Progress struct {
	Elapsed, Total time.Duration // without the warm-up
	WarmingUp      bool
	// Since the start, the warm-up included.
	Replies, IDs, Errors, Violations int64
}

// complete replaces zero fields by their defaults, and returns an error for fields that
// are out of range.
func (c Config) complete() (Config, error) {
	c.Conns, c.Pipeline, c.Batch = cmp.Or(c.Conns, 1), cmp.Or(c.Pipeline, 1), cmp.Or(c.Batch, 1)
	c.Threads = min(cmp.Or(c.Threads, 1), c.Conns)
	c.Timeout = cmp.Or(c.Timeout, 5*time.Second)
	c.Framing = cmp.Or(c.Framing, Plain)
	for _, l := range []struct {
		name     string
		value, m int
	}{
		{"connections", c.Conns, MaxConns}, {"pipeline", c.Pipeline, MaxPipeline},
		{"IDs per request", c.Batch, MaxBatch}, {"threads", c.Threads, MaxThreads},
	} {
		if l.value < 1 || l.value > l.m {
			return c, fmt.Errorf("%s must be 1 to %d, got %d", l.name, l.m, l.value)
		}
	}
	switch {
	case c.Framing != Plain && c.Framing != RESP && c.Framing != Inline:
		return c, fmt.Errorf("%q is not plain, resp or inline", c.Framing)
	case c.Duration <= 0:
		return c, fmt.Errorf("duration must be positive, got %s", c.Duration)
	case c.Warmup < 0 || c.Timeout < 0 || c.Spin < 0:
		return c, errors.New("warm-up, timeout and spin must not be negative")
	case !(c.Rate >= 0 && c.Rate <= 1e9): // NaN too
		return c, fmt.Errorf("rate must be 0 to 1e9 a second, got %v", c.Rate)
	case strings.ContainsAny(c.Command, "\r\n\x00"):
		return c, errors.New("command must be one line")
	case c.Command != "" && strings.TrimSpace(c.Command) == "":
		return c, errors.New("command must not be blank")
	case c.Command != "" && c.Batch > 1:
		return c, errors.New("batch needs GET and cannot be used with a command")
	case c.Command == "" && c.Framing == Inline:
		return c, errors.New("inline needs a command")
	}
	if c.Command != "" {
		c.Check = false
	}
	if c.Dial == nil {
		network, address := c.Network, c.Address
		c.Dial = func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, network, address) }
	}
	return c, nil
}

// request returns the bytes of one request.
func (c Config) request() []byte {
	words := []string{"GET"}
	switch {
	case c.Batch > 1 && c.Framing == RESP: // here GET's first argument is a key
		words = append(words, "id", "COUNT", fmt.Sprint(c.Batch))
	case c.Batch > 1:
		words = append(words, fmt.Sprint(c.Batch))
	}
	ending := "\n"
	if c.Command != "" {
		// The documents of other servers end lines in CRLF, and some servers accept
		// nothing else.
		words, ending = strings.Fields(c.Command), "\r\n"
	}
	if c.Framing != RESP {
		if c.Command != "" {
			return []byte(c.Command + ending)
		}
		return []byte(strings.Join(words, " ") + ending)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return []byte(b.String())
}
