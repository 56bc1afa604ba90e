package judge

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/flaked/flaked/worker"
)

var leaf = worker.Leaf()

// epoch is the time of the layout's tick 0, in Unix ms.
var epoch = leaf.Time(worker.Fields{}).UnixMilli()

func id(t testing.TB, tick worker.Tick, w, seq int64) worker.ID {
	t.Helper()
	id, err := leaf.Encode(worker.Fields{Tick: tick, Worker: w, Sequence: seq})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// recorded writes each client's answers to a file, and returns the paths of the files.
func recorded(t testing.TB, clients ...[]Answer) (paths []string) {
	t.Helper()
	dir := t.TempDir()
	for i, answers := range clients {
		path := filepath.Join(dir, fmt.Sprint(i))
		r, err := NewRecorder(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range answers {
			var ids []worker.ID
			for k := range a.Len {
				ids = append(ids, a.First+worker.ID(k))
			}
			r.Record(leaf, a.Node, a.Conn, a.Asked, a.Got, ids)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// Each row must lead to the violations of want and to no others.
func TestJudgeFindsEachViolation(t *testing.T) {
	at := func(tick worker.Tick, w, seq int64) worker.ID { return id(t, tick, w, seq) }
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
			row.rules.Layout = leaf
			v, err := Judge(recorded(t, row.clients...), row.rules)
			if err != nil {
				t.Fatal(err)
			}
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

// The answers are sorted in chunks of 64, with one duplicate ID at a random place.
func TestSortedFindsTheOneDuplicate(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 50 {
		var clients [3][]Answer
		next := id(t, 1000, 3, 0)
		for i := range 500 {
			n := uint16(rng.IntN(5) + 1)
			c := rng.IntN(3)
			clients[c] = append(clients[c], Answer{next, n, 0, uint32(c), int64(i), int64(i)})
			next += worker.ID(n) + worker.ID(rng.IntN(2))
		}
		twice := clients[0][rng.IntN(len(clients[0]))]
		clients[1] = append(clients[1], Answer{twice.Last(), 1, 0, 1, 1000, 1000})
		files, err := sorted(recorded(t, clients[0], clients[1], clients[2]), t.TempDir(), byFirst, 64)
		if err != nil {
			t.Fatal(err)
		}
		m, err := newMerge(files, byFirst)
		if err != nil {
			t.Fatal(err)
		}
		count, overlaps, before := 0, 0, Answer{Len: 1}
		for a := range m.all() {
			if a.First < before.First {
				t.Fatal("not sorted")
			}
			if a.First <= before.Last() {
				overlaps++
			}
			before = a
			count++
		}
		if err := m.close(); err != nil || count != 501 || overlaps != 1 {
			t.Fatalf("%d answers, %d overlaps, %v", count, overlaps, err)
		}
	}
}

// A file that ends in the middle of a record must be an error. It must not pass.
func TestJudgeRefusesDamagedFiles(t *testing.T) {
	paths := recorded(t, []Answer{{id(t, 9, 1, 0), 5, 0, 1, 0, 1}})
	if err := os.Truncate(paths[0], answerSize-1); err != nil {
		t.Fatal(err)
	}
	if _, err := Judge(paths, Rules{Layout: leaf}); err == nil {
		t.Error("no error")
	}
}

func BenchmarkJudge(b *testing.B) {
	const clients, each = 15, 20_000
	var all [clients][]Answer
	for c := range all {
		for i := range each {
			asked := int64(i) * int64(time.Millisecond)
			all[c] = append(all[c], Answer{id(b, worker.Tick(i+1), int64(c), 0), 100, uint16(c), uint32(c), asked, asked + 5000})
		}
	}
	paths := recorded(b, all[:]...)
	for b.Loop() {
		v, err := Judge(paths, Rules{Layout: leaf})
		if err != nil || !v.OK() {
			b.Fatal(v, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*clients*each), "ns/answer")
}
