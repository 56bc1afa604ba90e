//go:build unix

package harness

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"

	"github.com/flaked/flaked/internal/check/order"
	"github.com/flaked/flaked/worker"
)

// The judge checks the IDs that clients received against these rules:
//
//   - No ID was issued twice.
//   - IDs increase on each connection.
//   - IDs increase in real time on each worker and on each node.
//   - Timestamps agree with what the node's clock showed at that moment.
//   - A node issued nothing while it had to refuse.
//
// All times are nanoseconds since the history began, unless a comment says Unix ms.

// History holds every ID that the nodes of one test have issued to its clients.
type History struct {
	Began  time.Time
	layout worker.Layout
	conns  atomic.Uint32 // the latest number of a connection

	mu      sync.Mutex // guards answers
	Answers []Answer
}

func NewHistory() *History { return &History{Began: time.Now(), layout: worker.Leaf()} }

func (h *History) Now() int64 { return time.Since(h.Began).Nanoseconds() }

// Answer holds consecutive IDs of one reply: first, first+1 ... first+len-1.
type Answer struct {
	first      worker.ID
	len        uint16 // 1 or more
	Node       uint16 // the node that answered
	conn       uint32 // the connection; 0 if it is unknown
	Asked, Got int64  // when the client sent the request and read the reply
}

// last returns the highest ID of the answer, or 0 for the zero answer.
func (a Answer) last() worker.ID {
	if a.len == 0 {
		return 0
	}
	return a.first + worker.ID(a.len) - 1
}

// Record adds the IDs of one reply, in the order in which they were received. An answer ends where the sequence
// field wraps to 0, because the next number may belong to another worker. The last ID of a worker's tick and the
// first ID of the next worker are consecutive numbers.
func (h *History) Record(a Answer, ids ...worker.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(ids) > 0 {
		n := 1
		for n < len(ids) && n < math.MaxUint16 && ids[n] == ids[0]+worker.ID(n) &&
			ids[n]&(1<<h.layout.SequenceBits-1) != 0 {
			n++
		}
		a.first, a.len = ids[0], uint16(n)
		h.Answers = append(h.Answers, a)
		ids = ids[n:]
	}
}

// Requests returns the answers as requests for values, without the values.
func (h *History) Requests() (all []order.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.Answers {
		all = append(all, order.Request{Node: int(a.Node), Sent: a.Asked, Answered: a.Got})
	}
	return all
}

// Worker returns the worker of an ID, or -1.
func (h *History) Worker(id worker.ID) int64 {
	f, err := h.layout.Decode(id)
	if err != nil {
		return -1
	}
	return f.Worker
}

// Ms returns the timestamp of an ID of the layout, Unix ms.
func (h *History) Ms(id worker.ID) int64 {
	f, _ := h.layout.Decode(id)
	return h.layout.Start(f.Tick)
}

// check fails the test if an ID occurs twice, or is below one of its worker that a client had received before it
// asked. The order on a node is not checked: many tests step clocks.
func (h *History) check(t testing.TB) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.Judge(Rules{anyOrder: true}).Findings {
		t.Errorf("%s: %s", f.Check, f.Text)
	}
}

// Judge returns what violates the rules. It sorts the answers. Those of one connection must be in the order of
// its requests. If the layout has a rollback field, no order is checked: IDs go back along with the clock.
func (h *History) Judge(r Rules) *Verdict {
	r.History = h
	v := &Verdict{Workers: map[int64]int64{}, Highest: map[int64]worker.ID{}, Violations: map[check]int64{}}
	if h.layout.RollbackBits == 0 {
		v.inOrder(h.Answers, r)
	}
	v.unique(h.Answers, r)
	return v
}

// unique sorts all answers by their first ID. An answer holds an ID a second time if it begins at or below the
// highest ID so far.
func (v *Verdict) unique(answers []Answer, r Rules) {
	slices.SortFunc(answers, func(a, b Answer) int { return cmp.Compare(a.first, b.first) })
	var highest Answer // the answer with the highest ID so far; IDs begin at 1
	for _, a := range answers {
		if a.first <= highest.last() {
			v.found(unique, "%s; and %s", r.describe(highest), r.describe(a))
			v.again(highest, a)
		}
		if a.last() > highest.last() {
			highest = a
		}
	}
}

