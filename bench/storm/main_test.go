//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/flaked/flaked/worker"
)

func TestCheckFindsWhatMustNotHappen(t *testing.T) {
	for _, row := range []struct {
		name   string
		events []event
		want   string // "": nothing is wrong
	}{
		{"two nodes", []event{{Node: 1, Worker: 4, IDs: []worker.ID{1, 2}}, {Node: 2, Worker: 5, IDs: []worker.ID{3}}}, ""},
		{"a comeback", []event{{Node: 1, Worker: 4, IDs: []worker.ID{1}}, {Node: 1, Worker: 4, IDs: []worker.ID{2}}}, ""},
		{"an ID twice", []event{{Node: 1, Worker: 4, IDs: []worker.ID{1}}, {Node: 2, Worker: 5, IDs: []worker.ID{1}}}, "ID 1 was issued twice"},
		{"an ID twice by one node", []event{{Node: 1, Worker: 4, IDs: []worker.ID{1, 1}}}, "ID 1 was issued twice"},
		{"one worker for two", []event{{Node: 1, Worker: 4}, {Node: 2, Worker: 4}}, "nodes 1 and 2 have worker 4"},
		{"another worker", []event{{Node: 1, Worker: 4}, {Node: 1, Worker: 5}}, "node 1 had worker 4 and came back with 5"},
		{"an end", []event{{Node: 1, Ended: "fenced"}}, "node 1 ended: fenced"},
	} {
		s := storm{issued: map[string]map[worker.ID]bool{}, workers: map[string]map[int]int{}}
		got := ""
		for _, e := range row.events {
			if err := s.check("c", e); err != nil {
				got = err.Error()
			}
		}
		if (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
		if err := s.check("another cluster", row.events[0]); err != nil && row.want == "" {
			t.Errorf("%s: in another cluster: %v", row.name, err)
		}
	}
}

func TestWritesOfANewLeaderBeginAnew(t *testing.T) {
	for _, row := range []struct{ from, to, want int64 }{
		{1<<32 + 5, 1<<32 + 9, 4}, {1<<32 + 5, 2<<32 + 3, 3}, {1<<32 + 5, 1<<32 + 5, 0},
	} {
		if got := writesBetween(row.from, row.to); got != row.want {
			t.Errorf("from %x to %x: %d, want %d", row.from, row.to, got, row.want)
		}
	}
}
