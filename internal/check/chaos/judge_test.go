package chaos

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

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
// All times are nanoseconds since the start of the run, unless a comment says Unix ms.

// Answer holds consecutive IDs of one reply: First, First+1 ... First+Len-1.
type Answer struct {
	First      worker.ID
	Len        uint16 // 1 or more
	Node       uint16 // the node that answered
	Conn       uint32 // the connection; each number is used once in a run
	Asked, Got int64  // when the client sent the request and read the reply
}

// Last returns the highest ID of the answer. Len must not be 0.
func (a Answer) Last() worker.ID { return a.First + worker.ID(a.Len) - 1 }

// record adds the IDs of one reply to all, in the order in which they were received. An Answer
// ends where the sequence field wraps to 0, because the next number may belong to another worker.
// The last ID of a worker's tick and the first ID of the next worker are consecutive numbers, and
// one node may hold both workers.
func record(all []Answer, a Answer, ids []worker.ID) []Answer {
	for len(ids) > 0 {
		n := 1
		for n < len(ids) && n < math.MaxUint16 && ids[n] == ids[0]+worker.ID(n) && ids[n]&(1<<layout.SequenceBits-1) != 0 {
			n++
		}
		a.First, a.Len = ids[0], uint16(n)
		all = append(all, a)
		ids = ids[n:]
	}
	return all
}

// Judge returns what violates the rules. It sorts the answers. Those of one connection must be in
// the order of its requests.
func Judge(answers []Answer, rules Rules) *Verdict {
	v := &Verdict{Workers: map[int64]int64{}, Highest: map[int64]worker.ID{}, Violations: map[Check]int64{}}
	v.inOrder(answers, rules)
	v.unique(answers, rules)
	return v
}

// unique sorts all answers by their first ID. An answer holds an ID a second time if it begins
// at or below the highest ID so far.
func (v *Verdict) unique(answers []Answer, rules Rules) {
	slices.SortFunc(answers, func(a, b Answer) int { return cmp.Compare(a.First, b.First) })
	highest := Answer{Len: 1} // the answer with the highest ID so far; IDs begin at 1
	for _, a := range answers {
		if a.First <= highest.Last() {
			v.found(Unique, "%s; and %s", rules.describe(highest), rules.describe(a))
		}
		if a.Last() > highest.Last() {
			highest = a
		}
	}
}

// inOrder checks the order and the timestamps. It goes through the answers in the order of Asked,
// and beside them in the order of Got. So each answer is compared with those that
// clients had received before it was asked for.
func (v *Verdict) inOrder(answers []Answer, rules Rules) {
	slices.SortStableFunc(answers, func(a, b Answer) int { return cmp.Compare(a.Asked, b.Asked) })
	answered := make([]int32, len(answers)) // their indices in the order of Got
	for i := range answered {
		answered[i] = int32(i)
	}
	slices.SortStableFunc(answered, func(i, k int32) int { return cmp.Compare(answers[i].Got, answers[k].Got) })
	type latest struct {
		Answer
		worker int64
	}
	conns := map[uint32]latest{}
	workers := map[int64]Answer{} // the highest one received so far
	nodes := map[uint16]Answer{}  // likewise, within the latest era
	for _, a := range answers {
		v.Answers++
		v.IDs += int64(a.Len)
		first, err := layout.Decode(a.First)
		last, err2 := layout.Decode(a.Last())
		if err != nil || err2 != nil || last.Worker != first.Worker {
			v.found(Times, "no such IDs in the layout: %s", rules.describe(a))
			continue
		}
		v.Workers[first.Worker] += int64(a.Len)
		v.Highest[first.Worker] = max(v.Highest[first.Worker], a.Last())

		for ; answers[answered[0]].Got < a.Asked; answered = answered[1:] {
			b := answers[answered[0]]
			if f, err := layout.Decode(b.First); err == nil && b.Last() > workers[f.Worker].last() {
				workers[f.Worker] = b
			}
			if era, before := rules.era(b), nodes[b.Node]; era >= 0 && (era != rules.era(before) || b.Last() > before.last()) {
				nodes[b.Node] = b
			}
		}
		if before := workers[first.Worker]; a.First <= before.last() {
			v.found(Worker, "%s; after %s", rules.describe(a), rules.describe(before))
		}
		era := rules.era(a)
		if before := nodes[a.Node]; era >= 0 && era == rules.era(before) && a.First <= before.last() {
			v.found(Node, "%s; after %s", rules.describe(a), rules.describe(before))
		}
		// A node whose clock went back may acquire another worker, whose IDs are
		// lower. The IDs of one worker must increase in any case.
		if before, ok := conns[a.Conn]; ok && a.First <= before.Last() &&
			(before.worker == first.Worker || era >= 0 && era == rules.era(before.Answer)) {
			v.found(Connection, "%s; after %s", rules.describe(a), rules.describe(before.Answer))
		}
		conns[a.Conn] = latest{a, first.Worker}
		v.times(a, layout.Time(first).UnixMilli(), layout.Time(last).UnixMilli(), rules)
	}
}

