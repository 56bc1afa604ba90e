package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/dialog"
)

const (
	// retryDial is the time for which a node is not dialled again after an attempt that failed.
	retryDial = 100 * time.Millisecond
	// A link looks at its progress every tick. If for stallTicks no reply has come that is due, no further requests are
	// sent, so that they are certainly not asked. After endTicks the connection is closed: a node answers within 5 s.
	tick       = 250 * time.Millisecond
	stallTicks = int(time.Second / tick)
	endTicks   = int(6 * time.Second / tick)
	// writeTime is the longest time of one write.
	writeTime = 5 * time.Second
	// maxLine is longer than any line of a reply.
	maxLine = 4 << 10
	// maxWrite is the number of bytes after which a write gets no more requests.
	maxWrite = 64 << 10
)

// idleTicks is the number of ticks after which an unused connection is closed.
var idleTicks = int(time.Minute / tick)

// link is one connection, with a goroutine that dials and writes, and one that reads.
type link struct {
	address string
	cluster string        // UUID: of another cluster's node nothing is asked
	wake    chan struct{} // capacity 1: there is something to write, or the reader has ended

	mu      sync.Mutex // guards what follows, and the calls
	queue   []*call    // not sent yet
	sent    []*call    // sent and not answered, in the order of the requests
	batch   int        // number of the last write
	stalled bool       // no reply that is due has come for stallTicks, so no further requests are sent
	quiet   int        // ticks without a reply that is due
	unused  int        // ticks without a call
	failed  error      // of the reader
	dead    bool       // the link takes no more calls
	// dialErr is the error of a dial that failed, nil if it succeeded. ended is the time at which the link became dead.
	dialErr error
	ended   time.Time
}

// submit adds a call to the queue. taken is false if the link takes no more calls, and err is not nil if the node could
// not be reached a moment ago.
func (l *link) submit(k *call) (taken bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.dead && l.dialErr != nil && time.Since(l.ended) < retryDial:
		return false, l.dialErr
	case l.dead:
		return false, nil
	}
	l.queue = append(l.queue, k)
	l.unused = 0
	if len(l.queue) == 1 {
		l.notify()
	}
	return true, nil
}

func (l *link) notify() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// withdraw reports whether the call was not sent. Then it will not be.
func (l *link) withdraw(k *call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	k.withdrawn = !k.sent
	return k.withdrawn
}

func (l *link) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

func (l *link) run(ctx context.Context, creds func() dialog.Client) {
	nc, err := dial(ctx, creds(), l.address, l.cluster)
	if err != nil {
		l.finish(err, nothingIssued(err))
		return
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		err := l.readLoop(dialog.NewReader(nc, l.address, maxLine))
		l.mu.Lock()
		l.failed = err
		l.mu.Unlock()
		l.notify()
	})
	err = l.writeLoop(ctx, nc)
	_ = nc.Close()
	reading.Wait()
	l.finish(err, nil)
}

// writeLoop sends what is in the queue, until the connection must end.
func (l *link) writeLoop(ctx context.Context, nc net.Conn) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var out []byte
	for {
		select {
		case <-ctx.Done():
			return ids.ErrClosed
		case <-ticker.C:
			if err := l.noteTick(); err != nil {
				return err
			}
			continue
		case <-l.wake:
			runtime.Gosched() // other callers of this moment share the write
		}
		var err error
		if out, err = l.take(out[:0]); err != nil {
			return err
		}
		if len(out) == 0 {
			continue
		}
		_ = nc.SetWriteDeadline(time.Now().Add(writeTime))
		if n, err := nc.Write(out); err != nil {
			err = dialog.InWords(l.address, err)
			l.unsent(n, err)
			return err
		}
	}
}

// take appends requests from the queue to out, and counts them as sent.
func (l *link) take(out []byte) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil || l.stalled {
		return out, l.failed
	}
	l.batch++
	for i, k := range l.queue {
		if len(out) >= maxWrite {
			l.queue = append(l.queue[:0], l.queue[i:]...)
			l.notify()
			return out, nil
		}
		if k.withdrawn {
			continue
		}
		k.sent, k.batch, k.at = true, l.batch, len(out)
		out = k.appendTo(out)
		l.sent = append(l.sent, k)
	}
	clear(l.queue)
	l.queue = l.queue[:0]
	return out, nil
}

// unsent ends the calls of the last write of which nothing was sent: the write has failed after n bytes.
func (l *link) unsent(n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.sent) - 1; i >= 0; i-- {
		k := l.sent[i]
		if k.batch != l.batch || k.at < n {
			break
		}
		l.sent = l.sent[:i]
		k.end(ordered.Answer{}, nothingIssued(err))
	}
}

// noteTick counts the time without progress. It returns an error if the connection must end. A stalled link takes calls,
// and ends them at its next tick.
func (l *link) noteTick() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.sent) == 0 {
		if l.unused++; l.unused >= idleTicks && len(l.queue) == 0 {
			l.dead = true // before a call comes that would then fail
			return ids.ErrClosed
		}
		return nil
	}
	l.quiet++
	if l.quiet < stallTicks {
		return nil
	}
	l.stalled = true
	err := dialog.InWords(l.address, context.DeadlineExceeded)
	l.endQueue(nothingIssued(err))
	if l.quiet < endTicks {
		return nil
	}
	return err
}

// finish ends the link and its calls. dialErr is nil if there was a connection.
func (l *link) finish(err, dialErr error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead, l.dialErr, l.ended = true, dialErr, time.Now()
	l.endQueue(nothingIssued(err))
	for _, k := range l.sent {
		k.end(ordered.Answer{}, err)
	}
	l.sent = nil
}

// endQueue ends the calls that were not sent. mu is held.
func (l *link) endQueue(err error) {
	for _, k := range l.queue {
		if !k.withdrawn {
			k.end(ordered.Answer{}, err)
		}
	}
	l.queue = nil
}

// readLoop gives the replies to the calls, until the connection ends.
func (l *link) readLoop(in *dialog.Reader) error {
	for {
		line, err := in.Line()
		if err != nil {
			return err
		}
		if err := l.answer(line); err != nil {
			return err
		}
	}
}

// answer gives a line to the call that has waited longest. It returns an error if the line is not its reply.
func (l *link) answer(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.sent) == 0 {
		return fmt.Errorf("%s: %.60q: %w", l.address, line, dialog.ErrReply)
	}
	k := l.sent[0]
	got, err := k.parse(l.address, line)
	if errors.Is(err, dialog.ErrReply) {
		return err
	}
	l.sent[0] = nil
	l.sent = l.sent[1:]
	k.end(got, err)
	if l.quiet = 0; l.stalled {
		l.stalled = false
		l.notify()
	}
	return nil
}
