package web

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/ops/health"
)

const (
	// slotsEvery is the shortest time between two readings of the slots. The page has a shorter one, pageEvery.
	// All nodes of a cluster together read at most readsPerSecond records a second from ZooKeeper. With
	// 1,000 nodes and 1,000 slots, each node reads every 200 s.
	slotsEvery     = 15 * time.Second
	readsPerSecond = 5000
	// pageEvery is the shortest time between two readings for the page. It grows with the cluster, so that a
	// node reads at most pageReads records a second.
	pageEvery = time.Second
	pageReads = 500
	// slotsTimeout ends a reading that takes longer.
	slotsTimeout = 10 * time.Second
	// slotsWait is the longest time that a request waits for a reading.
	slotsWait = 5 * time.Second
)

// slots reads the slots in the background, when a request wants them, and keeps the last
// reading. Requests are answered from it, so that they do not depend on ZooKeeper.
type slots struct {
	read func(context.Context) (health.Report, error)
	want chan struct{} // capacity 1

	mu sync.Mutex // guards what follows
	seen
	tried   time.Time     // when the last try ended
	changed chan struct{} // closed after the try that a request wants, nil for none
}

func newSlots(read func(context.Context) (health.Report, error)) *slots {
	return &slots{read: read, want: make(chan struct{}, 1)}
}

// run reads the slots when a request wants them. It returns when ctx ends.
func (c *slots) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.want:
		}
		readCtx, cancel := context.WithTimeout(ctx, slotsTimeout)
		found, err := c.read(readCtx)
		cancel()
		c.mu.Lock()
		c.tried, c.err = time.Now(), err
		if err == nil {
			c.Report, c.at = found, c.tried
			c.ok++
		} else {
			c.failed++
		}
		close(c.changed)
		c.changed = nil
		c.mu.Unlock()
	}
}

// every returns the time between two readings.
func (s seen) every(page bool) time.Duration {
	switch {
	case page:
		return max(pageEvery, time.Duration(s.Summary.Used)*time.Second/pageReads)
	case s.err != nil:
		return slotsEvery / 3 // a failed try reads few records
	}
	return max(slotsEvery, time.Duration(s.Summary.Used)*time.Duration(s.Summary.Live)*time.Second/readsPerSecond)
}

// seen is the last reading, with the error of the last try and the numbers of tries.
type seen struct {
	health.Report
	at         time.Time // when it was read; zero: never
	err        error
	ok, failed int64
}

// get returns the last reading without waiting, and starts the next one if it is due. page means that
// the page shows it. changed is closed after the next try. It is nil if none is due.
func (c *slots) get(page bool) (s seen, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed == nil && (c.tried.IsZero() || time.Since(c.tried) >= c.every(page)) {
		c.changed = make(chan struct{})
		c.want <- struct{}{}
	}
	return c.seen, c.changed
}

// wait returns the last reading. If the next one is due, wait first waits for it, no longer
// than limit.
func (c *slots) wait(ctx context.Context, limit time.Duration, page bool) seen {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if _, changed := c.get(page); changed != nil {
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen
}

// stale is the JSON document of an error in reading ZooKeeper. Last is the last reading, or
// null if there is none.
type stale struct {
	problem
	Last *health.Report `json:"last"`
}

func (s *Server) workers(w http.ResponseWriter, r *http.Request) {
	c := s.slots.wait(r.Context(), slotsWait, false)
	last, why := &c.Report, "ZooKeeper has not answered yet"
	switch {
	case c.err == nil && !c.at.IsZero():
		writeJSON(w, http.StatusOK, last)
		return
	case c.err != nil:
		why = replies.OneLine(c.err.Error())
	}
	if c.at.IsZero() {
		last = nil
	}
	writeJSON(w, http.StatusServiceUnavailable, stale{problem{problemText{"UNREACHABLE", why}}, last})
}
