package admin

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/flaked/flaked/clusterview"
)

const (
	// slotsEvery is the shortest time between two readings of the slots while no page is
	// open. readsPerSecond is how many records all nodes of a cluster together may read
	// from ZooKeeper for it. With 1,000 nodes and 1,000 slots, each node reads every 200 s.
	slotsEvery     = 15 * time.Second
	readsPerSecond = 5000
	// watchedEvery is the time between two readings while a page is open. It grows with
	// the cluster, so that a node reads at most watchedReads records a second. A page
	// counts as open for watchedFor after each call of watch.
	watchedEvery = time.Second
	watchedReads = 500
	watchedFor   = 10 * time.Second
	// slotsTimeout is how long one reading may take.
	slotsTimeout = 10 * time.Second
	// slotsWait is how long a request waits for a reading.
	slotsWait = 5 * time.Second
)

// slots reads the slots in the background, when a request wants them, and keeps the last
// reading. Requests are answered from it, so that they do not depend on ZooKeeper.
type slots struct {
	read func(context.Context) (clusterview.Report, error)
	now  func() time.Time
	want chan struct{} // capacity 1

	mu sync.Mutex // guards what follows
	seen
	// tried is when the last try ended. A page counts as open until watched, and was opened
	// at since.
	tried   time.Time
	watched time.Time
	since   time.Time
	changed chan struct{} // closed after the next try
}

func newSlots(read func(context.Context) (clusterview.Report, error)) *slots {
	return &slots{read: read, now: time.Now, want: make(chan struct{}, 1), changed: make(chan struct{})}
}

// run reads the slots when a request wants them, and regularly while a page is open. It
// returns when ctx ends.
func (c *slots) run(ctx context.Context) {
	for {
		var again <-chan time.Time
		if left, watched := c.next(); watched {
			again = time.After(left)
		}
		select {
		case <-ctx.Done():
			return
		case <-c.want:
		case <-again:
		}
		if !c.due() {
			continue
		}
		readCtx, cancel := context.WithTimeout(ctx, slotsTimeout)
		found, err := c.read(readCtx)
		cancel()
		c.mu.Lock()
		c.tried, c.err = c.now(), err
		if err == nil {
			c.Report, c.at = found, c.tried
			c.ok++
		} else {
			c.failed++
		}
		close(c.changed)
		c.changed = make(chan struct{})
		c.mu.Unlock()
	}
}

// due reports whether the last reading is too old.
func (c *slots) due() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tried.IsZero() || c.now().Sub(c.tried) >= c.every()
}

// next returns the time until the next reading, and whether a page is open.
func (c *slots) next() (left time.Duration, watched bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.every() - c.now().Sub(c.tried), c.now().Before(c.watched)
}

// every returns the time between two readings. The caller holds mu.
func (c *slots) every() time.Duration {
	if c.now().Before(c.watched) {
		return max(watchedEvery, time.Duration(c.Summary.Used)*time.Second/watchedReads)
	}
	if c.err != nil {
		return slotsEvery / 3 // a failed try reads few records
	}
	return max(slotsEvery, time.Duration(c.Summary.Used)*time.Duration(c.Summary.Live)*time.Second/readsPerSecond)
}

// watch makes the slots be read often for the next watchedFor.
func (c *slots) watch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.now().Before(c.watched) {
		c.since = c.now()
	}
	c.watched = c.now().Add(watchedFor)
}

// overdue reports whether the last reading is older than an open page should show. Time
// before the page was opened does not count, because the slots were not read then.
func (c *slots) overdue() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	from := c.at
	if c.since.After(from) {
		from = c.since
	}
	return c.now().Sub(from) > max(staleAfter, 2*c.every())
}

// seen is the last reading, with the error of the last try and the numbers of tries.
type seen struct {
	clusterview.Report
	at         time.Time // when it was read; zero: never
	err        error
	ok, failed int64
}

// get returns the last reading without waiting, and starts the next one if it is due.
// changed is closed after the next try.
func (c *slots) get() (s seen, changed <-chan struct{}) {
	if c.due() {
		select {
		case c.want <- struct{}{}:
		default:
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen, c.changed
}

// wait returns the last reading. If the next one is due, wait first waits for it, no longer
// than limit.
func (c *slots) wait(ctx context.Context, limit time.Duration) seen {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, changed := c.get()
	if c.due() {
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	s, _ := c.get()
	return s
}

// stale is the JSON document of an error in reading ZooKeeper. Last is the last reading, or
// null if there is none.
type stale struct {
	problem
	Last *clusterview.Report `json:"last"`
}

func (s *Server) workers(w http.ResponseWriter, r *http.Request) {
	c := s.slots.wait(r.Context(), slotsWait)
	last, why := &c.Report, "ZooKeeper has not answered yet"
	switch {
	case c.err == nil && !c.at.IsZero():
		writeJSON(w, http.StatusOK, last)
		return
	case c.err != nil:
		why = oneLine(c.err.Error())
	}
	if c.at.IsZero() {
		last = nil
	}
	writeJSON(w, http.StatusServiceUnavailable, stale{problem{problemText{"UNREACHABLE", why}}, last})
}
