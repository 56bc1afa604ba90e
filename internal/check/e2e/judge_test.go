package e2e

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// history holds every ID that the nodes of one test have issued to its clients.
type history struct {
	began  time.Time
	layout worker.Layout
	conns  atomic.Uint32 // the latest number of a connection

	mu      sync.Mutex // guards answers
	answers []answer
}

func newHistory() *history { return &history{began: time.Now(), layout: worker.Leaf()} }

func (h *history) now() int64 { return time.Since(h.began).Nanoseconds() }

// answer holds consecutive IDs of one reply: first, first+1 ... first+len-1.
type answer struct {
	first      worker.ID
	len        uint16 // 1 or more
	node       uint16 // the node that answered
	conn       uint32 // the connection; 0 if it is unknown
	asked, got int64  // when the client sent the request and read the reply
}

// last returns the highest ID of the answer, or 0 for the zero answer.
func (a answer) last() worker.ID {
	if a.len == 0 {
		return 0
	}
	return a.first + worker.ID(a.len) - 1
}

// record adds the IDs of one reply, in the order in which they were received. An answer ends where the sequence
// field wraps to 0, because the next number may belong to another worker. The last ID of a worker's tick and the
// first ID of the next worker are consecutive numbers.
func (h *history) record(a answer, ids ...worker.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(ids) > 0 {
		n := 1
		for n < len(ids) && n < math.MaxUint16 && ids[n] == ids[0]+worker.ID(n) &&
			ids[n]&(1<<h.layout.SequenceBits-1) != 0 {
			n++
		}
		a.first, a.len = ids[0], uint16(n)
		h.answers = append(h.answers, a)
		ids = ids[n:]
	}
}

// requests returns the answers as requests for values, without the values.
func (h *history) requests() (all []order.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.answers {
		all = append(all, order.Request{Node: int(a.node), Sent: a.asked, Answered: a.got})
	}
	return all
}

// worker returns the worker of an ID, or -1.
func (h *history) worker(id worker.ID) int64 {
	f, err := h.layout.Decode(id)
	if err != nil {
		return -1
	}
	return f.Worker
}

// ms returns the timestamp of an ID of the layout, Unix ms.
func (h *history) ms(id worker.ID) int64 {
	f, _ := h.layout.Decode(id)
	return h.layout.Start(f.Tick)
}

// check fails the test if an ID occurs twice, or is below one of its worker that a client had received before it
// asked. The order on a node is not checked: many tests step clocks.
func (h *history) check(t testing.TB) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.judge(rules{anyOrder: true}).findings {
		t.Errorf("%s: %s", f.check, f.text)
	}
}

// judge returns what violates the rules. It sorts the answers. Those of one connection must be in the order of
// its requests. If the layout has a rollback field, no order is checked: IDs go back along with the clock.
func (h *history) judge(r rules) *verdict {
	r.history = h
	v := &verdict{workers: map[int64]int64{}, highest: map[int64]worker.ID{}, violations: map[check]int64{}}
	if h.layout.RollbackBits == 0 {
		v.inOrder(h.answers, r)
	}
	v.unique(h.answers, r)
	return v
}

// unique sorts all answers by their first ID. An answer holds an ID a second time if it begins at or below the
// highest ID so far.
func (v *verdict) unique(answers []answer, r rules) {
	slices.SortFunc(answers, func(a, b answer) int { return cmp.Compare(a.first, b.first) })
	var highest answer // the answer with the highest ID so far; IDs begin at 1
	for _, a := range answers {
		if a.first <= highest.last() {
			v.found(unique, "%s; and %s", r.describe(highest), r.describe(a))
		}
		if a.last() > highest.last() {
			highest = a
		}
	}
}

// seen has the highest answers that clients have received up to a moment.
type seen struct {
	workers map[int64]answer
	nodes   map[uint16]answer // within the latest era
	conns   map[uint32]answer // the latest one
}

// inOrder checks the order and the timestamps. It goes through the answers in the order of asked, and beside
// them in the order of got. So each answer is compared with those that clients had received before it was asked for.
func (v *verdict) inOrder(answers []answer, r rules) {
	slices.SortStableFunc(answers, func(a, b answer) int { return cmp.Compare(a.asked, b.asked) })
	answered := make([]int32, len(answers)) // their indices in the order of got
	for i := range answered {
		answered[i] = int32(i)
	}
	slices.SortStableFunc(answered, func(i, k int32) int { return cmp.Compare(answers[i].got, answers[k].got) })
	s := seen{map[int64]answer{}, map[uint16]answer{}, map[uint32]answer{}}
	for _, a := range answers {
		v.ids += int64(a.len)
		w := r.worker(a.first)
		if w < 0 || r.worker(a.last()) != w {
			v.found(times, "no such IDs in the layout: %s", r.describe(a))
			continue
		}
		v.workers[w] += int64(a.len)
		v.highest[w] = max(v.highest[w], a.last())
		for ; answers[answered[0]].got < a.asked; answered = answered[1:] {
			s.add(answers[answered[0]], r)
		}
		v.order(a, w, s, r)
		s.conns[a.conn] = a
		v.times(a, r)
	}
}