// again counts the IDs of an answer that are also in the other one.
func (v *Verdict) again(other, a Answer) {
	at := max(other.Got, a.Got)
	if v.Again == 0 {
		v.AgainFrom = at
	}
	v.Again += int64(min(a.last(), other.last()) - a.first + 1)
	v.AgainFrom, v.AgainTo = min(v.AgainFrom, at), max(v.AgainTo, at)
}

// seen has the highest answers that clients have received up to a moment.
type seen struct {
	workers map[int64]Answer
	nodes   map[uint16]Answer // within the latest era
	conns   map[uint32]Answer // the latest one
}

// inOrder checks the order and the timestamps. It goes through the answers in the order of asked, and beside
// them in the order of got. So each answer is compared with those that clients had received before it was asked for.
func (v *Verdict) inOrder(answers []Answer, r Rules) {
	slices.SortStableFunc(answers, func(a, b Answer) int { return cmp.Compare(a.Asked, b.Asked) })
	answered := make([]int32, len(answers)) // their indices in the order of got
	for i := range answered {
		answered[i] = int32(i)
	}
	slices.SortStableFunc(answered, func(i, k int32) int { return cmp.Compare(answers[i].Got, answers[k].Got) })
	s := seen{map[int64]Answer{}, map[uint16]Answer{}, map[uint32]Answer{}}
	for _, a := range answers {
		v.ids += int64(a.len)
		w := r.Worker(a.first)
		if w < 0 || r.Worker(a.last()) != w {
			v.found(times, "no such IDs in the layout: %s", r.describe(a))
			continue
		}
		v.Workers[w] += int64(a.len)
		v.Highest[w] = max(v.Highest[w], a.last())
		for ; answers[answered[0]].Got < a.Asked; answered = answered[1:] {
			s.add(answers[answered[0]], r)
		}
		v.order(a, w, s, r)
		s.conns[a.conn] = a
		v.times(a, r)
	}
}

func (s seen) add(b Answer, r Rules) {
	if w := r.Worker(b.first); w >= 0 && b.last() > s.workers[w].last() {
		s.workers[w] = b
	}
	if era, before := r.era(b), s.nodes[b.Node]; era >= 0 && (era != r.era(before) || b.last() > before.last()) {
		s.nodes[b.Node] = b
	}
}

// order compares an answer with those before.
func (v *Verdict) order(a Answer, w int64, s seen, r Rules) {
	if before := s.workers[w]; a.first <= before.last() {
		v.found(workerOrder, "%s; after %s", r.describe(a), r.describe(before))
	}
	era := r.era(a)
	if before := s.nodes[a.Node]; era >= 0 && era == r.era(before) && a.first <= before.last() {
		v.found(nodeOrder, "%s; after %s", r.describe(a), r.describe(before))
	}
	// A node whose clock went back may acquire another worker, whose IDs are lower. The IDs of one worker must
	// increase in any case.
	before, ok := s.conns[a.conn]
	if ok && a.conn != 0 && a.first <= before.last() &&
		(r.Worker(before.first) == w || era >= 0 && era == r.era(before)) {
		v.found(connOrder, "%s; after %s", r.describe(a), r.describe(before))
	}
}

// times checks the timestamps of an answer's first and last ID against rules.times and rules.forbidden.
func (v *Verdict) times(a Answer, r Rules) {
	first, last := r.Ms(a.first), r.Ms(a.last())
	low, high := int64(math.MinInt64), int64(math.MaxInt64)
	if r.Times != nil {
		low, high = r.Times(a)
	}
	if first < low || last > high {
		v.found(times, "%s, while its clock showed from %d ms after that to %d ms after", r.describe(a), low-first,
			high-last)
	}
	for _, f := range r.Forbidden {
		if f.holds(a) && last >= f.Ms {
			v.found(refusals, "%s: %s, and that is %d ms above", f.Why, r.describe(a), last-f.Ms)
		}
	}
}

