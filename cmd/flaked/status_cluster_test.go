package main

import (
	"encoding/json"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/ops/view"
	"github.com/flaked/flaked/internal/ops/web"
)

// foreign starts a node of the cluster other. asked counts what it is asked besides its cluster.
func foreign(t *testing.T, reply string) (addr string, asked *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked = new(atomic.Int64)
	return fakeNodeOf(t, func() string { return "other" }, l, func(string) string { asked.Add(1); return reply }), asked
}

func TestNodeOfAnotherClusterIsNotUsed(t *testing.T) {
	addr, asked := foreign(t, "7\n")
	for _, args := range []string{"get", "get 3", "seq next order", "healthcheck", "decode 5", "bench --conns 1"} {
		r := call(t, "", append(strings.Fields(args), "--addr", addr, "--cluster", "prod")...)
		r.wants(t, exitFailure, "", "this node belongs to cluster other (uuid-of-other), not to prod. Correct the addresses")
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("it was asked %d times", n)
	}
	for args, code := range map[string]int{"get --cluster other": exitOK, "get --cluster uuid-of-other": exitOK, "get": exitOK,
		"get --cluster a/b": exitUsage} {
		if r := call(t, "", append(strings.Fields(args), "--addr", addr)...); r.code != code {
			t.Errorf("%s: %d %s", args, r.code, r.stderr)
		}
	}
}

// The address of the node goes to one of another cluster while it is under load.
func TestBenchEndsAtTheClusterOfTheFirstConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var moved atomic.Bool
	asked, count := 0, counting()
	addr := fakeNodeOf(t, func() string {
		if moved.Load() {
			return "other"
		}
		return "prod"
	}, l, func(line string) string {
		if asked++; asked == 5 {
			moved.Store(true)
			return ""
		}
		return count(line)
	})
	r := call(t, "", "bench", "--addr", addr, "--conns", "1", "--warmup", "0s", "--duration", "1s")
	r.wants(t, exitFailure, "WRONGNODE ", "WRONGNODE: "+addr+" answered -WRONGNODE reason=other-cluster this node belongs to cluster "+
		"other (uuid-of-other), not to prod (uuid-of-prod). Correct the addresses: --addr")
	if asked != 5 {
		t.Errorf("it was asked %d times", asked)
	}
}

func TestStatusOfTwoClusters(t *testing.T) {
	a, b := node.ClusterSnapshot{Name: "prod", UUID: "u"}, node.ClusterSnapshot{Name: "prod", UUID: "v"}
	c, none := node.ClusterSnapshot{Name: "test", UUID: "w"}, node.ClusterSnapshot{}
	two := "the addresses belong to two clusters: h0 to prod (u) and h"
	for _, row := range []struct {
		name, wanted string
		clusters     []node.ClusterSnapshot
		failed       int // -1: none
		err          string
	}{
		{"one", "", []node.ClusterSnapshot{a, none, a}, -1, ""},
		{"two", "", []node.ClusterSnapshot{a, none, c}, -1, two + "2 to test (w)."},
		{"of the same name", "prod", []node.ClusterSnapshot{a, b}, -1, two + "1 to prod (v)."},
		{"by name", "prod", []node.ClusterSnapshot{a, c}, 1, ""},
		{"by UUID", "v", []node.ClusterSnapshot{a, b}, 0, ""},
	} {
		var found []view.WorkerReport
		for i := range row.clusters {
			found = append(found, view.WorkerReport{Address: "h" + string(rune('0'+i)), Says: &view.Answer{}})
		}
		err := oneCluster(row.wanted, found, row.clusters)
		if (err == nil) != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: %v", row.name, err)
		}
		for i, w := range found {
			if (w.Says == nil) != (i == row.failed) || w.Says == nil && !strings.Contains(w.Why, "it belongs to cluster ") {
				t.Errorf("%s: node %d: %+v", row.name, i, w)
			}
		}
	}
}

// A node of another cluster answers at the address, and says that it is the one that is looked for.
func TestStatusDoesNotUseTheAnswerOfAnotherCluster(t *testing.T) {
	var doc web.Status
	if err := json.Unmarshal([]byte(answer()), &doc); err != nil {
		t.Fatal(err)
	}
	doc.Cluster.UUID = "v"
	text, _ := json.Marshal(doc)
	r := judged("prod", exampleCluster(), nil, local(t0))
	r.Cluster.UUID = "u"
	r.Workers = []view.WorkerReport{{Worker: 7, Node: "n1", Host: "here", State: view.Live,
		Address: fakeNode(t, "tcp", "127.0.0.1:0", says(string(text)+"\n"))}}
	a := newAsker(nil, nil)
	a.host = "here"
	a.askWorkers(t.Context(), r.Cluster, r.Workers)
	r.Judge()
	shown, _ := json.Marshal(r)
	const want = "it belongs to cluster default (v), not to prod (u)"
	if w := r.Workers[0]; w.Says != nil || w.Asked != view.AnotherNode || strings.Count(string(shown), want) != 2 {
		t.Errorf("%s", shown)
	}
}
