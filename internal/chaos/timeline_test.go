package chaos

import (
	"fmt"
	"sync"
	"time"
)

// event is a line of the timeline.
type event struct {
	at   int64 // ns since the start of the run, as all moments here
	who  string
	text string
}

// fault is one that was made.
type fault struct {
	kind   *kind
	node   int // -1: ZooKeeper
	detail string
	// injected, healed, and when the node answered with IDs again and was
	// connected again. 0: not yet.
	injected, healed, served, well int64
	// impaired is from when on the node may refuse; 0 where it must not. Until
	// leased it may once more, for a lease that has ended.
	impaired, leased int64
	// The node must not issue beyond a bound that it cannot push any more:
	// bound after stopped, until released. Only of some kinds.
	bound             time.Duration
	stopped, released int64
	// partial: it hit one of several workers, and the others may have gone on.
	partial bool
}

func (f *fault) target() string {
	if f.node < 0 {
		return "ZooKeeper"
	}
	return nodeName(f.node)
}

func nodeName(i int) string { return fmt.Sprintf("node %d", i) }

// timeline is what happened.
type timeline struct {
	began time.Time

	mu     sync.Mutex // guards what follows
	events []event
	faults []*fault
	exits  []exit
	wrong  []string // what must not have happened, other than to IDs
}

func (l *timeline) now() int64 { return time.Since(l.began).Nanoseconds() }

func (l *timeline) note(who, format string, args ...any) {
	at := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, event{at, who, fmt.Sprintf(format, args...)})
}

// violated notes what fails the run.
func (l *timeline) violated(who, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	l.note(who, "WRONG: %s", text)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, who+": "+text)
}

// open begins a fault.
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

// set notes that it is so now.
func (l *timeline) set(what *int64) {
	at := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	*what = at
}
