package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// Framing is how requests and replies look.
type Framing string

// The framings.
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

// Config is the load to make.
type Config struct {
	// Network and Address are as of net.Dial.
	Network, Address string
	// Dial opens a connection that is ready for requests, where more than
	// connecting is needed: a handshake, a password. nil: net.Dial. What is
	// neither a TCP nor a unix connection is served by goroutines.
	Dial func(ctx context.Context) (net.Conn, error)

	Conns    int // 0: 1
	Pipeline int // requests sent in one go before their replies are waited for. 0: 1
	Batch    int // IDs a request: GET n, in RESP GET id COUNT n. 0: 1, a plain GET
	Threads  int // event loops. 0: 1

	Framing Framing // "": Plain
	// Command is sent instead of GET, to measure other servers. Each request is
	// one reply, of any kind; there are no IDs to check. "": GET.
	Command string
	// Check has IDs looked at: no ID twice, increasing on each connection.
	Check bool

	// Rate is how many requests are due in a second, over all connections. 0: as
	// many as are answered.
	Rate float64
	// Warmup is how long the load runs before it is measured. 0: not at all.
	Warmup time.Duration
	// Duration is how long it is measured. It has no default.
	Duration time.Duration
	// Timeout is how long a reply is waited for. 0: 5 s.
	Timeout time.Duration
	// Spin is how long an event loop polls before it sleeps: the generator's own
	// waking up then is in no latency, and its core is busy. 0: it sleeps at once.
	Spin time.Duration

	// PID is a process on this machine, the server's, whose processor time and
	// memory are read. 0: none.
	PID int
	// OnProgress is told how far it is, four times a second. nil: nobody is.
	OnProgress func(Progress)

	goroutines bool // for tests: no event loop
}

// Progress is how far a run is.
type Progress struct {
	Elapsed, Total time.Duration // without the warm-up
	WarmingUp      bool
	// Since the start, the warm-up included.
	Replies, IDs, Errors, Violations int64
}

// complete fills in defaults, and tells what is wrong.
func (c Config) complete() (Config, error) {
	for _, d := range []struct {
		field *int
		value int
	}{{&c.Conns, 1}, {&c.Pipeline, 1}, {&c.Batch, 1}, {&c.Threads, 1}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.Timeout == 0 {
		c.Timeout = 5 * time.Second
	}
	if c.Framing == "" {
		c.Framing = Plain
	}
	c.Threads = min(c.Threads, c.Conns)
	for _, l := range []struct {
		name     string
		value, m int
	}{
		{"connections", c.Conns, MaxConns}, {"a pipeline", c.Pipeline, MaxPipeline},
		{"IDs a request", c.Batch, MaxBatch}, {"threads", c.Threads, MaxThreads},
	} {
		if l.value < 1 || l.value > l.m {
			return c, fmt.Errorf("load: %d is no number of %s: 1 to %d", l.value, l.name, l.m)
		}
	}
	switch {
	case c.Framing != Plain && c.Framing != RESP && c.Framing != Inline:
		return c, fmt.Errorf("load: %q is not plain, resp or inline", c.Framing)
	case c.Duration <= 0:
		return c, fmt.Errorf("load: a duration of %s", c.Duration)
	case c.Warmup < 0 || c.Timeout < 0 || c.Spin < 0:
		return c, errors.New("load: a time below zero")
	case !(c.Rate >= 0 && c.Rate <= 1e9): // NaN too
		return c, fmt.Errorf("load: a rate of %v a second", c.Rate)
	case strings.ContainsAny(c.Command, "\r\n\x00"):
		return c, errors.New("load: a command is one line")
	case c.Command != "" && strings.TrimSpace(c.Command) == "":
		return c, errors.New("load: a command of blanks")
	case c.Command != "" && c.Batch > 1:
		return c, errors.New("load: a batch is of GET, not of another command")
	case c.Command == "" && c.Framing == Inline:
		return c, errors.New("load: inline is for a command: a node answers lines in lines")
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

// request is the bytes of one request.
func (c Config) request() []byte {
	words := []string{"GET"}
	switch {
	case c.Batch > 1 && c.Framing == RESP: // where GET's first argument is a key
		words = append(words, "id", "COUNT", fmt.Sprint(c.Batch))
	case c.Batch > 1:
		words = append(words, fmt.Sprint(c.Batch))
	}
	ending := "\n"
	if c.Command != "" {
		// Other servers' documents end lines in both, and some take nothing else.
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
