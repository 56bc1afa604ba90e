package judge

import (
	"fmt"
	"time"

	"github.com/flaked/flaked/worker"
)

// Rules are what answers are judged by. Uniqueness, and order on connections
// and workers, need none.
type Rules struct {
	Layout worker.Layout
	// Times returns between which times, Unix ms, the timestamps of an answer
	// must lie: what the node's clock may have shown between Asked and Got.
	// nil: any.
	Times func(a Answer) (low, high int64)
	// Unordered are the stretches in which a node's IDs may go back, because its
	// clock did and it took another worker. Those of one worker may not.
	Unordered []Span
	// Forbidden are the stretches in which a node must not answer with certain
	// timestamps.
	Forbidden []Forbidden
}

// Span is what was asked of a node from From on, and before To.
type Span struct {
	Node     uint16
	From, To int64
}

func (s Span) holds(a Answer) bool {
	return a.Node == s.Node && s.From <= a.Asked && a.Asked < s.To
}

// Forbidden says that within the span no timestamp is From or above.
type Forbidden struct {
	Span
	From int64 // Unix ms
	Why  string
}

// Finding is something that was wrong.
type Finding struct {
	Check Check
	Text  string
}

// Check is what was looked at.
type Check string

// The checks.
const (
	Unique     Check = "no ID twice"
	Connection Check = "increasing on a connection"
	Worker     Check = "real-time order on a worker"
	Node       Check = "real-time order on a node"
	Times      Check = "timestamps as the clocks were"
	Refusals   Check = "nothing where it must refuse"
)

// Checks are all of them, in the order of a report.
var Checks = []Check{Unique, Connection, Worker, Node, Times, Refusals}

// Verdict is what came of judging.
type Verdict struct {
	IDs, Answers int64
	Workers      map[int64]int64     // IDs by worker
	Highest      map[int64]worker.ID // likewise
	Violations   map[Check]int64
	// Findings are the first few violations of each check.
	Findings []Finding
}

// OK tells whether all was right.
func (v *Verdict) OK() bool { return len(v.Violations) == 0 }

const findingsPerCheck = 5

func (v *Verdict) found(c Check, format string, args ...any) {
	if v.Violations[c]++; v.Violations[c] <= findingsPerCheck {
		v.Findings = append(v.Findings, Finding{c, fmt.Sprintf(format, args...)})
	}
}

// describe is an answer in words.
func (r Rules) describe(a Answer) string {
	s := a.First.String()
	if a.Len > 1 {
		s += " to " + a.Last().String()
	}
	if f, err := r.Layout.Decode(a.First); err == nil {
		s += fmt.Sprintf(" (worker %d, %s, sequence %d)", f.Worker, r.Layout.Time(f).UTC().Format("15:04:05.000"), f.Sequence)
	}
	return s + fmt.Sprintf(" from node %d on connection %d, asked at %s, answered at %s", a.Node, a.Conn, time.Duration(a.Asked), time.Duration(a.Got))
}
