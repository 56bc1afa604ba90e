//go:build unix

package harness

import (
	"slices"
	"testing"

	"github.com/flaked/flaked/worker"
)

// shown10to20 are the rules where the clock showed ticks 10 to 20.
var shown10to20 = Rules{Times: func(Answer) (int64, int64) { return EpochMs + 10, EpochMs + 20 }}

// judgeRows: each row must lead to the violations of want and to no others. An answer is its first ID, the number of
// IDs, node, connection, and the times asked and got.
var judgeRows = []struct {
	name    string
	clients [][]Answer
	rules   Rules
	want    []check
	again   int64 // the IDs that were issued twice
}{
	{name: "nothing"},
	{name: "in order", clients: [][]Answer{{{IDAt(9, 1, 0), 5, 0, 1, 0, 1}, {IDAt(9, 1, 5), 1, 0, 1, 2, 3}}}},
	{name: "twice by two nodes at once", again: 1, want: []check{unique}, clients: [][]Answer{
		{{IDAt(9, 1, 0), 1, 0, 1, 0, 9}}, {{IDAt(9, 1, 0), 1, 1, 2, 0, 9}}}},
	{name: "twice on one connection", again: 1, want: []check{unique, connOrder, workerOrder, nodeOrder},
		clients: [][]Answer{{{IDAt(9, 1, 0), 1, 0, 1, 0, 1}, {IDAt(9, 1, 0), 1, 0, 1, 2, 3}}}},
	{name: "the end of a stretch twice", again: 1, want: []check{unique}, clients: [][]Answer{
		{{IDAt(9, 1, 0), 9, 0, 1, 0, 9}}, {{IDAt(9, 1, 8), 5, 1, 2, 0, 9}}}},
	{name: "within a long stretch that others follow in", again: 2, want: []check{unique}, clients: [][]Answer{
		{{IDAt(9, 1, 0), 900, 0, 1, 0, 9}}, {{IDAt(9, 1, 3), 1, 1, 2, 0, 9}}, {{IDAt(9, 1, 899), 1, 2, 3, 0, 9}}}},
	{name: "all of a tick, by two workers of a node", clients: [][]Answer{
		{{IDAt(9, 1, 0), 8192, 0, 1, 0, 1}, {IDAt(10, 1, 0), 1, 0, 1, 2, 3}},
	}},
	{name: "the second worker of a node again by its next holder", again: 1, want: []check{unique, workerOrder},
		clients: [][]Answer{
			{{IDAt(9, 1, 0), 8192, 0, 1, 0, 1}}, {{IDAt(9, 2, 7), 1, 1, 2, 2, 3}}}},
	{name: "lower on the connection, answered at once", want: []check{connOrder}, clients: [][]Answer{
		{{IDAt(9, 1, 5), 1, 0, 1, 0, 3}, {IDAt(9, 1, 3), 1, 0, 1, 0, 3}}}},
	{name: "lower on another connection, later", want: []check{workerOrder, nodeOrder}, clients: [][]Answer{
		{{IDAt(9, 1, 5), 1, 0, 1, 0, 1}}, {{IDAt(9, 1, 3), 1, 0, 2, 2, 3}}}},
	{name: "lower on another connection, meanwhile", clients: [][]Answer{
		{{IDAt(9, 1, 5), 1, 0, 1, 0, 5}}, {{IDAt(9, 1, 3), 1, 0, 2, 2, 3}}}},
	{name: "lower on the same worker by its next holder", want: []check{workerOrder}, clients: [][]Answer{
		{{IDAt(9, 1, 5), 1, 0, 1, 0, 1}}, {{IDAt(8, 1, 0), 1, 1, 2, 2, 3}}}},
	{name: "lower on a node that has another worker", want: []check{nodeOrder}, clients: [][]Answer{
		{{IDAt(9, 1, 5), 1, 0, 1, 0, 1}}, {{IDAt(8, 2, 0), 1, 0, 2, 2, 3}}}},
	{name: "the same behind a large step", clients: [][]Answer{
		{{IDAt(9, 1, 5), 1, 0, 1, 0, 1}}, {{IDAt(8, 2, 0), 1, 0, 2, 2, 3}}},
		rules: Rules{Unordered: []Span{{0, 1, 2}}}},
	{name: "lower on the connection behind a large step, by another worker", clients: [][]Answer{
		{{IDAt(9, 1, 5), 1, 0, 1, 0, 3}, {IDAt(8, 2, 0), 1, 0, 1, 2, 3}}}, rules: Rules{Unordered: []Span{{0, 1, 2}}}},
	{name: "lower on the connection behind a large step, by the same worker", want: []check{connOrder},
		clients: [][]Answer{
			{{IDAt(9, 1, 5), 1, 0, 1, 0, 3}, {IDAt(8, 1, 0), 1, 0, 1, 2, 3}}},
		rules: Rules{Unordered: []Span{{0, 1, 2}}}},
	{name: "lower on the connection within a large step, by the same worker", want: []check{connOrder},
		clients: [][]Answer{
			{{IDAt(9, 1, 5), 1, 0, 1, 2, 4}, {IDAt(8, 1, 0), 1, 0, 1, 3, 4}}},
		rules: Rules{Unordered: []Span{{0, 1, 9}}}},
	{name: "lower long after", want: []check{workerOrder}, clients: [][]Answer{
		{{IDAt(9, 1, 0), 1, 0, 1, 0, 1}}, {{IDAt(3, 2, 0), 1, 1, 2, 2, 3}}, {{IDAt(2, 1, 0), 1, 2, 3, 4, 5}}}},
	{name: "before the clock was there", want: []check{times}, clients: [][]Answer{{{IDAt(9, 1, 0), 1, 0, 1, 0, 1}}},
		rules: shown10to20},
	{name: "after the clock was there", want: []check{times}, clients: [][]Answer{{{IDAt(21, 1, 0), 1, 0, 1, 0, 1}}},
		rules: shown10to20},
	{name: "when the clock was there", clients: [][]Answer{{{IDAt(20, 1, 0), 1, 0, 1, 0, 1}}},
		rules: shown10to20},
	{name: "beyond its bound", want: []check{refusals}, clients: [][]Answer{{{IDAt(20, 1, 0), 1, 0, 1, 4, 6}}},
		rules: Rules{Forbidden: []Forbidden{{Span{0, 3, 5}, EpochMs + 20, "past M"}}}},
	{name: "below its bound, another node, another time", clients: [][]Answer{
		{{IDAt(19, 1, 0), 1, 0, 1, 4, 6}, {IDAt(20, 1, 1), 1, 0, 1, 5, 7}}, {{IDAt(21, 2, 0), 1, 1, 2, 4, 6}}},
		rules: Rules{Forbidden: []Forbidden{{Span{0, 3, 5}, EpochMs + 20, "past M"}}}},
	{name: "no ID of the layout", again: 1, want: []check{times}, clients: [][]Answer{{{-5, 1, 0, 1, 0, 1}}}},
}

func TestJudgeFindsEachViolation(t *testing.T) {
	for _, row := range judgeRows {
		t.Run(row.name, func(t *testing.T) {
			h := NewHistory()
			for _, a := range slices.Concat(row.clients...) {
				var ids []worker.ID
				for k := range a.len {
					ids = append(ids, a.first+worker.ID(k))
				}
				h.Record(a, ids...)
			}
			v := h.Judge(row.rules)
			var got []check
			for _, c := range AllChecks {
				if v.Violations[c] > 0 {
					got = append(got, c)
				}
			}
			if row.name == "no ID of the layout" {
				got = slices.DeleteFunc(got, func(c check) bool { return c == unique })
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("found %v, want %v: %v", got, row.want, v.Findings)
			}
			if v.Again != row.again {
				t.Errorf("%d IDs came again, want %d", v.Again, row.again)
			}
		})
	}
}
