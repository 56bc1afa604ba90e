// Package trace judges the traces of nodes by a table of allowed steps: from which stage a step may come, which rules
// of docs/design.md must hold then, and what the step changes. docs/spec has models of the same
// rules. Nothing here comes from flaked's own code.
package trace

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Line is a step of a trace: see docs/testing.md.
type Line struct {
	File, Text, Step string
	run              string
	boot             int64
	words            map[string]string
	lacks            string // the first word that a rule asked for and that is missing or no number
}

// parse returns the line. A line that is none of a trace has the step "".
func parse(file, text string) *Line {
	l := &Line{File: file, Text: text, words: map[string]string{}}
	for word := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(word, "=")
		l.words[key] = value
	}
	l.boot, l.run = l.int("boot"), l.word("run")
	if l.lacks == "" {
		l.Step = l.word("step")
	}
	return l
}

func (l *Line) word(key string) string {
	value, ok := l.words[key]
	if !ok {
		l.lacks = cmp.Or(l.lacks, key)
	}
	return value
}

func (l *Line) is(key string) bool { return l.word(key) == "true" }

func (l *Line) int(key string) int64 {
	n, err := strconv.ParseInt(l.word(key), 10, 64)
	if err != nil {
		l.lacks = cmp.Or(l.lacks, key)
	}
	return n
}

// Violation is a step that the table does not allow after another one. Before may be nil.
type Violation struct {
	Rule, Says   string
	Before, Line *Line
}

func (v Violation) String() string {
	s := fmt.Sprintf("%s: %s", v.Rule, v.Says)
	if v.Before != nil {
		s += fmt.Sprintf("\n    %s: %s", v.Before.File, v.Before.Text)
	}
	return s + fmt.Sprintf("\n    %s: %s", v.Line.File, v.Line.Text)
}

// Verdict is the result of Judge: how many steps of each kind were judged, how often each rule was, and how often it
// was broken. Of each rule the first five violations are listed.
type Verdict struct {
	Violations           []Violation
	Steps, Rules, Broken map[string]int
}

// String returns the counts, also of rules that were never judged.
func (v *Verdict) String() string {
	steps, broken := 0, 0
	for _, n := range v.Steps {
		steps += n
	}
	for _, n := range v.Broken {
		broken += n
	}
	return fmt.Sprintf("traces: %d steps, %d violations %v\n  steps: %v\n  rules: %v\n", steps, broken, v.Broken,
		v.Steps,
		v.Rules)
}

// world is the state that follows from the steps so far.
type world struct {
	*Verdict
	cluster Cluster
	runs    map[string]*process
	nodes   map[string]*node
	tenures map[int64][]*tenure   // by worker
	freezes map[int64]*Line       // by incarnation: the last step that froze registration
	blocks  map[string][]*block   // by the ID of the record
	owners  map[string]*ownership // by name: the last one
	putBack map[string]*Line      // by file: an old state was put there, and no process has saved another since
	// putBacks are all old states that were put back.
	putBacks []*Line
}

// Cluster has what the rules need of a cluster: the longest lease, the confirming time, how long a worker stays with
// its holder after the lease bound, and how far ahead the bound of a worker that was given up may be.
type Cluster struct{ Lease, Confirm, Grace, Cooldown time.Duration }

// Judge judges the traces of all nodes of a cluster, on one machine, by name.
func Judge(traces map[string]io.Reader, cluster Cluster) (*Verdict, error) {
	w := &world{Verdict: &Verdict{Steps: map[string]int{}, Rules: map[string]int{}, Broken: map[string]int{}},
		cluster: cluster,
		runs:    map[string]*process{}, nodes: map[string]*node{}, tenures: map[int64][]*tenure{},
		freezes: map[int64]*Line{},
		blocks:  map[string][]*block{}, owners: map[string]*ownership{}, putBack: map[string]*Line{}}
	var all []*Line
	for file, r := range traces {
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			all = append(all, parse(file, lines.Text()))
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	slices.SortStableFunc(all, func(a, b *Line) int { return cmp.Compare(a.boot, b.boot) })
	for name, row := range table {
		w.Steps[name] = 0
		for _, r := range row.rules {
			w.Rules[r.number] = 0
		}
	}
	for _, l := range all {
		w.take(l)
	}
	w.disjoint()
	return w.Verdict, nil
}

// take judges a step, and takes over what it changes.
func (w *world) take(l *Line) {
	row, ok := table[l.Step]
	p := w.runs[l.run]
	if l.Step == "start" {
		p = &process{stage: seeking, versions: map[int64]bool{}, writes: map[string]*Line{},
			ends: map[int64]*Line{}}
		w.runs[l.run] = p
	}
	if !ok || p == nil && l.Step != "put-back" {
		w.found("step", "no such step, or its process has not started", nil, l)
		return
	}
	x := &at{w: w, process: p, Line: l}
	w.Steps[l.Step]++
	if p != nil && row.from != "" && !strings.Contains(row.from, p.stage) {
		w.found("stage", fmt.Sprintf("%s comes from %s, not from %s", l.Step, row.from, p.stage), p.since, l)
	}
	for _, r := range row.rules {
		if r.when != nil && !r.when(x) {
			continue
		}
		w.Rules[r.number]++
		x.before = nil
		if !r.holds(x) {
			w.found(r.number, r.says, cmp.Or(x.before, p.since), l)
		}
	}
	if row.changes != nil {
		row.changes(x)
	}
	if l.lacks != "" {
		w.found("words", "the step lacks "+l.lacks, nil, l)
	}
	if p != nil && row.to != "" {
		p.stage, p.since = row.to, l
	}
}

func (w *world) found(rule, says string, before, l *Line) {
	if w.Broken[rule]++; w.Broken[rule] <= 5 {
		w.Violations = append(w.Violations, Violation{rule, says, before, l})
	}
}
