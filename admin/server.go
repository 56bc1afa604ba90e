package admin

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Config is what New needs. Ready is required.
type Config struct {
	// Ready is nil when GET would be answered with an ID, else the reason why
	// not. It is called from many goroutines at once and must not block.
	Ready func() error
	// Live is nil while the process does its work, else the reason why it is to
	// be killed and started again. It must not depend on ZooKeeper: a restart
	// mends nothing there, and all nodes would be restarted at once. nil means
	// that a process that answers is alive.
	Live func() error
	// Version is the release alone, "1.2.3", sent in the Server header. Empty
	// means that none is sent.
	Version string
	// Logger gets a line when serving begins and ends, and for what goes wrong
	// in net/http; none for each request. nil means that nothing is logged.
	Logger hclog.Logger
}

// A probe is one small request and a reply of one line: whatever takes longer
// than these is broken or means harm.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 16 << 10
	// drainTimeout is how long requests that are being answered may take when
	// the server ends.
	drainTimeout = 2 * time.Second
)

// Server answers HTTP requests. Make it with New.
type Server struct {
	cfg Config
	log hclog.Logger
}

// New validates the configuration. It does no I/O.
func New(cfg Config) (*Server, error) {
	if cfg.Ready == nil {
		return nil, errors.New("admin: Config.Ready is nil")
	}
	if cfg.Live == nil {
		cfg.Live = func() error { return nil }
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	return &Server{cfg: cfg, log: cfg.Logger.Named("admin")}, nil
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
		ErrorLog:          log.New(s.log.StandardWriter(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}), "", 0),
	}
	s.log.Info("serving HTTP", "address", l.Addr().String())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
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
