package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/coordinator"
)

func seenNodes(n int) (nodes []clusterview.Seen) {
	for i := range n {
		nodes = append(nodes, clusterview.Seen{Worker: i, Name: fmt.Sprintf("ids-%d", i), Node: "n", State: clusterview.Live, Host: "h", Address: "10.0.0.1:7609", Admin: "10.0.0.1:7610"})
	}
	return nodes
}

func TestSeenCache(t *testing.T) {
	s := seenCache{filepath.Join(t.TempDir(), "flaked", "nodes")}
	want := lastSeen{"zk1:2181", "orders", 1000, 0, seenNodes(3)}
	if _, ok := s.load("zk1:2181", "orders"); ok {
		t.Error("something is loaded before anything was saved")
	}
	s.save(lastSeen{"zk1:2181", "orders", 500, 0, seenNodes(9)})
	s.save(want)
	s.save(lastSeen{"zk1:2181", "other", 1000, 0, seenNodes(1)})
	s.save(lastSeen{"zk2:2181", "orders", 1000, 0, seenNodes(2)})
	if got, ok := s.load("zk1:2181", "orders"); !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %+v, not %+v", ok, got, want)
	}
	// Nothing is loaded for another ZooKeeper or another cluster.
	for _, key := range [][2]string{{"zk1:2181", ""}, {"zk3:2181", "orders"}, {"", "zk1:2181\norders"}} {
		if got, ok := s.load(key[0], key[1]); ok {
			t.Errorf("%q: %+v", key, got)
		}
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil || len(entries) != 3 {
		t.Fatalf("%v, %v", entries, err)
	}
	for _, path := range []string{s.dir, s.path("zk1:2181", "orders")} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

func TestSeenCacheIsBounded(t *testing.T) {
	s := seenCache{t.TempDir()}
	for i := range 3 * maxSeenFiles {
		s.save(lastSeen{fmt.Sprint(i), "orders", 1, 0, seenNodes(1)})
		at := time.Unix(int64(i), 0) // in that order, whatever the clock's resolution
		if err := os.Chtimes(s.path(fmt.Sprint(i), "orders"), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if entries, err := os.ReadDir(s.dir); err != nil || len(entries) > maxSeenFiles {
		t.Errorf("%d files, %v", len(entries), err)
	}
	for i := range 3 * maxSeenFiles {
		if _, ok := s.load(fmt.Sprint(i), "orders"); ok != (i >= 2*maxSeenFiles) {
			t.Errorf("cluster %d of %d is there: %v", i, 3*maxSeenFiles, ok)
		}
	}

	s.save(lastSeen{"zk", "large", 1, 0, seenNodes(60_000)})
	info, err := os.Stat(s.path("zk", "large"))
	got, ok := s.load("zk", "large")
	if err != nil || info.Size() > maxSeenBytes || !ok || len(got.Nodes) < 1000 || len(got.Nodes)+got.Left != 60_000 {
		t.Errorf("%v: %d nodes and %d left of 60,000, %v, %v", ok, len(got.Nodes), got.Left, info.Size(), err)
	}
	s.save(lastSeen{"zk", "huge", 1, 0, []clusterview.Seen{{Name: strings.Repeat("x", 2*maxSeenBytes)}}})
	if got, ok := s.load("zk", "huge"); !ok || len(got.Nodes) != 0 || got.Left != 1 {
		t.Errorf("%v, %d nodes, %d left", ok, len(got.Nodes), got.Left)
	}
}

// A file that cannot be written or read counts as missing.
func TestUnusableCacheCountsAsMissing(t *testing.T) {
	last := lastSeen{"zk", "orders", 1, 0, seenNodes(1)}
	file := writeFile(t, "file", "")
	for _, s := range []seenCache{{}, {filepath.Join(file, "below")}} {
		s.save(last)
		if got, ok := s.load("zk", "orders"); ok {
			t.Errorf("%q: %+v", s.dir, got)
		}
	}
	s := seenCache{t.TempDir()}
	other := seenCache{t.TempDir()}
	other.save(lastSeen{"zk", "elsewhere", 1, 0, seenNodes(1)})
	foreign, err := os.ReadFile(other.path("zk", "elsewhere"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"nothing": "", "half": `{"connect":"zk","cluster":"orders","saved_`, "another cluster's": string(foreign),
		"of no time": `{"connect":"zk","cluster":"orders"}`, "too much": strings.Repeat(" ", maxSeenBytes+1), "a list": "[]",
	} {
		if err := os.WriteFile(s.path("zk", "orders"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, ok := s.load("zk", "orders"); ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
	s.save(last)
	if _, ok := s.load("zk", "orders"); !ok {
		t.Error("it is not written over")
	}
}

// The cache keeps nodes that run, and nodes that may be started again.
func TestSeenIn(t *testing.T) {
	r := judged("orders", exampleCluster(), []coordinator.Entry{
		liveEntry(0, 0), liveEntry(1, 0, dead), liveEntry(2, 0, stopped), liveEntry(3, 0, released), liveEntry(4, 0, dead, expired), {Worker: 5, Absent: true},
	}, local(t0))
	last := seenIn("zk", r, time.UnixMilli(77))
	var states []string
	for i, n := range last.Nodes {
		states = append(states, n.State)
		if n.Worker != i || n.Node != "n1" || n.Host != "h1" || n.Address != "10.0.0.1:7609" || n.Name != "api" {
			t.Errorf("%+v", n)
		}
	}
	if strings.Join(states, " ") != "live disconnected stopped" || last.SavedMs != 77 || last.Connect != "zk" || last.Cluster != "orders" {
		t.Errorf("%+v", last)
	}
}
