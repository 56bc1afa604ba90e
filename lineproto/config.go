package lineproto

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Defaults of Config.
const (
	DefaultMaxConns         = 10_000
	DefaultMaxBatch         = 10_000
	DefaultIdleTimeout      = 10 * time.Minute
	DefaultFirstByteTimeout = 5 * time.Second
	DefaultAuthTimeout      = 30 * time.Second
	DefaultWriteTimeout     = 5 * time.Second
	DefaultDrainTimeout     = 5 * time.Second
)

// maxMaxBatch bounds the reservations one GET n can hold: 24 MB if a Backend
// hands out single IDs, and a quarter of a second's IDs of the default layout.
const maxMaxBatch = 1_000_000

// minTimeout is a floor for what is certainly a mistake (a bare number taken
// for seconds is nanoseconds) and for the resolution of the sweep.
const minTimeout = 10 * time.Millisecond

// Config is what New needs. The zero value of every field but Backend is usable.
type Config struct {
	// Backend answers the requests. It must be given.
	Backend Backend
	// Authenticate tells whether a token is a good one, in a time that does not
	// depend on what is wrong with it. It is called from many goroutines at
	// once. nil means that no token is asked for, and AUTH is answered with OK
	// whatever it brings. A connection that has brought a good one stays good.
	Authenticate func(token []byte) bool
	// MaxConns is how many connections are open at once over all listeners, at
	// least 1; one more is told BUSY and closed. 0 means 10,000. The process
	// needs 256 descriptors beyond it for connections that are being refused.
	MaxConns int
	// MaxBatch is the most IDs of one request: the greatest n of GET n, or of
	// GET key COUNT n in RESP, and the most keys of an MGET. 1 to 1,000,000. 0
	// means 10,000.
	MaxBatch int
	// IdleTimeout closes a connection that was sent no reply for so long.
	// 0 means 10 minutes; there is no "never".
	IdleTimeout time.Duration
	// FirstByteTimeout closes a connection that has sent nothing for so long
	// after it was made, if more than half of MaxConns were open then. It must
	// not exceed IdleTimeout. 0 means 5 seconds, or IdleTimeout if that is less.
	FirstByteTimeout time.Duration
	// AuthTimeout closes a connection that has brought no good token for so long
	// after it was made, where Authenticate asks for one: FirstByteTimeout if
	// that is less and more than half of MaxConns were open then. It must not
	// exceed IdleTimeout. 0 means 30 seconds, or IdleTimeout if that is less.
	AuthTimeout time.Duration
	// WriteTimeout closes a connection whose client takes longer than this to
	// read 16 KiB of replies. 0 means 5 seconds.
	WriteTimeout time.Duration
	// DrainTimeout bounds the end of Serve: connections that have not been
	// answered by then are cut. 0 means 5 seconds.
	DrainTimeout time.Duration
	// Engine is how connections are served. 0 (Auto) means event loops on
	// Linux, and goroutines elsewhere and for connections that are not plain
	// TCP or unix sockets.
	Engine Engine
	// Loops is how many event loops each listener has, 1 to 64. 0 means 1.
	Loops int
	// Spin is how long a loop with nothing to do looks for requests before it
	// sleeps, at most 1 ms: some 30 microseconds less latency for a core that
	// is always busy. 0 means not at all.
	Spin time.Duration
	// Measure keeps count of how long requests take: Counters.Durations. It
	// costs reading a clock now and then; see measureEvery.
	Measure bool
	// AdminHint is a sentence for the answer to an HTTP request: "the HTTP
	// admin port is 127.0.0.1:7610". Empty means that no port is named.
	AdminHint string
	// Logger gets a line for each change of state, none for each request. nil
	// means that nothing is logged.
	Logger hclog.Logger
}

// Engine is a way to serve connections.
type Engine uint8

const (
	Auto       Engine = iota
	EventLoops        // an error where there are none
	Goroutines        // one for each connection
)

// Limits of Config.
const (
	MaxLoops = 64
	MaxSpin  = time.Millisecond
)

// withDefaults fills in what is zero and checks the rest.
func (c Config) withDefaults() (Config, error) {
	if c.Backend == nil {
		return c, errors.New("lineproto: Config.Backend is nil")
	}
	if c.MaxConns == 0 {
		c.MaxConns = DefaultMaxConns
	}
	if c.MaxBatch == 0 {
		c.MaxBatch = DefaultMaxBatch
	}
	if c.MaxConns < 0 {
		return c, fmt.Errorf("lineproto: Config.MaxConns is %d, must be at least 1", c.MaxConns)
	}
	if c.MaxBatch < 0 || c.MaxBatch > maxMaxBatch {
		return c, fmt.Errorf("lineproto: Config.MaxBatch is %d, must be 1 to %d", c.MaxBatch, maxMaxBatch)
	}
	if c.Loops == 0 {
		c.Loops = 1
	}
	if c.Engine > Goroutines {
		return c, fmt.Errorf("lineproto: Config.Engine is %d, there is none such", c.Engine)
	}
	if c.Loops < 0 || c.Loops > MaxLoops {
		return c, fmt.Errorf("lineproto: Config.Loops is %d, must be 1 to %d", c.Loops, MaxLoops)
	}
	if c.Spin < 0 || c.Spin > MaxSpin {
		return c, fmt.Errorf("lineproto: Config.Spin is %v, must be 0 to %v", c.Spin, MaxSpin)
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = DefaultIdleTimeout
	}
	if c.FirstByteTimeout == 0 {
		c.FirstByteTimeout = min(DefaultFirstByteTimeout, c.IdleTimeout)
	}
	if c.AuthTimeout == 0 {
		c.AuthTimeout = min(DefaultAuthTimeout, c.IdleTimeout)
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = DefaultWriteTimeout
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = DefaultDrainTimeout
	}
	for _, t := range []struct {
		name string
		d    time.Duration
	}{
		{"IdleTimeout", c.IdleTimeout}, {"FirstByteTimeout", c.FirstByteTimeout},
		{"AuthTimeout", c.AuthTimeout}, {"WriteTimeout", c.WriteTimeout}, {"DrainTimeout", c.DrainTimeout},
	} {
		if t.d < minTimeout {
			return c, fmt.Errorf("lineproto: Config.%s is %v, must be at least %v", t.name, t.d, minTimeout)
		}
	}
	if c.FirstByteTimeout > c.IdleTimeout {
		return c, fmt.Errorf("lineproto: Config.FirstByteTimeout (%v) exceeds IdleTimeout (%v)", c.FirstByteTimeout, c.IdleTimeout)
	}
	if c.AuthTimeout > c.IdleTimeout {
		return c, fmt.Errorf("lineproto: Config.AuthTimeout (%v) exceeds IdleTimeout (%v)", c.AuthTimeout, c.IdleTimeout)
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	c.Logger = c.Logger.Named("lineproto")
	return c, nil
}
