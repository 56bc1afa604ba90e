package lineproto

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/flaked/flaked/sequence"
)

// MaxBatch is the most IDs or values of one request: n of GET n, of GET key COUNT n in RESP and of
// NEXT name n, and the keys of an MGET.
const MaxBatch = 10_000

// minTimeout is the shortest timeout that is accepted. A shorter one is a mistake: a
// bare number meant as seconds is nanoseconds. The sweeper could not keep to it either.
const minTimeout = 10 * time.Millisecond

// Config configures a Server. The zero value of every field but Backend is usable. Other time limits than 0 must be at
// least 10 ms.
type Config struct {
	// Backend answers the requests. It is required.
	Backend Backend
	// Sequences serves named sequences. nil means that the node serves none.
	Sequences Sequences
	// Status returns the reply to STATUS: the state of the node as JSON, in one line. With peers, it names the nodes
	// that this one has met. It must be safe for concurrent use and must not block. nil means that STATUS is an
	// unknown command.
	Status func(peers bool) string
	// Authenticate reports whether a token is valid, in a time that does not depend on
	// the error in it, and returns the sequences that the client may use. It must be safe
	// for concurrent use. A connection that has sent a valid token stays authenticated and
	// keeps these rights. nil means that clients need no token, and AUTH
	// with any token is answered with OK.
	Authenticate func(token []byte) (rights *sequence.Rights, ok bool)
	// MaxConns is how many connections may be open at once over all listeners, at least
	// 1. Further ones are told BUSY and closed. 0 means 10,000. For connections that
	// are being refused, the process needs up to 256 descriptors more.
	MaxConns int
	// IdleTimeout closes connections that have been sent no reply for this long, the longest
	// idle ones first, while more than half of MaxConns are open or unfinished requests use
	// more than half of their memory. 0 means 10 minutes.
	IdleTimeout time.Duration
	// FirstByteTimeout closes a connection that has sent nothing for this long after it
	// was accepted, if more than half of MaxConns were open then. It also bounds every
	// TLS handshake. 0 means 5 seconds.
	FirstByteTimeout time.Duration
	// AuthTimeout closes a connection that has sent no valid token this long after it
	// was accepted, if Authenticate is set. If more than half of MaxConns were open
	// then, the lesser of AuthTimeout and FirstByteTimeout applies. 0 means 30 seconds.
	AuthTimeout time.Duration
	// WriteTimeout closes a connection whose client takes longer than this to
	// read 32 KiB of replies. 0 means 5 seconds.
	WriteTimeout time.Duration
	// DrainTimeout bounds the end of Serve: connections that have not been answered
	// when it has passed are cut. 0 means 5 seconds.
	DrainTimeout time.Duration
	// Goroutines makes a goroutine serve each connection. false means an event loop on Linux, and
	// goroutines elsewhere and for connections that are not plain TCP or unix sockets.
	Goroutines bool
	// AdminHint is a sentence for the answer to an HTTP request: "the HTTP admin port
	// is 127.0.0.1:7610". Empty means that the answer names no port.
	AdminHint string
	// Logger gets a line for each change of state, none for each request. nil
	// means that nothing is logged.
	Logger hclog.Logger
}

// withDefaults replaces zero fields by their defaults and checks the others.
func (c Config) withDefaults() (Config, error) {
	if c.Backend == nil {
		return c, errors.New("Config.Backend is required")
	}
	c.MaxConns = cmp.Or(c.MaxConns, 10_000)
	if c.MaxConns < 0 {
		return c, fmt.Errorf("Config.MaxConns is %d, must be at least 1", c.MaxConns)
	}
	for _, limit := range []struct {
		name     string
		value    *time.Duration
		fallback time.Duration
	}{
		{"IdleTimeout", &c.IdleTimeout, 10 * time.Minute},
		{"FirstByteTimeout", &c.FirstByteTimeout, 5 * time.Second},
		{"AuthTimeout", &c.AuthTimeout, 30 * time.Second},
		{"WriteTimeout", &c.WriteTimeout, 5 * time.Second},
		{"DrainTimeout", &c.DrainTimeout, 5 * time.Second},
	} {
		*limit.value = cmp.Or(*limit.value, limit.fallback)
		if *limit.value < minTimeout {
			return c, fmt.Errorf("time limit Config.%s is %v, must be at least %v", limit.name, *limit.value,
				minTimeout)
		}
	}
	c.Logger = cmp.Or(c.Logger, hclog.NewNullLogger()).Named("lineproto")
	return c, nil
}
