package client

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/dialog"
)

// Defaults of Config.
const (
	defaultAddr     = "127.0.0.1:" + dialog.DefaultPort // 127.0.0.1:7609
	defaultConns    = 2
	defaultTimeout  = time.Second
	defaultPatience = 5 * time.Second
	defaultMaxBatch = 1000
	defaultMaxAge   = time.Second
)

// Limits of Config.
const (
	maxConns    = 64
	maxPrefetch = 100_000
)

// Config configures New. The zero Config uses the node at 127.0.0.1:7609.
type Config struct {
	// Addrs are nodes of one cluster: host:port, host alone (port 7609) or unix:/path.
	// The first one is asked as long as it answers, then the next, and the first again
	// once it answers. Put a sidecar first. Empty means 127.0.0.1:7609.
	Addrs []string
	// Spread asks the nodes in turn, instead of the first that answers. IDs of one node
	// increase from call to call. IDs of several nodes are ordered only as far as their
	// clocks agree.
	Spread bool
	// TLS is used for TCP. Unix sockets are always plain. nil means plain TCP. An empty
	// ServerName means the host of the address.
	TLS *tls.Config
	// Cluster is the name or the UUID of the nodes' cluster. Empty means that of the first node that answers this
	// Client. A node of another cluster counts as failed. Each new connection is asked, in one packet with its first
	// request. If Cluster is empty, the first call also asks all other addresses, for 500 ms at most. If they belong
	// to two clusters, all calls fail.
	Cluster string
	// Token is sent to every node. Empty means none.
	Token string

	// Conns is the most connections to one node for IDs, and the most for values of sequences, 1 to 64. Each has up to
	// 64 requests under way. A probe of a failed node uses one more for a moment. Requests for ordered
	// sequences that wait for more than 50 ms, such as for another owner, do not count up to 64.
	// 0 means 2: a second connection serves short calls while a long Take uses the first. A call for a sequence may
	// wait for ZooKeeper on its connection: a program with strict sequences and others needs more, or a client for each
	// kind.
	Conns int
	// Timeout is how long one node has to answer before the next is asked. While another
	// node is healthy, a node has at most half of the time that a call has left. If there
	// are other nodes, but none is healthy, it has at most all of that time. It always has
	// 25 ms, or Timeout if that is less. 0 means 1 second. At least 1 ms.
	Timeout time.Duration
	// Patience is the time limit of a call whose context has no deadline. 0 means
	// 5 seconds. At least 1 ms.
	Patience time.Duration
	// MaxBatch is the most IDs of one request, 1 to 10,000, the limit of a node.
	// 0 means 1,000.
	MaxBatch int

	// Prefetch is how many IDs are requested in advance, so that Next need not wait: up to
	// 100,000. 0 means none. The package documentation says what prefetching costs.
	Prefetch int
	// MaxAge is how long a prefetched ID may be kept before it is discarded, from the
	// moment when it was requested. 0 means 1 second. At least 1 ms.
	MaxAge time.Duration

	// Logger gets a line when a node is marked unhealthy and when it is healthy again, and
	// none for single IDs. nil means that nothing is logged.
	Logger *slog.Logger
}

// withDefaults replaces zero values by defaults, and checks all others.
func (c Config) withDefaults() (Config, error) {
	if len(c.Addrs) == 0 {
		c.Addrs = []string{defaultAddr}
	}
	for _, n := range []struct {
		name  string
		value *int
		def   int
		min   int
		max   int
	}{
		{"Conns", &c.Conns, defaultConns, 1, maxConns},
		{"MaxBatch", &c.MaxBatch, defaultMaxBatch, 1, 10_000},
		{"Prefetch", &c.Prefetch, 0, 0, maxPrefetch},
	} {
		*n.value = cmp.Or(*n.value, n.def)
		if *n.value < n.min || *n.value > n.max {
			return c, fmt.Errorf("client: Config.%s is %d, must be %d to %d", n.name, *n.value, n.min, n.max)
		}
	}
	for _, t := range []struct {
		name  string
		value *time.Duration
		def   time.Duration
	}{
		{"Timeout", &c.Timeout, defaultTimeout},
		{"Patience", &c.Patience, defaultPatience},
		{"MaxAge", &c.MaxAge, defaultMaxAge},
	} {
		*t.value = cmp.Or(*t.value, t.def)
		// A value below 1 ms is most likely a bare number meant as seconds.
		if *t.value < time.Millisecond {
			return c, fmt.Errorf("client: Config.%s is %v, must be at least 1ms", t.name, *t.value)
		}
	}
	if strings.ContainsAny(c.Token, " \t\r\n") || len(c.Token) > 256 {
		return c, errors.New("client: Config.Token must be 1 to 256 printable characters without blanks")
	}
	if err := dialog.CheckCluster(c.Cluster); err != nil {
		return c, fmt.Errorf("client: Config.Cluster %w", err)
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c, nil
}
