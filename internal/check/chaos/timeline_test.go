package chaos

import (
	"fmt"
	"sync"
	"time"
)

// event is a line of the timeline.
type event struct {
	at   int64 // ns since the start of the run, like all times here
	who  string
	text string
}

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

func (f *fault) target() string {
	if f.node < 0 {
		return "ZooKeeper"
	}
	return nodeName(f.node)
}

func nodeName(i int) string { return fmt.Sprintf("node %d", i) }

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
