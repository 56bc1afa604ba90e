package client

import (
	"context"
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/worker"
)

// maxIdle is how long a connection may be idle and still be used. A node with many
// connections closes those that are idle for 10 minutes, and a firewall may drop them sooner.
const maxIdle = 4 * time.Minute

// keepIDs is the largest buffer of IDs that a connWorker keeps for its next job.
const keepIDs = 1 << 16

// connWorker is a goroutine that asks nodes, one job at a time, and its connections. Calls that
// arrive while all connWorkers wait for replies share the next request.
type connWorker struct {
	pool    *pool
	woken   chan struct{} // capacity 1
	conns   map[*node]*conn
	making  map[*node]chan connected // capacity 1
	numbers []worker.ID              // of the last reply
	job     job
	// settling means that pool.settling counts the connWorker. Guarded by pool.mu.
	settling bool
	// late is the timer that calls markStuck, nil before the first job for an ordered sequence. stuck: the job takes
	// long, so pool.stuck counts the connWorker. retired: the connWorker must end. Guarded by pool.mu.
	late           *time.Timer
	stuck, retired bool
}

type connected struct {
	conn *conn
	err  error
}

// job is the calls that one exchange with a node must answer.
type job struct {
	node  *node
	calls []*call
	query query         // of all calls
	want  int           // IDs in all
	share time.Duration // that the node has to answer: Config.Timeout, or less if a call's deadline is near
	look  bool          // ask for the owner of the sequence first
	// more are jobs that share the exchange: see pipeline.go. numbers and err are the outcome of one of them.
	more    []*job
	numbers []worker.ID
	err     error
}

func newConnWorker(p *pool) *connWorker {
	return &connWorker{pool: p, woken: make(chan struct{}, 1), conns: make(map[*node]*conn),
		making: make(map[*node]chan connected)}
}

// wake wakes a connWorker, so that it calls assign again.
func (w *connWorker) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

func (w *connWorker) run(ctx context.Context) {
	defer func() {
		for _, conn := range w.conns {
			conn.close()
		}
		for _, made := range w.making {
			if m := <-made; m.err == nil {
				m.conn.close()
			}
		}
	}()
	for w.next(ctx) {
		err := w.ask()
		w.pool.settle(w, err)
		if len(w.job.calls)+len(w.job.more) > 1 {
			// Callers that were answered often call again at once. Yielding lets them do
			// so before the next request, which then serves all of them.
			runtime.Gosched()
		}
	}
}

// next blocks until the connWorker has a job: queued calls, and a node that may be asked. It
// returns false when the client is closed.
func (w *connWorker) next(ctx context.Context) bool {
	for {
		ready, wait := w.pool.assign(w)
		if ready || w.retired {
			return ready
		}
		var later <-chan time.Time
		if wait > 0 {
			later = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return false
		case <-w.woken:
		case <-later:
		}
	}
}

// ask exchanges the connWorker's job with its node. The numbers are in w.numbers then.
func (w *connWorker) ask() error {
	n := w.job.node
	if conn := w.conns[n]; conn != nil {
		delete(w.conns, n)
		if time.Since(conn.used) < maxIdle {
			err := w.exchange(conn)
			if err == nil || !conn.isSilent() || errors.Is(err, os.ErrDeadlineExceeded) {
				return err
			}
			// The node closed the connection before it answered, most likely because the
			// connection was idle or the node restarted. A new one may work.
		} else {
			conn.close()
		}
	}
	conn, err := w.connect(n)
	if err != nil {
		return err
	}
	return w.exchange(conn)
}

// connect returns a new connection to n, or an error after the job's share of time. The
// attempt then continues, and the next job for n waits for its result. Otherwise calls with
// less time than a handshake takes would never get a connection.
func (w *connWorker) connect(n *node) (*conn, error) {
	made := w.making[n]
	if made == nil {
		made = make(chan connected, 1)
		w.pool.start(func(ctx context.Context) {
			conn, err := w.pool.dial(ctx, n, time.Now().Add(w.pool.cfg.Timeout))
			made <- connected{conn, err}
		})
	}
	late := time.NewTimer(w.job.share)
	defer late.Stop()
	select {
	case m := <-made:
		delete(w.making, n)
		return m.conn, m.err
	case <-late.C:
		w.making[n] = made
		return nil, &dialog.NetworkError{Text: "no connection to " + n.addr + " in time", Err: os.ErrDeadlineExceeded}
	}
}

// exchange requests the job's IDs on a connection, and keeps the connection unless it is
// broken.
func (w *connWorker) exchange(conn *conn) (err error) {
	if cap(w.numbers) > keepIDs {
		w.numbers = nil
	}
	if w.job.look {
		w.job.look = false
		err = w.pool.look(conn, &w.job)
	}
	switch {
	case err != nil:
	case len(w.job.more) > 0:
		w.numbers, err = conn.getAll(&w.job)
	default:
		w.numbers, err = conn.get(w.numbers[:0], w.job.query, w.job.want, w.pool.cfg.MaxBatch, w.job.share)
	}
	if conn.broken {
		conn.close()
	} else {
		w.conns[w.job.node] = conn
	}
	if conn.known {
		w.pool.compare(&w.job)
	}
	return err
}