// era returns the number of the node's unordered spans that ended before the answer was asked for, or -1 if it was
// asked for within one. Order is checked among answers of one era only.
func (r Rules) era(a Answer) int {
	if r.anyOrder {
		return -1
	}
	era := 0
	for _, s := range r.Unordered {
		if s.holds(a) {
			return -1
		}
		if s.Node == a.Node && s.To <= a.Asked {
			era++
		}
	}
	return era
}

// Rules are the inputs of the checks. Uniqueness, and order on workers, need none.
type Rules struct {
	*History
	// Times returns the lowest and the highest timestamp that an answer may have, both inclusive, in Unix ms. They
	// follow from what the node's clock may have shown between asked and got. nil allows any timestamp.
	Times func(a Answer) (low, high int64)
	// Unordered are the spans in which a node's IDs may go down, because its clock went back and the node acquired
	// another worker. The IDs of one worker must not go down.
	Unordered []Span
	anyOrder  bool // the spans of all nodes last all the time
	Forbidden []Forbidden
}

// Span selects the answers of a node with from <= asked < to.
type Span struct {
	Node     uint16
	From, To int64
}

func (s Span) holds(a Answer) bool { return a.Node == s.Node && s.From <= a.Asked && a.Asked < s.To }

// Forbidden says that no answer within the span may have a timestamp at or above ms.
type Forbidden struct {
	Span
	Ms  int64 // Unix ms
	Why string
}

// finding is one violation of a rule.
type finding struct {
	Check check
	Text  string
}

// check names a check, as reports print it.
type check string

const (
	unique      check = "no ID twice"
	connOrder   check = "increasing on a connection"
	workerOrder check = "real-time order on a worker"
	nodeOrder   check = "real-time order on a node"
	times       check = "timestamps as the clocks were"
	refusals    check = "nothing where it must refuse"
)

// AllChecks has the order of a report.
var AllChecks = []check{unique, connOrder, workerOrder, nodeOrder, times, refusals}

// Verdict is the result of judge.
type Verdict struct {
	ids        int64
	Workers    map[int64]int64     // number of IDs by worker
	Highest    map[int64]worker.ID // highest ID by worker
	Violations map[check]int64
	Findings   []finding // the first five violations of each check
	// Again is the number of IDs that were issued twice. Clients received them again from AgainFrom to AgainTo.
	Again, AgainFrom, AgainTo int64
}

// String returns the verdict in one line.
func (v *Verdict) String() string {
	if len(v.Violations) == 0 {
		return fmt.Sprintf("%d IDs of %d workers: no violation", v.ids, len(v.Workers))
	}
	return fmt.Sprintf("%d IDs of %d workers: %v", v.ids, len(v.Workers), v.Violations)
}

func (v *Verdict) found(c check, format string, args ...any) {
	if v.Violations[c]++; v.Violations[c] <= 5 {
		v.Findings = append(v.Findings, finding{c, fmt.Sprintf(format, args...)})
	}
}

// describe returns the answer as text for a finding.
func (h *History) describe(a Answer) string {
	s := a.first.String()
	if a.len > 1 {
		s += " to " + a.last().String()
	}
	if f, err := h.layout.Decode(a.first); err == nil {
		s += fmt.Sprintf(" (worker %d, %s, sequence %d)", f.Worker, h.layout.Time(f).UTC().Format("15:04:05.000"),
			f.Sequence)
	}
	return s + fmt.Sprintf(" from node %d on connection %d, asked at %s, answered at %s",
		a.Node, a.conn, time.Duration(a.Asked), time.Duration(a.Got))
}

// EpochMs is the epoch of Leaf's layout, Unix ms.
var EpochMs = worker.Leaf().Time(worker.Fields{}).UnixMilli()

// IDAt returns an ID of Leaf's layout.
func IDAt(tick worker.Tick, w, seq int64) worker.ID {
	id, err := worker.Leaf().Encode(worker.Fields{Tick: tick, Worker: w, Sequence: seq})
	if err != nil {
		panic(err)
	}
	return id
}
