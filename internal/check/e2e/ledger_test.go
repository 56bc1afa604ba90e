package e2e

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

// These are ordered sequences: a plain one and a family. ownerLease is how long an owner may count without ZooKeeper.
const (
	plain, family = "ticks", "msg:*"
	ownerLease    = 3 * time.Second
)

// members are the names of the family that clients ask for.
var members = []string{"msg:alice", "msg:bob", "msg:carol", "msg:dave", "msg:erin"}

// ledger holds all requests for values of named sequences that a site's clients have made. It judges them as history
// judges IDs.
type ledger struct {
	mu       sync.Mutex        // guards the fields below
	modes    map[string]string // by name, or by the pattern of a template or family
	jumps    []int64           // values at which operators let strict sequences go on
	requests []order.Request
	wrong    []string // answers that do not fit their requests
}

// scattered is the mode of a sequence whose values have no order.
const scattered = "scattered"

func newLedger() *ledger { return &ledger{modes: map[string]string{}} }

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

// made notes the mode of a sequence or template.
func (l *ledger) made(name, mode string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.modes[name] = mode
}

// jump notes that an operator lets a strict sequence go on at a value.
func (l *ledger) jump(next int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.jumps = append(l.jumps, next)
}

// add adds requests.
func (l *ledger) add(more ...order.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, more...)
}

// all returns the requests of one name, or all of them for "".
func (l *ledger) all(name string) []order.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.requests), func(r order.Request) bool { return name != "" && r.Name != name })
}

// highest returns the highest value of a sequence that was answered, or 0.
func (l *ledger) highest(name string) (v int64) {
	for _, r := range l.all(name) {
		v = max(v, r.Last)
	}
	return v
}

// question is a request for n values.
type question struct {
	name  string
	text  string
	n     int
	key   string // "": none
	step  int64  // the increment; 0: 1
	pair  bool   // the answer is the first value and the last one
	lines int    // of the answer
	// stale reports, after the answer, that nodes may have forgotten the key. nil: they have not.
	stale func() bool
}

// next asks for one value, list for several, valuesFrom for a range.
func next(name string) question {
	return question{name: name, text: "NEXT " + name + "\n", n: 1, lines: 1}
}

func list(name string, n int) question {
	return question{name: name, text: fmt.Sprintf("NEXT %s %d\n", name, n), n: n, lines: n}
}

func valuesFrom(name string, n int) question {
	return question{name: name, text: fmt.Sprintf("RANGE %s %d\n", name, n), n: n, lines: 1, pair: true}
}

func withKey(name, key string) question {
	return question{name: name, text: fmt.Sprintf("NEXT %s %s\n", name, key), n: 1, lines: 1, key: key}
}

// request sends a request over a connection, and records what came of it. It returns the numbers of the reply, also
// those before an error.
func (s *site) request(c *client, q question) ([]int64, error) {
	r := order.Request{Name: q.name, Node: c.node.id, Sent: s.ids.now(), Key: q.key}
	got, err := q.exchange(c)
	r.Answered = s.ids.now()
	s.values.record(r, q, got, err)
	return got, err
}

// values is request, and returns the number of values.
func (c *client) values(q question) (int, error) {
	got, err := c.node.site.request(c, q)
	if err != nil {
		return len(got), err
	}
	return q.n, nil
}

func (l *ledger) record(r order.Request, q question, got []int64, err error) {
	asked := q.n
	if err != nil {
		q.n = len(got)
	}
	parts, fits := q.split(got)
	stale := q.stale != nil && q.stale()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !fits {
		l.wrong = append(l.wrong, fmt.Sprintf("node %d answers %q with %.200v", r.Node, q.text, got))
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
func (q question) exchange(c *client) (got []int64, err error) {
	if err := c.send(q.text); err != nil {
		return nil, err
	}
	for range q.lines {
		line, err := c.line()
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

// split splits the numbers of the reply into parts without gaps. It reports whether they are what the request asks for.
func (q question) split(got []int64) (all []order.Request, fits bool) {
	step := max(1, q.step)
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

// violations finds values that were answered twice, and answers that are not above all those that had been given before
// their request was sent. Values of a segment rise on each node, over all its connections and processes, the others
// over all nodes.
func (l *ledger) violations() []order.Violation {
	type counter struct {
		name string
		node int
	}
	var once, segments, ordered []order.Request
	strict := map[string][]order.Request{}
	for _, r := range l.all("") {
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
		found = append(found, order.Strict(mine, l.jumps)...)
	}
	return found
}

// check fails the test for violations. A few say enough.
func (l *ledger) check(t testing.TB) {
	for _, v := range firstOf(l.violations(), 5) {
		t.Error(v)
	}
	for _, w := range firstOf(l.wrong, 5) {
		t.Error(w)
	}
}

func firstOf[T any](all []T, n int) []T { return all[:min(n, len(all))] }
