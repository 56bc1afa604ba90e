package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/credentials"
)

// Defaults of Config.
const (
	DefaultAddr     = "127.0.0.1:" + credentials.DefaultPort
	DefaultConns    = 2
	DefaultTimeout  = time.Second
	DefaultPatience = 5 * time.Second
	DefaultMaxBatch = 1000
	DefaultMaxAge   = time.Second
)

// Limits of Config and of Take.
const (
	MaxConns    = 64
	MaxPrefetch = 100_000
	MaxTake     = 1_000_000
)

// Config is what New needs. The zero Config is for a node on this machine,
// where nodes listen by default.
type Config struct {
	// Addrs are nodes of one cluster: host:port, host alone (port 7609) or
	// unix:/path. The first is asked as long as it answers, then the next, and
	// the first again once it does: put a sidecar first and the others behind.
	// Empty means DefaultAddr.
	Addrs []string
	// Spread asks the nodes in turn, rather than the first that answers. IDs of
	// one node grow from call to call, those of several only as their clocks agree.
	Spread bool
	// TLS is for TCP; unix sockets are always plain. nil means plain TCP. An
	// empty ServerName means the host of the address.
	TLS *tls.Config
	// Token is brought to every node. Empty means none.
	Token string

	// Conns is how many connections there are to a node at most, 1 to 64: so many
	// requests are on the way at once. 0 means 2: one, and another for when a long
	// Take has the first.
	Conns int
	// Timeout is how long one node is given to answer before the next is asked:
	// half of the time that a call has left, if that is less, but at least 25 ms.
	// 0 means 1 second.
	Timeout time.Duration
	// Patience bounds a call whose context has no deadline. 0 means 5 seconds.
	Patience time.Duration
	// MaxBatch is how many IDs one request asks for at most, 1 to 10,000. It must
	// not exceed --max-batch of the nodes. 0 means 1,000.
	MaxBatch int

	// Prefetch is how many IDs are asked for ahead, so that Next need not wait:
	// up to 100,000. 0 means none. See the package's documentation for what it costs.
	Prefetch int
	// MaxAge is how long an ID that was asked for ahead may be kept before it is
	// thrown away. 0 means 1 second.
	MaxAge time.Duration

	// Logger gets a line when a node goes out of use or comes back, none for an
	// ID. nil means that nothing is logged.
	Logger *slog.Logger
}

// withDefaults fills in what is zero and checks the rest.
func (c Config) withDefaults() (Config, error) {
	if len(c.Addrs) == 0 {
		c.Addrs = []string{DefaultAddr}
	}
	for _, n := range []struct {
		name  string
		value *int
		def   int
		min   int
		max   int
	}{
		{"Conns", &c.Conns, DefaultConns, 1, MaxConns},
		{"MaxBatch", &c.MaxBatch, DefaultMaxBatch, 1, 10_000},
		{"Prefetch", &c.Prefetch, 0, 0, MaxPrefetch},
	} {
		if *n.value == 0 {
			*n.value = n.def
		}
		if *n.value < n.min || *n.value > n.max {
			return c, fmt.Errorf("client: Config.%s is %d, must be %d to %d", n.name, *n.value, n.min, n.max)
		}
	}
	for _, t := range []struct {
		name  string
		value *time.Duration
		def   time.Duration
	}{
		{"Timeout", &c.Timeout, DefaultTimeout},
		{"Patience", &c.Patience, DefaultPatience},
		{"MaxAge", &c.MaxAge, DefaultMaxAge},
	} {
		if *t.value == 0 {
			*t.value = t.def
		}
		// A bare number taken for seconds is nanoseconds.
		if *t.value < time.Millisecond {
			return c, fmt.Errorf("client: Config.%s is %v, must be at least 1ms", t.name, *t.value)
		}
	}
	if strings.ContainsAny(c.Token, " \t\r\n") || len(c.Token) > 256 {
		return c, errors.New("client: Config.Token is no token: that is 1 to 256 printable characters without blanks")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}