// times checks the timestamps of an answer's first and last ID, in Unix ms, against
// Rules.Times and Rules.Forbidden.
func (v *Verdict) times(a Answer, first, last int64, rules Rules) {
	low, high := int64(math.MinInt64), int64(math.MaxInt64)
	if rules.Times != nil {
		low, high = rules.Times(a)
	}
	if first < low || last > high {
		v.found(Times, "%s, while its clock showed from %d ms after that to %d ms after", rules.describe(a), low-first, high-last)
	}
	for _, f := range rules.Forbidden {
		if f.holds(a) && last >= f.From {
			v.found(Refusals, "%s: %s, and that is %d ms above", f.Why, rules.describe(a), last-f.From)
		}
	}
}

// era returns the number of the node's Unordered spans that ended before the answer was asked
// for, or -1 if it was asked for within one. Order is checked among answers of one era only.
func (r Rules) era(a Answer) int {
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

// last returns Last, or 0 for the zero Answer.
func (a Answer) last() worker.ID {
	if a.Len == 0 {
		return 0
	}
	return a.Last()
}

// String returns the verdict in one line.
func (v *Verdict) String() string {
	if v.OK() {
		return fmt.Sprintf("%d IDs of %d workers: no violation", v.IDs, len(v.Workers))
	}
	return fmt.Sprintf("%d IDs of %d workers: %v", v.IDs, len(v.Workers), v.Violations)
}

// Rules are the inputs of the checks. Uniqueness, and order on connections and workers, need none.
type Rules struct {
	// Times returns the lowest and the highest timestamp that an answer may have, both
	// inclusive, in Unix ms. They follow from what the node's clock may have shown between
	// Asked and Got. nil allows any timestamp.
	Times func(a Answer) (low, high int64)
	// Unordered are the spans in which a node's IDs may go down, because its clock went
	// back and the node acquired another worker. The IDs of one worker must not go down.
	Unordered []Span
	// Forbidden are the spans in which a node must not issue certain timestamps.
	Forbidden []Forbidden
}

// Span selects the answers of a node with From <= Asked < To, both in ns since the start of
// the run.
type Span struct {
	Node     uint16
	From, To int64
}

func (s Span) holds(a Answer) bool {
	return a.Node == s.Node && s.From <= a.Asked && a.Asked < s.To
}

// Forbidden says that no answer within the span may have a timestamp at or above From. That
// From is in Unix ms. Span.From is in ns since the start of the run.
type Forbidden struct {
	Span
	From int64 // Unix ms
	Why  string
}

// Finding is one violation of a rule.
type Finding struct {
	Check Check
	Text  string
}

// Check names a check, as reports print it.
type Check string

const (
	Unique     Check = "no ID twice"
	Connection Check = "increasing on a connection"
	Worker     Check = "real-time order on a worker"
	Node       Check = "real-time order on a node"
	Times      Check = "timestamps as the clocks were"
	Refusals   Check = "nothing where it must refuse"
)

// Checks are all checks, in the order of a report.
var Checks = []Check{Unique, Connection, Worker, Node, Times, Refusals}

// Verdict is the result of Judge.
type Verdict struct {
	IDs, Answers int64
	Workers      map[int64]int64     // number of IDs by worker
	Highest      map[int64]worker.ID // highest ID by worker
	Violations   map[Check]int64
	// Findings are the first findingsPerCheck violations of each check.
	Findings []Finding
}

// OK reports whether there is no violation.
func (v *Verdict) OK() bool { return len(v.Violations) == 0 }

const findingsPerCheck = 5

func (v *Verdict) found(c Check, format string, args ...any) {
	if v.Violations[c]++; v.Violations[c] <= findingsPerCheck {
		v.Findings = append(v.Findings, Finding{c, fmt.Sprintf(format, args...)})
	}
}

// describe returns the answer as text for a finding.
func (r Rules) describe(a Answer) string {
	s := a.First.String()
	if a.Len > 1 {
		s += " to " + a.Last().String()
	}
	if f, err := layout.Decode(a.First); err == nil {
		s += fmt.Sprintf(" (worker %d, %s, sequence %d)", f.Worker, layout.Time(f).UTC().Format("15:04:05.000"), f.Sequence)
	}
	return s + fmt.Sprintf(" from node %d on connection %d, asked at %s, answered at %s", a.Node, a.Conn, time.Duration(a.Asked), time.Duration(a.Got))
}

func idOf(t testing.TB, tick worker.Tick, w, seq int64) worker.ID {
	t.Helper()
	id, err := layout.Encode(worker.Fields{Tick: tick, Worker: w, Sequence: seq})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// Each row must lead to the violations of want and to no others.
func TestJudgeFindsEachViolation(t *testing.T) {
	epoch := layout.Time(worker.Fields{}).UnixMilli()
	at := func(tick worker.Tick, w, seq int64) worker.ID { return idOf(t, tick, w, seq) }
	for _, row := range []struct {
		name    string
		clients [][]Answer
		rules   Rules
		want    []Check
	}{
		{name: "nothing"},
		{name: "in order", clients: [][]Answer{{{at(9, 1, 0), 5, 0, 1, 0, 1}, {at(9, 1, 5), 1, 0, 1, 2, 3}}}},
		{name: "twice by two nodes at once", want: []Check{Unique}, clients: [][]Answer{
			{{at(9, 1, 0), 1, 0, 1, 0, 9}}, {{at(9, 1, 0), 1, 1, 2, 0, 9}}}},
		{name: "twice on one connection", want: []Check{Unique, Connection, Worker, Node}, clients: [][]Answer{
			{{at(9, 1, 0), 1, 0, 1, 0, 1}, {at(9, 1, 0), 1, 0, 1, 2, 3}}}},
		{name: "the end of a stretch twice", want: []Check{Unique}, clients: [][]Answer{
			{{at(9, 1, 0), 9, 0, 1, 0, 9}}, {{at(9, 1, 8), 5, 1, 2, 0, 9}}}},
		{name: "within a long stretch that others follow in", want: []Check{Unique}, clients: [][]Answer{
			{{at(9, 1, 0), 900, 0, 1, 0, 9}}, {{at(9, 1, 3), 1, 1, 2, 0, 9}}, {{at(9, 1, 899), 1, 2, 3, 0, 9}}}},
		{name: "all of a tick, by two workers of a node", clients: [][]Answer{{{at(9, 1, 0), 8192, 0, 1, 0, 1}, {at(10, 1, 0), 1, 0, 1, 2, 3}}}},
		{name: "the second worker of a node again by its next holder", want: []Check{Unique, Worker}, clients: [][]Answer{
			{{at(9, 1, 0), 8192, 0, 1, 0, 1}}, {{at(9, 2, 7), 1, 1, 2, 2, 3}}}},
		{name: "lower on the connection, answered at once", want: []Check{Connection}, clients: [][]Answer{
			{{at(9, 1, 5), 1, 0, 1, 0, 3}, {at(9, 1, 3), 1, 0, 1, 0, 3}}}},
		{name: "lower on another connection, later", want: []Check{Worker, Node}, clients: [][]Answer{
			{{at(9, 1, 5), 1, 0, 1, 0, 1}}, {{at(9, 1, 3), 1, 0, 2, 2, 3}}}},
		{name: "lower on another connection, meanwhile", clients: [][]Answer{
			{{at(9, 1, 5), 1, 0, 1, 0, 5}}, {{at(9, 1, 3), 1, 0, 2, 2, 3}}}},
		{name: "lower on the same worker by its next holder", want: []Check{Worker}, clients: [][]Answer{
			{{at(9, 1, 5), 1, 0, 1, 0, 1}}, {{at(8, 1, 0), 1, 1, 2, 2, 3}}}},
		{name: "lower on a node that has another worker", want: []Check{Node}, clients: [][]Answer{
			{{at(9, 1, 5), 1, 0, 1, 0, 1}}, {{at(8, 2, 0), 1, 0, 2, 2, 3}}}},
		{name: "the same behind a large step", clients: [][]Answer{
			{{at(9, 1, 5), 1, 0, 1, 0, 1}}, {{at(8, 2, 0), 1, 0, 2, 2, 3}}},
			rules: Rules{Unordered: []Span{{0, 1, 2}}}},
		{name: "lower on the connection behind a large step, by another worker", clients: [][]Answer{
			{{at(9, 1, 5), 1, 0, 1, 0, 3}, {at(8, 2, 0), 1, 0, 1, 2, 3}}}, rules: Rules{Unordered: []Span{{0, 1, 2}}}},
		{name: "lower on the connection behind a large step, by the same worker", want: []Check{Connection}, clients: [][]Answer{
			{{at(9, 1, 5), 1, 0, 1, 0, 3}, {at(8, 1, 0), 1, 0, 1, 2, 3}}}, rules: Rules{Unordered: []Span{{0, 1, 2}}}},
		{name: "lower on the connection within a large step, by the same worker", want: []Check{Connection}, clients: [][]Answer{
			{{at(9, 1, 5), 1, 0, 1, 2, 4}, {at(8, 1, 0), 1, 0, 1, 3, 4}}}, rules: Rules{Unordered: []Span{{0, 1, 9}}}},
		{name: "lower long after", want: []Check{Worker}, clients: [][]Answer{
			{{at(9, 1, 0), 1, 0, 1, 0, 1}}, {{at(3, 2, 0), 1, 1, 2, 2, 3}}, {{at(2, 1, 0), 1, 2, 3, 4, 5}}}},
		{name: "before the clock was there", want: []Check{Times}, clients: [][]Answer{{{at(9, 1, 0), 1, 0, 1, 0, 1}}},
			rules: Rules{Times: func(Answer) (int64, int64) { return epoch + 10, epoch + 20 }}},
		{name: "after the clock was there", want: []Check{Times}, clients: [][]Answer{{{at(21, 1, 0), 1, 0, 1, 0, 1}}},
			rules: Rules{Times: func(Answer) (int64, int64) { return epoch + 10, epoch + 20 }}},
		{name: "when the clock was there", clients: [][]Answer{{{at(20, 1, 0), 1, 0, 1, 0, 1}}},
			rules: Rules{Times: func(Answer) (int64, int64) { return epoch + 10, epoch + 20 }}},
		{name: "beyond its bound", want: []Check{Refusals}, clients: [][]Answer{{{at(20, 1, 0), 1, 0, 1, 4, 6}}},
			rules: Rules{Forbidden: []Forbidden{{Span{0, 3, 5}, epoch + 20, "past M"}}}},
		{name: "below its bound, another node, another time", clients: [][]Answer{
			{{at(19, 1, 0), 1, 0, 1, 4, 6}, {at(20, 1, 1), 1, 0, 1, 5, 7}}, {{at(21, 2, 0), 1, 1, 2, 4, 6}}},
			rules: Rules{Forbidden: []Forbidden{{Span{0, 3, 5}, epoch + 20, "past M"}}}},
		{name: "no ID of the layout", want: []Check{Times}, clients: [][]Answer{{{-5, 1, 0, 1, 0, 1}}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var answers []Answer
			for _, a := range slices.Concat(row.clients...) {
				var ids []worker.ID
				for k := range a.Len {
					ids = append(ids, a.First+worker.ID(k))
				}
				answers = record(answers, a, ids)
			}
			v := Judge(answers, row.rules)
			var got []Check
			for _, c := range Checks {
				if v.Violations[c] > 0 {
					got = append(got, c)
				}
			}
			if row.name == "no ID of the layout" {
				got = slices.DeleteFunc(got, func(c Check) bool { return c == Unique })
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("found %v, want %v: %v", got, row.want, v.Findings)
			}
		})
	}
}
