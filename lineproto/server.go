package lineproto

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/worker"
)

// Server answers the line protocol on any number of listeners. Make it with New.
type Server struct {
	cfg   Config
	table []command
	// help and helpRESP are the lines of HELP in the two framings.
	help, helpRESP []string
	sweeper        sweeper // each request reads its tick, and writes the counters below

	began      time.Time
	counters   counters
	lastClient atomic.Int64 // the greatest clientID so far
	memory     atomic.Int64 // bytes that unfinished requests and unread replies take: see session.memory
	backlog    atomic.Int64 // IDs that accepted orders lack
	tcpPort    atomic.Int64 // of the first TCP listener, 0 if there is none
	turns      turns        // of connections with goroutines
	seenWaits  atomic.Int64 // Backend.Waits when last read
	refusing   atomic.Int64 // connections being told BUSY

	mu        sync.Mutex             // guards what follows, and idle and reported of each listener
	conns     map[*conn]struct{}     // with goroutines
	listeners map[*listener]struct{} // on which Serve runs
	endSweep  func()                 // ends the sweep, and returns when it has ended. Set while there are listeners

	closeOnce sync.Once
	closed    chan struct{} // by CloseListeners

	// outBufs has buffers for the output of connections that are being answered: *[]byte. An
	// idle connection holds none.
	outBufs sync.Pool
}

// New checks cfg and fills in its defaults. It does no I/O.
func New(cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg:       cfg,
		began:     time.Now(),
		conns:     make(map[*conn]struct{}),
		listeners: make(map[*listener]struct{}),
		closed:    make(chan struct{}),
		table:     commandTable(),
	}
	s.sweeper.configure(&s.cfg)
	s.help, s.helpRESP = helpLines(s.table, false), helpLines(s.table, true)
	s.counters.requests = make([][numResults]atomic.Int64, len(s.table)+1)
	s.outBufs.New = func() any { b := make([]byte, 0, outBuf); return &b }
	return s, nil
}

// elapsed returns the ns since New, by a monotonic clock. It is for durations.
func (s *Server) elapsed() int64 { return int64(time.Since(s.began)) }

// lookup returns the index of a verb's row in the command table, or len(s.table) if the
// framing has no such command.
func (s *Server) lookup(verb []byte, resp bool) int {
	for i := range s.table {
		if equalFold(verb, s.table[i].name) && (resp || !s.table[i].resp) {
			return i
		}
	}
	return len(s.table)
}

// Serve answers the connections that l accepts, until ctx is done or l fails or is
// closed. It closes l and returns when all of its connections have ended. It returns
// nil if ctx was done, else the error of Accept. Serve may be called for several
// listeners at once. MaxConns counts their connections together.
//
// At the end Serve drains. For 10 ms (drainGrace) connections are served as before, so
// that requests that have reached this machine are answered. Then each connection is
// closed once the requests that were read from it are answered, and idle ones at once.
// A client that was active has a second (lingerTime) to see the end. Connections may
// remain after DrainTimeout, because a Backend does not answer or a client does not
// read. Serve cuts them: it closes their sockets and cancels the context of Backend
// calls, which does not end with ctx.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	log := s.cfg.Logger.With("address", l.Addr().String())
	if tcp, ok := l.Addr().(*net.TCPAddr); ok {
		s.tcpPort.CompareAndSwap(0, int64(tcp.Port))
	}
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()

	ln := newListener(s)
	ln.openLoop(l, log)
	defer ln.loop.free()
	ln.loop.start(calls, &ln.wg)
	s.addListener(ln)
	defer s.removeListener(ln)
	accepted := make(chan error, 1)
	go func() { accepted <- ln.accept(ctx, calls, l, log) }()
	log.Info("listening", "max_conns", s.cfg.MaxConns, "max_batch", MaxBatch)

	var err error
	select {
	case <-ctx.Done():
		l.Close()
		<-accepted
	case <-s.closed:
		l.Close()
		<-accepted
		log.Info("accepting no more connections")
		<-ctx.Done()
	case err = <-accepted:
		l.Close()
		if ctx.Err() != nil {
			err = nil
		}
	}

	ln.drain(cancel)
	log.Info("stopped listening", "cut_conns", ln.cut.Load())
	if err != nil {
		return fmt.Errorf("accept on %v: %w", l.Addr(), err)
	}
	return nil
}

// addListener includes the connections of a listener in the sweep. The first listener starts it.
func (s *Server) addListener(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.listeners) == 0 {
		stop, stopped := make(chan struct{}), make(chan struct{})
		s.endSweep = func() { close(stop); <-stopped }
		go func() {
			defer close(stopped)
			s.sweep(stop)
			s.sweeper.wake() // a sweep that began meanwhile, if this one has taken its wake-up
		}()
	}
	s.listeners[l] = struct{}{}
}

// removeListener takes a listener out of the sweep. The last one ends it.
func (s *Server) removeListener(l *listener) {
	s.mu.Lock()
	delete(s.listeners, l)
	last, end := len(s.listeners) == 0, s.endSweep
	s.mu.Unlock()
	if last {
		end()
	}
}

// addConn and removeConn keep the connections that have goroutines.
func (s *Server) addConn(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = struct{}{}
}

func (s *Server) removeConn(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// Reserve reserves between 1 and n IDs of the Backend for a caller that is not a
// connection of this server. It waits for its turn among the connections that have
// goroutines. It returns an *ids.ReplyError with BUSY if ctx ends before its turn.
func (s *Server) Reserve(ctx context.Context, n int) (worker.Run, error) {
	var p place
	if err := s.turns.acquire(ctx, &p, make(signal, 1), n, false); err != nil {
		return worker.Run{}, replies.New(ids.BUSY, "clients are waiting for too many IDs. Retry later")
	}
	var run worker.Run
	defer func() { s.turns.release(&p, run.Len) }() // even after a panic, which net/http survives
	run, err := s.cfg.Backend.Reserve(ctx, min(n, p.allowed))
	return run, err
}

// CloseListeners makes Serve close its listeners. Connections that were accepted are served until
// the context of Serve is done. Later calls do nothing.
func (s *Server) CloseListeners() { s.closeOnce.Do(func() { close(s.closed) }) }

// busyReply appends the reply to a connection over MaxConns. It ends in CRLF, which clients
// of both framings understand.
func (s *Server) busyReply(out []byte) []byte {
	return linesCRLF.fail(out, replies.New(ids.BUSY, fmt.Sprintf("too many connections limit=%d", s.cfg.MaxConns)))
}
