package admin

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/atomic"

	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/node"
	"github.com/flaked/flaked/worker"
)

// Config is what New needs. Ready, Workers, Counters, Reserve and Slots are
// required.
type Config struct {
	// Ready is nil when GET would be answered with an ID, else the reason why
	// not. It is called from many goroutines at once and must not block.
	Ready func() error
	// Live is nil while the process does its work, else the reason why it is to
	// be killed and started again. It must not depend on ZooKeeper: a restart
	// mends nothing there, and all nodes would be restarted at once. nil means
	// that a process that answers is alive.
	Live func() error
	// Workers are the states of this process's workers. It is called as Ready is.
	Workers func() []node.Snapshot
	// Counters are what the line protocol has done.
	Counters func() lineproto.Counters
	// Reserve takes between 1 and n IDs, as lineproto.Backend's does.
	Reserve func(ctx context.Context, n int) (worker.Run, error)
	// MaxBatch is the most IDs of one request; 0 means 10,000.
	MaxBatch int
	// Slots reads the cluster's workers from ZooKeeper. It is called by one
	// goroutine, every 15 s at most.
	Slots func(context.Context) (Slots, error)
	// Authenticate tells whether a token is a good one, and is asked for
	// everything but probes and metrics. nil means that no token is needed.
	Authenticate func(token []byte) bool
	// Closed, where no token is asked for, is why nothing but probes and metrics
	// is answered. Empty: it is.
	Closed string
	// Loopback, where no token is asked for either, answers only what is asked for
	// by a name of this machine: localhost, 127.0.0.1.
	Loopback bool
	// Pprof serves profiles of the process.
	Pprof bool
	// Events are shown in the status document; nil means that there are none.
	Events *Events
	// About is what the process says of itself. An empty Version means that no
	// Server header is sent.
	About About
	// Logger gets a line when serving begins and ends, and for what goes wrong
	// in net/http; none for each request. nil means that nothing is logged.
	Logger hclog.Logger
}

// A request is small and its reply not large: whatever takes longer than these
// is broken or means harm. What streams sets a write deadline of its own. Nobody
// needs an idle connection: to connect again takes less than a millisecond.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 10 * time.Second
	idleTimeout       = 5 * time.Second
	maxHeaderBytes    = 16 << 10
	// drainTimeout is how long requests that are being answered may take when
	// the server ends.
	drainTimeout = 2 * time.Second
)

// Server answers HTTP requests. Make it with New.
type Server struct {
	cfg Config
	log hclog.Logger

	slots    *slots
	pages    page
	answers  *places
	waits    *places
	requests httpRequests
	made     atomic.Int64 // IDs
}

// New validates the configuration. It does no I/O.
func New(cfg Config) (*Server, error) {
	if cfg.Ready == nil || cfg.Workers == nil || cfg.Counters == nil || cfg.Reserve == nil || cfg.Slots == nil {
		return nil, errors.New("admin: Config.Ready, Workers, Counters, Reserve or Slots is nil")
	}
	if cfg.MaxBatch == 0 {
		cfg.MaxBatch = lineproto.DefaultMaxBatch
	}
	if cfg.Events == nil {
		cfg.Events = NewEvents(nil)
	}
	if cfg.Live == nil {
		cfg.Live = func() error { return nil }
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	s := &Server{cfg: cfg, log: cfg.Logger.Named("admin"), slots: newSlots(cfg.Slots), answers: newPlaces(maxAnswers, answersWait), waits: newPlaces(maxWaits, answersWait)}
	s.pages.past, s.pages.streams = new(past), newPlaces(maxStreams, 0)
	s.slots.noted = s.pages.past.noteClocks
	return s, nil
}

// httpLog is for what goes wrong with one request: anybody can have that happen
// as often as they like.
func (s *Server) httpLog() *log.Logger {
	return log.New(s.log.StandardWriter(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}), "", 0)
}

// Serve answers requests on l until ctx is done, then lets those that are
// being answered finish for two seconds and cuts the rest. It closes l, and
// returns nil after an end that was asked for. It may be called once for each
// of several listeners.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		// What streams ends when the server does.
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: withConn,
		ErrorLog:    s.httpLog(),
	}
	s.log.Info("serving HTTP", "address", l.Addr().String())
	var reading sync.WaitGroup
	defer reading.Wait()
	readCtx, stopReading := context.WithCancel(ctx)
	defer stopReading()
	reading.Go(func() { s.slots.run(readCtx) })
	reading.Go(func() { s.remember(readCtx) })
	served := make(chan error, 1)
	go func() { served <- srv.Serve(newConns(l, maxConns)) }()
	select {
	case err := <-served:
		_ = srv.Close() // the listener broke: nobody is to wait for its connections
		return fmt.Errorf("admin: %w", err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	err := srv.Shutdown(drain)
	if err != nil {
		_ = srv.Close()
	}
	<-served
	s.log.Info("stopped serving HTTP", "address", l.Addr().String(), "cut", err != nil)
	return nil
}
