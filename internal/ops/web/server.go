package web

import (
	"context"
	"crypto/tls"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// Config configures New. Of returns one for a node, which the program completes. Its functions are called from many
// goroutines at once and must not block, but for Reserve and Slots.
type Config struct {
	// Ready returns nil if READY gets OK, and otherwise the error that it gets. A node that drains or waits for named
	// sequences is not ready, and still answers GET.
	Ready func() error
	// Live returns nil while the process works, and otherwise the reason to kill and
	// restart it. It must not depend on ZooKeeper: a restart cannot fix ZooKeeper, and all
	// nodes would be restarted at once.
	Live func() error
	// Node returns the state of the node.
	Node func() node.Snapshot
	// Met returns the other nodes that this one has met. nil: none.
	Met func() []coordinator.Peer
	// Counters returns the counters of the line protocol.
	Counters func() lineproto.Counters
	// Reserve takes between 1 and n IDs, like lineproto.Backend.Reserve.
	Reserve func(ctx context.Context, n int) (worker.Run, error)
	// Issuer issues the values of named sequences.
	Issuer Issuer
	// Slots reads the cluster's workers from ZooKeeper. Each call of Serve has one
	// goroutine that calls Slots: at most once a second for the status page, and
	// at most every 15 s otherwise, or every 5 s after a failure.
	Slots func(context.Context) (health.Report, error)
	// Authenticate reports whether a token is valid, and returns the sequences that the
	// client may use. It is called for every request but
	// those for probes, metrics and the style, script and icon of the page. A nil
	// Authenticate means that no token is needed.
	Authenticate func(token []byte) (rights *sequence.Rights, ok bool)
	// Closed is the text that refuses the requests for which Authenticate would be
	// called. It applies only if Authenticate is nil. Empty means that they are answered.
	Closed string
	// Loopback refuses requests whose Host is not localhost, a loopback address or empty.
	// It applies to the same requests as Closed, and only if Authenticate is nil.
	Loopback bool
	// TLS serves HTTPS instead of HTTP. nil means HTTP.
	TLS *tls.Config
	// ClientCertificate refuses requests without a client certificate that TLS has verified.
	// It applies to the same requests as Authenticate, and in addition to it.
	ClientCertificate bool
	// Events are shown in the status document and on the page.
	Events *Events
	About  About
	// Logger gets a line when serving begins and ends, and one at debug level for each
	// error of net/http. Requests are not logged.
	Logger hclog.Logger
}

// Requests and replies are small, so a client that exceeds these limits is broken or
// hostile. Idle connections are closed early,
// because a new one takes less than a millisecond.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 10 * time.Second
	idleTimeout       = 5 * time.Second
	maxHeaderBytes    = 16 << 10
	// drainTimeout is how long running requests may still take when the server ends.
	drainTimeout = 2 * time.Second
)

// Server answers HTTP requests. Make it with New.
type Server struct {
	cfg Config
	log hclog.Logger

	slots    *slots
	past     *past
	answers  places
	waits    places
	requests *prometheus.CounterVec
	made     atomic.Int64 // IDs
}

// New returns a Server. It does no I/O.
func New(cfg Config) *Server {
	return &Server{cfg: cfg, log: cfg.Logger.Named("admin"), slots: newSlots(cfg.Slots),
		past: newPast(timeguard.System().Boot), answers: make(places, maxAnswers), waits: make(places, maxWaits), requests: newRequests()}
}

// httpLog returns a logger for errors of single requests. It logs at debug level, because
// any client can cause such errors as often as it likes.
func (s *Server) httpLog() *log.Logger {
	return log.New(s.log.StandardWriter(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}), "", 0)
}

// Serve answers requests on l until ctx is done. It then lets running requests finish for
// two seconds, cuts the rest, and closes l. It returns nil if ctx ended it, and an error if
// l failed. It may be called once for each of several listeners: each call then reads the
// slots for itself.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       withConn,
		ErrorLog:          s.httpLog(),
	}
	scheme := "HTTP"
	if s.cfg.TLS != nil {
		scheme = "HTTPS"
	}
	s.log.Info("listening for "+scheme, "address", l.Addr().String())
	var reading sync.WaitGroup
	defer reading.Wait()
	readCtx, stopReading := context.WithCancel(ctx)
	defer stopReading()
	reading.Go(func() { s.Run(readCtx) })
	served := make(chan error, 1)
	l = newConns(l, maxConns)
	if s.cfg.TLS != nil {
		l = tls.NewListener(l, s.cfg.TLS) // without HTTP/2: bounds on requests count connections
	}
	go func() { served <- srv.Serve(l) }()
	select {
	case err := <-served:
		_ = srv.Close() // the listener failed: do not wait for its connections
		return err
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	err := srv.Shutdown(drain)
	if err != nil {
		_ = srv.Close()
	}
	<-served
	s.log.Info("stopped listening for "+scheme, "address", l.Addr().String(), "cut", err != nil)
	return nil
}

// Run reads the cluster's workers from ZooKeeper, for the page and the metrics, and samples the node's counters every
// 10 s for the page, until ctx is done. Serve calls it. A program that uses Handler or Collector, and not Serve, calls
// Run once, in a goroutine. End it before the node is closed.
func (s *Server) Run(ctx context.Context) {
	var sampling sync.WaitGroup
	defer sampling.Wait()
	sampling.Go(func() { // beside the readings, which may wait for ZooKeeper
		s.past.run(ctx, func(at int64) sample { return s.sampleOf(at, s.cfg.Node()) })
	})
	s.slots.run(ctx)
}
