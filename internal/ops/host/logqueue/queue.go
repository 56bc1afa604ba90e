// Package logqueue writes a log from a goroutine of its own. A node holds locks while it logs: a
// reader of the log that is slow, or stands still, must not stop it.
package logqueue

import (
	"sync"
	"sync/atomic"
	"time"
)

// Room is the number of lines that can wait.
const Room = 1024

// A Queue passes lines on in their order. Put may be called from several goroutines.
type Queue[Line any] struct {
	pass  func(Line)
	lost  func(lines int64)
	lines chan Line
	// missing is the number of lines that found no room, and of which lost does not know yet.
	missing atomic.Int64
	end     chan struct{}
	ended   chan struct{}
	once    sync.Once
}

// New returns a Queue that calls pass with each line, and lost with the number of lines that found
// no room, when there is room again. Both may block, and both may call Put.
func New[Line any](pass func(Line), lost func(lines int64)) *Queue[Line] {
	q := &Queue[Line]{pass: pass, lost: lost, lines: make(chan Line, Room), end: make(chan struct{}),
		ended: make(chan struct{})}
	go q.run()
	return q
}

// Put adds a line. It never blocks. A line that finds no room is lost.
func (q *Queue[Line]) Put(line Line) {
	select {
	case q.lines <- line:
	default:
		q.missing.Add(1)
	}
}

// Close passes on the lines that wait, and ends the queue. It gives up after limit. Lines that are
// put later are lost.
func (q *Queue[Line]) Close(limit time.Duration) {
	q.once.Do(func() { close(q.end) })
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-q.ended:
	case <-timer.C:
	}
}

func (q *Queue[Line]) run() {
	defer close(q.ended)
	for {
		select {
		case line := <-q.lines:
			q.one(line)
		case <-q.end:
			for len(q.lines) > 0 {
				q.one(<-q.lines)
			}
			return
		}
	}
}

func (q *Queue[Line]) one(line Line) {
	q.pass(line)
	if missing := q.missing.Swap(0); missing > 0 {
		q.lost(missing)
	}
}
