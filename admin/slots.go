package admin

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Slots are a cluster's workers as they stand in ZooKeeper.
type Slots struct {
	// Doc is the document at /v1/workers.
	Doc any
	// ByState is how many there are in each state.
	ByState map[string]int
	// Used is how many records were read, Live how many nodes may be reading them.
	Used, Live int
	// Total is how many workers there can be, Workers those that were ever held,
	// by number.
	Total   int
	Workers []Slot
	// Problems are what somebody should look after, a sentence each.
	Problems []string
}

// Slot is a worker as it stands in ZooKeeper, as `flaked status` shows it. What
// is not known is nil.
type Slot struct {
	Worker                    int
	Name, Node, Host, Address string
	PID                       int
	Version                   string
	State                     string // live, detached, stopped, cooling, lost or free
	Phase                     string
	Term                      int64
	Settled                   bool
	OffsetMs, ErrorMs         *float64
	LeaseLeftMs, ReportAgeMs  *int64
	HeartbeatMs               int64
}

const (
	// slotsEvery is how often the slots are read at most, and readsPerSecond
	// what all nodes of a cluster together may ask of ZooKeeper for it: with a
	// thousand nodes and a thousand slots each reads every 200 s.
	slotsEvery     = 15 * time.Second
	readsPerSecond = 5000
	// watchedEvery is how often the slots are read while somebody looks at a
	// page of them, at most watchedReads records a second; watchedFor is how
	// long a look lasts.
	watchedEvery = time.Second
	watchedReads = 500
	watchedFor   = 10 * time.Second
	// slotsTimeout bounds one reading.
	slotsTimeout = 10 * time.Second
	// slotsWait is how long a request waits for one.
	slotsWait = 5 * time.Second
)

// slots reads the slots in the background, when somebody wants them, and
// remembers them: what is asked of this process must not depend on ZooKeeper.
type slots struct {
	read func(context.Context) (Slots, error)
	now  func() time.Time
	want chan struct{} // capacity 1
	// noted is told of each reading, and of those that failed.
	noted func(at time.Time, found Slots, ok bool)

	mu      sync.Mutex // guards what follows
	last    Slots
	at      time.Time // when last was read; zero: never
	tried   time.Time
	watched time.Time // until when somebody looks
	since   time.Time // when that began
	err     error     // of the last try
	ok      int64
	failed  int64
	changed chan struct{} // closed after the next try
}

func newSlots(read func(context.Context) (Slots, error)) *slots {
	return &slots{read: read, now: time.Now, want: make(chan struct{}, 1), noted: func(time.Time, Slots, bool) {}, changed: make(chan struct{})}
}

// run reads when it is wanted to, and by itself while somebody looks, until the
// context ends.
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
		c.noted(c.now(), found, err == nil)
		c.mu.Lock()
		c.tried, c.err = c.now(), err
		if err == nil {
			c.last, c.at = found, c.tried
			c.ok++
		} else {
			c.failed++
		}
		close(c.changed)
		c.changed = make(chan struct{})
		c.mu.Unlock()
	}
}

func (c *slots) due() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tried.IsZero() || c.now().Sub(c.tried) >= c.every()
}

// next is how long it is until the next reading of slots that are watched.
func (c *slots) next() (left time.Duration, watched bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.every() - c.now().Sub(c.tried), c.now().Before(c.watched)
}

// every is how long a reading stands. mu is held.
func (c *slots) every() time.Duration {
	if c.now().Before(c.watched) {
		return max(watchedEvery, time.Duration(c.last.Used)*time.Second/watchedReads)
	}
	if c.err != nil {
		return slotsEvery / 3 // few of these get as far as the slots
	}
	return max(slotsEvery, time.Duration(c.last.Used)*time.Duration(c.last.Live)*time.Second/readsPerSecond)
}

// watch has the slots read often for a while.
func (c *slots) watch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.now().Before(c.watched) {
		c.since = c.now()
	}
	c.watched = c.now().Add(watchedFor)
}

// overdue tells whether a reading is, of slots that are watched. Before somebody
// looked there was none to be made.
func (c *slots) overdue() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	from := c.at
	if c.since.After(from) {
		from = c.since
	}
	return c.now().Sub(from) > max(staleAfter, 2*c.every())
}

// idle has the slots read now and then in clusters that are small enough.
func (c *slots) idle() {
	c.mu.Lock()
	every := max(slotsEvery, time.Duration(c.last.Used)*time.Duration(c.last.Live)*time.Second/idleReads)
	due := every <= idleMost && c.now().Sub(c.tried) >= every
	c.mu.Unlock()
	if due {
		c.get()
	}
}

// seen is what there is of the last readings.
type seen struct {
	Slots
	at         time.Time
	err        error
	ok, failed int64
}

// get is the last reading, and has the next one made if that is due.
func (c *slots) get() (s seen, changed <-chan struct{}) {
	if c.due() {
		select {
		case c.want <- struct{}{}:
		default:
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return seen{c.last, c.at, c.err, c.ok, c.failed}, c.changed
}

// wait is get, but that it waits for a reading that is due.
func (c *slots) wait(ctx context.Context) seen {
	ctx, cancel := context.WithTimeout(ctx, slotsWait)
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

// Slots are the cluster's workers as of the last reading, and when that was;
// zero if there was none. It never waits. err is that of the last try.
func (s *Server) Slots() (found Slots, at time.Time, err error) {
	c, _ := s.slots.get()
	return c.Slots, c.at, c.err
}

func (s *Server) workersRoutes() []route {
	return []route{{path: "/v1/workers", about: "the cluster's workers, as `flaked status -o json` has them", waits: true, serve: s.workers}}
}

// stale is the answer when ZooKeeper cannot be read: what it last said, if
// anything.
type stale struct {
	problem
	Last any `json:"last"`
}

func (s *Server) workers(w http.ResponseWriter, r *http.Request) {
	c := s.slots.wait(r.Context())
	switch {
	case c.err != nil:
		writeJSON(w, http.StatusServiceUnavailable, stale{problem{problemText{"UNREACHABLE", oneLine(c.err.Error())}}, c.Doc})
	case c.at.IsZero():
		writeJSON(w, http.StatusServiceUnavailable, stale{problem{problemText{"UNREACHABLE", "ZooKeeper has not answered yet"}}, nil})
	default:
		writeJSON(w, http.StatusOK, c.Doc)
	}
}
