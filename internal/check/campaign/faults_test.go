package campaign

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// kind is a kind of fault.
type kind struct {
	name string
	// With serves, the node must answer with IDs during the whole fault. With atFirst, it
	// must do so until run calls mayRefuse, or until the bound of bounded has ended.
	serves, atFirst bool
	// With untilWell, a node that serves again may refuse once more until it is connected.
	// ZooKeeper may tell it only then that its lease has ended. With fromDisk this applies
	// only if ZooKeeper was away, so that the node started from its state directory alone.
	untilWell, fromDisk bool
	// back is the time after the end of the fault within which the node must serve again, if
	// there is no other fault. 0 means healthyWithin. With registers, the node needs a new
	// worker for that, and must wait while registration is frozen.
	back      time.Duration
	registers bool
	least     time.Duration // the shortest duration of the fault
	// run makes a fault: it injects the fault, waits and ends it. Its error means that the
	// campaign could not make the fault.
	run func(x *attack) error
}

// attack is one fault while run makes it.
type attack struct {
	ctx   context.Context // when it ends, run must end the fault
	rng   *rand.Rand
	kind  *kind
	m     *machine // nil for ZooKeeper
	c     *campaign
	fault *fault // nil before begin
}

// begin records the beginning of the fault. run calls it just before it injects the fault.
func (x *attack) begin(format string, args ...any) {
	node := -1
	if x.m != nil {
		node = x.m.ID
	}
	x.fault = x.c.open(x.kind, node, fmt.Sprintf(format, args...))
}

// hold blocks for d, or until the time for faults is over.
func (x *attack) hold(d time.Duration) { harness.Pass(x.ctx, d) }

// holdFor is hold for a time that is drawn.
func (x *attack) holdFor(low, high time.Duration) { x.hold(x.between(low, high)) }

// mayRefuse records that the node may refuse from now on, until it serves again.
func (x *attack) mayRefuse() { x.c.set(&x.fault.impaired) }

// bounded blocks while a fault keeps the node from extending a bound, for the time lasts.
// The bound is at most bound ahead of the clock, and it ends at the time until. The node must
// serve before until, and must not issue timestamps above the bound.
func (x *attack) bounded(bound time.Duration, until int64, lasts time.Duration) {
	x.c.mu.Lock()
	x.fault.bound, x.fault.stopped, x.fault.impaired = bound, x.c.now(), until
	x.c.mu.Unlock()
	x.hold(lasts)
	x.c.set(&x.fault.released)
}

// between draws a duration from low to high. Its logarithm is uniformly distributed, so that
// short and long durations are drawn equally often.
func (x *attack) between(low, high time.Duration) time.Duration {
	d := float64(low) * math.Pow(float64(high)/float64(low), x.rng.Float64())
	return time.Duration(d).Round(time.Millisecond)
}

// needsZooKeeper reports whether a node needs ZooKeeper to serve again after the fault.
func (k *kind) needsZooKeeper() bool { return k.back >= confirmed && (!k.fromDisk || k.registers) }

// fault is a fault that the campaign made.
type fault struct {
	kind   *kind
	node   int // -1: ZooKeeper
	detail string
	// The fault began at injected, and the campaign ended it at healed. The node answered
	// with IDs again from served on, and was connected again at well. 0 means not yet. For
	// a fault of ZooKeeper, well is the time at which the nodes had fresh leases again.
	injected, healed, served, well int64
	// The node may refuse from impaired until served. If impaired is 0, the node must not
	// refuse. If its lease has ended, it may refuse again until leased.
	impaired, leased int64
	// Some kinds keep the node from extending a bound. From stopped until released the node
	// must not issue timestamps later than stopped + bound. 0 for other kinds.
	bound             time.Duration
	stopped, released int64
}

// touches reports whether the fault was under way at any time between from and to.
func (f *fault) touches(from, to int64) bool {
	return f.injected <= to && (f.well == 0 || f.well >= from)
}

func (f *fault) target() string {
	if f.node < 0 {
		return "ZooKeeper"
	}
	return nodeName(f.node)
}

func nodeName(i int) string { return fmt.Sprintf("n%d", i) }

// event is a line of the timeline.
type event struct {
	at        int64 // ns since the start of the run, like all times here
	who, text string
}

// timeline records the events of a run.
type timeline struct {
	began time.Time

	mu     sync.Mutex // guards the fields below
	events []event
	faults []*fault
	exits  []exit
	wrong  []string // findings; conclude adds those of the judge
}

func (l *timeline) now() int64 { return time.Since(l.began).Nanoseconds() }

func (l *timeline) note(who, format string, args ...any) {
	at := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, event{at, who, fmt.Sprintf(format, args...)})
}

// violated records a finding, which fails the run.
func (l *timeline) violated(who, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	l.note(who, "WRONG: %s", text)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, who+": "+text)
}

// open records the beginning of a fault.
func (l *timeline) open(k *kind, node int, detail string) *fault {
	f := &fault{kind: k, node: node, detail: detail, injected: l.now()}
	if !k.serves && !k.atFirst {
		f.impaired = f.injected
	}
	l.mu.Lock()
	l.faults = append(l.faults, f)
	l.mu.Unlock()
	l.note(f.target(), "%s %s", k.name, detail)
	return f
}

// set stores the current time in what, one of the times of a fault.
func (l *timeline) set(what *int64) {
	at := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	*what = at
}

// anyFault reports whether a fault fits.
func (l *timeline) anyFault(fits func(*fault) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.faults {
		if fits(f) {
			return true
		}
	}
	return false
}
