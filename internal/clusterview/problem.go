package clusterview

import (
	"slices"
	"strings"
)

// Severity says how urgent a problem is.
type Severity string

const (
	// Critical: a node refuses to serve, is down, or will soon refuse.
	Critical Severity = "critical"
	// Warning: IDs are served, and something needs attention.
	Warning Severity = "warning"
)

// Problem is something that needs attention. Scripts rely on its JSON.
type Problem struct {
	Severity Severity `json:"severity"`
	// Text says what is wrong, without a full stop. Advice says what to do, in sentences.
	Text   string `json:"text"`
	Advice string `json:"advice"`
}

// String returns the sentences of a problem.
func (p Problem) String() string { return strings.TrimSpace(p.Text + ". " + p.Advice) }

// problemList gathers problems.
type problemList []Problem

func (l *problemList) add(severity Severity, text, advice string) {
	*l = append(*l, Problem{severity, text, advice})
}

// workers adds a problem that these workers have, unless there are none. one and many follow
// the names of one worker and of several.
func (l *problemList) workers(severity Severity, found []WorkerReport, one, many, advice string) {
	switch len(found) {
	case 0:
	case 1:
		l.add(severity, Whom(found)+" "+one, advice)
	default:
		l.add(severity, Whom(found)+" "+many, advice)
	}
}

// sorted returns the critical problems, then the others, each in the order in which they were added.
// It is never nil, so that JSON has a list.
func (l problemList) sorted() []Problem {
	worstFirst := append([]Problem{}, l...)
	slices.SortStableFunc(worstFirst, func(a, b Problem) int { return rank(a.Severity) - rank(b.Severity) })
	return worstFirst
}

func rank(s Severity) int { return slices.Index([]Severity{Critical, Warning}, s) }
