package lineproto

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/atomic"
)

// Server answers the line protocol on any number of listeners. Make it with New.
type Server struct {
	cfg   Config
	table []command
	// help and helpRESP are what HELP prints in the two framings.
	help, helpRESP []string

	errTag, errCount, errLong, errGathered *Error

	began    time.Time
	counters counters
	clients  atomic.Int64 // the last connection's number that was asked for
	gathered atomic.Int64 // bytes of memory that hold unfinished requests
	backlog  atomic.Int64 // IDs that accepted orders lack
	relay    relay        // of connections that have a goroutine

	// Buffers of connections that are in the midst of a batch, *[bigBuf]byte
	// and *[]byte: an idle connection holds neither.
	bigBufs, outBufs sync.Pool
}

// New checks cfg and fills in its defaults. It does no I/O.
func New(cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg:      cfg,
		began:    time.Now(),
		table:    commandTable(cfg.MaxBatch),
		errTag:   &Error{ERR, fmt.Sprintf("a tag is a letter, then letters, digits and _ . : -, at most %d bytes", maxTag)},
		errCount: &Error{ERR, fmt.Sprintf("a count is 1 to %d, in digits only", cfg.MaxBatch)},
		errLong:  &Error{ERR, fmt.Sprintf("line longer than %d bytes", MaxLine)},

		errGathered: &Error{BUSY, fmt.Sprintf("too many long requests are unfinished limit_bytes=%d", maxGathered)},
	}
	s.help, s.helpRESP = helpLines(s.table, false), helpLines(s.table, true)
	s.counters.requests = make([][numResults]atomic.Int64, len(s.table)+1)
	s.bigBufs.New = func() any { return new([bigBuf]byte) }
	s.outBufs.New = func() any { b := make([]byte, 0, outBuf); return &b }
	return s, nil
}

// lookup finds a verb's row in the command table, len(s.table) if there is none
// in this framing.
func (s *Server) lookup(verb []byte, resp bool) int {
	for i := range s.table {
		if equalFold(verb, s.table[i].name) && (resp || !s.table[i].resp) {
			return i
		}
	}
	return len(s.table)
}

// Serve answers the connections that l accepts, until ctx is done or l fails
// or is closed. It closes l and returns when all of its connections have
// ended: nil if ctx was done, else what Accept said. It may be called for
// several listeners at once; MaxConns counts their connections together.
//
// Done means draining. For 10 ms (drainGrace) connections are served as before,
// so that what had reached this machine by then is answered. Then each is
// closed after the replies to what has been read from it, idle ones at once; a
// client in the midst of asking has a second (lingerTime) to see the end. What
// remains after DrainTimeout, because a Backend does not answer or a client
// does not read, is cut: the context that Backend calls were given, which does
// not end with ctx, is cancelled then and the sockets are closed.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	log := s.cfg.Logger.With("addr", l.Addr().String())
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()

	e := newEngine(s)
	if err := s.openLoops(e, l, log); err != nil {
		l.Close()
		return err
	}
	defer e.loops.close()
	e.loops.run(calls, &e.wg)
	accepted := make(chan error, 1)
	go func() { accepted <- e.accept(ctx, calls, l, log) }()
	swept, stopSweep := make(chan struct{}), make(chan struct{})
	go func() { defer close(swept); e.sweep(stopSweep) }()
	watched := make(chan struct{})
	go func() { defer close(watched); e.loops.watch(stopSweep, calls, &e.wg) }()
	log.Info("listening", "max_conns", s.cfg.MaxConns, "max_batch", s.cfg.MaxBatch)

	var err error
	select {
	case <-ctx.Done():
		l.Close()
		<-accepted
	case err = <-accepted:
		l.Close()
		if ctx.Err() != nil {
			err = nil
		}
	}

	cut := e.drain(cancel)
	close(stopSweep)
	<-swept
	<-watched
	log.Info("closed", "cut_conns", cut)
	if err != nil {
		return fmt.Errorf("lineproto: accept on %v: %w", l.Addr(), err)
	}
	return nil
}

// openLoops makes the engine's event loops, if there are to be any.
func (s *Server) openLoops(e *engine, l net.Listener, log hclog.Logger) error {
	switch l.(type) {
	case *net.TCPListener, *net.UnixListener:
	default:
		return nil // of TLS, say
	}
	if s.cfg.Engine == Goroutines {
		return nil
	}
	err := e.loops.open(e, s.cfg.Loops)
	switch {
	case err == nil:
	case s.cfg.Engine == EventLoops:
		return fmt.Errorf("lineproto: %w", err)
	case runtime.GOOS == "linux":
		log.Warn("no event loop, connections get goroutines", "error", err)
	}
	return nil
}

// busy is what a connection over the limit is told: with CRLF, which a client
// of either framing understands.
func (s *Server) busy(out []byte) []byte {
	return linesCRLF.fail(out, &Error{BUSY, fmt.Sprintf("too many connections limit=%d", s.cfg.MaxConns)})
}

// drainGrace is how long connections are served on when draining begins. The
// requests that the kernel holds get an answer in it, where a close would
// throw them away and, with them unread, the replies on their way out too.
const drainGrace = 10 * time.Millisecond
