package judge

import (
	"fmt"
	"time"

	"github.com/flaked/flaked/worker"
)

// Rules are the inputs of the checks. Uniqueness, and order on connections and workers, need
// only the Layout.
type Rules struct {
	Layout worker.Layout
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
	if f, err := r.Layout.Decode(a.First); err == nil {
		s += fmt.Sprintf(" (worker %d, %s, sequence %d)", f.Worker, r.Layout.Time(f).UTC().Format("15:04:05.000"), f.Sequence)
	}
	return s + fmt.Sprintf(" from node %d on connection %d, asked at %s, answered at %s", a.Node, a.Conn, time.Duration(a.Asked), time.Duration(a.Got))
}