func (s seen) add(b answer, r rules) {
	if w := r.worker(b.first); w >= 0 && b.last() > s.workers[w].last() {
		s.workers[w] = b
	}
	if era, before := r.era(b), s.nodes[b.node]; era >= 0 && (era != r.era(before) || b.last() > before.last()) {
		s.nodes[b.node] = b
	}
}

// order compares an answer with those before.
func (v *verdict) order(a answer, w int64, s seen, r rules) {
	if before := s.workers[w]; a.first <= before.last() {
		v.found(workerOrder, "%s; after %s", r.describe(a), r.describe(before))
	}
	era := r.era(a)
	if before := s.nodes[a.node]; era >= 0 && era == r.era(before) && a.first <= before.last() {
		v.found(nodeOrder, "%s; after %s", r.describe(a), r.describe(before))
	}
	// A node whose clock went back may acquire another worker, whose IDs are lower. The IDs of one worker must
	// increase in any case.
	before, ok := s.conns[a.conn]
	if ok && a.conn != 0 && a.first <= before.last() &&
		(r.worker(before.first) == w || era >= 0 && era == r.era(before)) {
		v.found(connOrder, "%s; after %s", r.describe(a), r.describe(before))
	}
}

// times checks the timestamps of an answer's first and last ID against rules.times and rules.forbidden.
func (v *verdict) times(a answer, r rules) {
	first, last := r.ms(a.first), r.ms(a.last())
	low, high := int64(math.MinInt64), int64(math.MaxInt64)
	if r.times != nil {
		low, high = r.times(a)
	}
	if first < low || last > high {
		v.found(times, "%s, while its clock showed from %d ms after that to %d ms after", r.describe(a), low-first,
			high-last)
	}
	for _, f := range r.forbidden {
		if f.holds(a) && last >= f.ms {
			v.found(refusals, "%s: %s, and that is %d ms above", f.why, r.describe(a), last-f.ms)
		}
	}
}

// era returns the number of the node's unordered spans that ended before the answer was asked for, or -1 if it was
// asked for within one. Order is checked among answers of one era only.
func (r rules) era(a answer) int {
	if r.anyOrder {
		return -1
	}
	era := 0
	for _, s := range r.unordered {
		if s.holds(a) {
			return -1
		}
		if s.node == a.node && s.to <= a.asked {
			era++
		}
	}
	return era
}

// rules are the inputs of the checks. Uniqueness, and order on workers, need none.
type rules struct {
	*history
	// times returns the lowest and the highest timestamp that an answer may have, both inclusive, in Unix ms. They
	// follow from what the node's clock may have shown between asked and got. nil allows any timestamp.
	times func(a answer) (low, high int64)
	// unordered are the spans in which a node's IDs may go down, because its clock went back and the node acquired
	// another worker. The IDs of one worker must not go down.
	unordered []span
	anyOrder  bool // the spans of all nodes last all the time
	forbidden []forbidden
}

// span selects the answers of a node with from <= asked < to.
type span struct {
	node     uint16
	from, to int64
}

func (s span) holds(a answer) bool { return a.node == s.node && s.from <= a.asked && a.asked < s.to }

// forbidden says that no answer within the span may have a timestamp at or above ms.
type forbidden struct {
	span
	ms  int64 // Unix ms
	why string
}

// finding is one violation of a rule.
type finding struct {
	check check
	text  string
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

// allChecks has the order of a report.
var allChecks = []check{unique, connOrder, workerOrder, nodeOrder, times, refusals}

// verdict is the result of judge.
type verdict struct {
	ids        int64
	workers    map[int64]int64     // number of IDs by worker
	highest    map[int64]worker.ID // highest ID by worker
	violations map[check]int64
	findings   []finding // the first five violations of each check
}

// String returns the verdict in one line.
func (v *verdict) String() string {
	if len(v.violations) == 0 {
		return fmt.Sprintf("%d IDs of %d workers: no violation", v.ids, len(v.workers))
	}
	return fmt.Sprintf("%d IDs of %d workers: %v", v.ids, len(v.workers), v.violations)
}

func (v *verdict) found(c check, format string, args ...any) {
	if v.violations[c]++; v.violations[c] <= 5 {
		v.findings = append(v.findings, finding{c, fmt.Sprintf(format, args...)})
	}
}

// describe returns the answer as text for a finding.
func (h *history) describe(a answer) string {
	s := a.first.String()
	if a.len > 1 {
		s += " to " + a.last().String()
	}
	if f, err := h.layout.Decode(a.first); err == nil {
		s += fmt.Sprintf(" (worker %d, %s, sequence %d)", f.Worker, h.layout.Time(f).UTC().Format("15:04:05.000"),
			f.Sequence)
	}
	return s + fmt.Sprintf(" from node %d on connection %d, asked at %s, answered at %s",
		a.node, a.conn, time.Duration(a.asked), time.Duration(a.got))
}

// epochMs is when the time of Leaf's layout begins, Unix ms.
var epochMs = worker.Leaf().Time(worker.Fields{}).UnixMilli()

// idAt returns an ID of Leaf's layout.
func idAt(tick worker.Tick, w, seq int64) worker.ID {
	id, err := worker.Leaf().Encode(worker.Fields{Tick: tick, Worker: w, Sequence: seq})
	if err != nil {
		panic(err)
	}
	return id
}
