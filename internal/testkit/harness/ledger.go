//go:build unix

package harness

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/check/order"
)

// These are ordered sequences: a plain one and a family. OwnerLease is how long an owner may count without ZooKeeper.
const (
	Plain, Family = "ticks", "msg:*"
	OwnerLease    = 3 * time.Second
)

// Members are the names of the family that clients ask for.
var Members = []string{"msg:alice", "msg:bob", "msg:carol", "msg:dave", "msg:erin"}

// ledger holds all requests for values of named sequences that a site's clients have made. It judges them as history
// judges IDs.
type ledger struct {
	mu       sync.Mutex        // guards the fields below
	modes    map[string]string // by name, or by the pattern of a template or family
	Jumps    []int64           // values at which operators let strict sequences go on
	requests []order.Request
	Wrong    []string // answers that do not fit their requests
}

// scattered is the mode of a sequence whose values have no order.
const scattered = "scattered"

func NewLedger() *ledger { return &ledger{modes: map[string]string{}} }

// mode returns the mode of the sequence of that name. "" is segment.
func (l *ledger) mode(name string) string {
	if mode, ok := l.modes[name]; ok {
		return mode
	}
	for pattern, mode := range l.modes {
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok && strings.HasPrefix(name, prefix) {
			return mode
		}
	}
	return ""
}

// Made notes the mode of a sequence or template.
func (l *ledger) Made(name, mode string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.modes[name] = mode
}

// Jump notes that an operator lets a strict sequence go on at a value.
func (l *ledger) Jump(next int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Jumps = append(l.Jumps, next)
}

// Add adds requests.
func (l *ledger) Add(more ...order.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, more...)
}

// All returns the requests of one name, or all of them for "".
func (l *ledger) All(name string) []order.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.requests), func(r order.Request) bool { return name != "" && r.Name != name })
}

// Highest returns the highest value of a sequence that was answered, or 0.
func (l *ledger) Highest(name string) (v int64) {
	for _, r := range l.All(name) {
		v = max(v, r.Last)
	}
	return v
}

// Question is a request for n values.
type Question struct {
	name  string
	text  string
	n     int
	key   string // "": none
	Step  int64  // the increment; 0: 1
	pair  bool   // the answer is the first value and the last one
	lines int    // of the answer
	// Stale reports, after the answer, that nodes may have forgotten the key. nil: they have not.
	Stale func() bool
}

// Next asks for one value, List for several, ValuesFrom for a range.
func Next(name string) Question {
	return Question{name: name, text: "NEXT " + name + "\n", n: 1, lines: 1}
}

func List(name string, n int) Question {
	return Question{name: name, text: fmt.Sprintf("NEXT %s %d\n", name, n), n: n, lines: n}
}

func ValuesFrom(name string, n int) Question {
	return Question{name: name, text: fmt.Sprintf("RANGE %s %d\n", name, n), n: n, lines: 1, pair: true}
}

func WithKey(name, key string) Question {
	return Question{name: name, text: fmt.Sprintf("NEXT %s %s\n", name, key), n: 1, lines: 1, key: key}
}

// Request sends a request over a connection, and records what came of it. It returns the numbers of the reply, also
// those before an error.
func (s *Site) Request(c *Client, q Question) ([]int64, error) {
	r := order.Request{Name: q.name, Node: c.Node.ID, Sent: s.IDs.Now(), Key: q.key}
	got, err := q.exchange(c)
	r.Answered = s.IDs.Now()
	s.Values.record(r, q, got, err)
	return got, err
}

// Values is request, and returns the number of values.
func (c *Client) Values(q Question) (int, error) {
	got, err := c.Node.Site.Request(c, q)
	if err != nil {
		return len(got), err
	}
	return q.n, nil
}

func (l *ledger) record(r order.Request, q Question, got []int64, err error) {
	asked := q.n
	if err != nil {
		q.n = len(got)
	}
	parts, fits := q.split(got)
	stale := q.Stale != nil && q.Stale()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !fits {
		l.Wrong = append(l.Wrong, fmt.Sprintf("node %d answers %q with %.200v", r.Node, q.text, got))
	}
	if stale {
		r.Lost, r.Key = int64(asked), ""
		l.requests = append(l.requests, r)
		return
	}
	for _, part := range parts {
		part.Node, part.Sent, part.Answered, part.Key = r.Node, r.Sent, r.Answered, r.Key
		l.requests = append(l.requests, part)
	}
	if err != nil && mayHaveBeenServed(err) {
		r.Lost = int64(asked - len(got))
		l.requests = append(l.requests, r)
	}
}

// exchange sends a request and returns the numbers of the reply, also those before an error.
func (q Question) exchange(c *Client) (got []int64, err error) {
	if err := c.send(q.text); err != nil {
		return nil, err
	}
	for range q.lines {
		line, err := c.Line()
		if err != nil {
			return got, err
		}
		for word := range strings.FieldsSeq(line) {
			v, err := strconv.ParseInt(word, 10, 64)
			if err != nil {
				return got, err
			}
			got = append(got, v)
		}
	}
	return got, nil
}

// split splits the numbers of the reply into parts without gaps. It reports whether the request asks for these.
func (q Question) split(got []int64) (all []order.Request, fits bool) {
	step := max(1, q.Step)
	if q.pair && q.n > 0 {
		if len(got) != 2 || got[1]-got[0] != int64(q.n-1)*step {
			return nil, false
		}
		return []order.Request{{Name: q.name, First: got[0], Last: got[1]}}, true
	}
	for i, v := range got {
		switch k := len(all) - 1; {
		case k >= 0 && v == all[k].Last+step:
			all[k].Last = v
		case i > 0 && v <= all[k].Last:
			return nil, false
		default:
			all = append(all, order.Request{Name: q.name, First: v, Last: v})
		}
	}
	return all, len(got) == q.n
}

// mayHaveBeenServed reports whether a node may have taken numbers for a request that failed.
func mayHaveBeenServed(err error) bool {
	var dial *net.OpError
	notSent := errors.As(err, &dial) && dial.Op == "dial"
	return !notSent && (!isRefusal(err) || strings.Contains(err.Error(), "reason=unknown"))
}

// Violations finds values that were answered twice, and answers that are not above all those that had been given before
// their request was sent. Values of a segment rise on each node, over all its connections and processes, the others
// over all nodes.
func (l *ledger) Violations() []order.Violation {
	type counter struct {
		name string
		node int
	}
	var once, segments, ordered []order.Request
	strict := map[string][]order.Request{}
	for _, r := range l.All("") {
		switch l.mode(r.Name) {
		case "ordered":
			ordered = append(ordered, r)
		case "strict":
			strict[r.Name] = append(strict[r.Name], r)
		case scattered:
			once = append(once, r)
		default:
			segments = append(segments, r)
		}
	}
	found := slices.Concat(order.Twice(slices.Concat(once, segments)),
		order.Rising(segments, func(r order.Request) counter { return counter{r.Name, r.Node} }),
		order.Rising(ordered, func(r order.Request) string { return r.Name }))
	for _, mine := range strict {
		found = append(found, order.Strict(mine, l.Jumps)...)
	}
	return found
}

// check fails the test for violations. A few say enough.
func (l *ledger) check(t testing.TB) {
	for _, v := range firstOf(l.Violations(), 5) {
		t.Error(v)
	}
	for _, w := range firstOf(l.Wrong, 5) {
		t.Error(w)
	}
}

func firstOf[T any](all []T, n int) []T { return all[:min(n, len(all))] }
