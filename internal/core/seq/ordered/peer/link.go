package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
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
	// maxLine is the most bytes of a line of a reply. A longer line ends the connection.
	maxLine = 4 << 10
	// maxWrite is the number of bytes after which a write gets no more requests.
	maxWrite = 64 << 10
)

// idleTicks is the number of ticks after which an unused connection is closed.
var idleTicks = int(time.Minute / tick)

// link is one connection, with a goroutine that dials and writes, and one that reads.
type link struct {
	address string
	cluster string        // UUID: a node of another cluster is not asked
	wake    chan struct{} // capacity 1: there is something to write, or the reader has ended

	mu          sync.Mutex // guards what follows, and the calls
	queue       []*call    // not sent yet
	sent        []*call    // sent and not answered, in the order of the requests
	writes      int        // number of the last write
	stalled     bool       // no reply that is due has come for stallTicks, so no further requests are sent
	quietTicks  int        // ticks without a reply that is due
	unusedTicks int        // ticks without a call
	readErr     error      // of the reader
	dead        bool       // the link takes no more calls, since deadSince
	deadSince   time.Time
	// dialErr is the error of a dial that failed, nil if it succeeded.
	dialErr error
}

// submit adds a call to the queue. taken is false if the link takes no more calls, and err is not nil if the node could
// not be reached a moment ago.
func (l *link) submit(k *call) (taken bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.dead && l.dialErr != nil && time.Since(l.deadSince) < retryDial:
		return false, l.dialErr
	case l.dead:
		return false, nil
	}
	l.queue = append(l.queue, k)
	l.unusedTicks = 0
	if len(l.queue) == 1 {
		l.notify()
	}
	return true, nil
}

// notify wakes writeLoop.
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

// isDead reports whether the link takes no more calls.
func (l *link) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// run dials, and serves the link until it ends. creds returns the token and the TLS configuration.
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
		l.readErr = err
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
		if out, err = l.appendQueued(out[:0]); err != nil {
			return err
		}
		if len(out) == 0 {
			continue
		}
		_ = nc.SetWriteDeadline(time.Now().Add(writeTime))
		if n, err := nc.Write(out); err != nil {
			err = dialog.InWords(l.address, err)
			l.endUnsent(n, err)
			return err
		}
	}
}

// appendQueued appends requests from the queue to out, and counts them as sent.
func (l *link) appendQueued(out []byte) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.readErr != nil || l.stalled {
		return out, l.readErr
	}
	l.writes++
	for i, k := range l.queue {
		if len(out) >= maxWrite {
			l.queue = slices.Delete(l.queue, 0, i)
			l.notify()
			return out, nil
		}
		if k.withdrawn {
			continue
		}
		k.sent, k.write, k.offset = true, l.writes, len(out)
		out = k.appendTo(out)
		l.sent = append(l.sent, k)
	}
	clear(l.queue)
	l.queue = l.queue[:0]
	return out, nil
}

// endUnsent ends those calls of the last write whose requests were not sent at all: the write has failed after n bytes.
func (l *link) endUnsent(n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.sent) - 1; i >= 0; i-- {
		k := l.sent[i]
		if k.write != l.writes || k.offset < n {
			break
		}
		l.sent = l.sent[:i]
		k.end(ordered.Answer{}, nothingIssued(err))
	}
}

// noteTick counts the time without progress. It returns an error if the connection must end. A stalled link takes
// calls, and ends them at its next tick.
func (l *link) noteTick() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.sent) == 0 {
		if l.unusedTicks++; l.unusedTicks >= idleTicks && len(l.queue) == 0 {
			l.dead = true // before a call comes that would then fail
			return ids.ErrClosed
		}
		return nil
	}
	l.quietTicks++
	if l.quietTicks < stallTicks {
		return nil
	}
	l.stalled = true
	err := dialog.InWords(l.address, context.DeadlineExceeded)
	l.endQueue(nothingIssued(err))
	if l.quietTicks < endTicks {
		return nil
	}
	return err
}

// finish ends the link and its calls. dialErr is nil if there was a connection.
func (l *link) finish(err, dialErr error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead, l.dialErr, l.deadSince = true, dialErr, time.Now()
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
	if l.quietTicks = 0; l.stalled {
		l.stalled = false
		l.notify()
	}
	return nil
}
