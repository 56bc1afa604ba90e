package main

import (
	"encoding/json"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/poll"
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

// A node of another cluster answers at the address, and says that it is the one that is looked for.
func TestStatusDoesNotUseTheAnswerOfAnotherCluster(t *testing.T) {
	var doc web.Status
	if err := json.Unmarshal([]byte(answer()), &doc); err != nil {
		t.Fatal(err)
	}
	doc.Cluster.UUID = "v"
	text, _ := json.Marshal(doc)
	d := health.DraftOf("prod", exampleCluster(), nil, local(t0))
	d.Cluster.UUID = "u"
	d.Workers = []health.WorkerReport{{Worker: 7, Node: "n1", Host: "here", State: health.Live,
		Address: fakeNode(t, "tcp", "127.0.0.1:0", says(string(text)+"\n"))}}
	(&poll.Asker{Host: "here", Advice: accessAdvice}).AskWorkers(t.Context(), d.Cluster, d.Workers)
	r := d.Complete()
	shown, _ := json.Marshal(r)
	const want = "it belongs to cluster default (v), not to prod (u)"
	if w := r.Workers[0]; w.Says != nil || w.Outcome != health.AnotherNode || strings.Count(string(shown), want) != 2 {
		t.Errorf("%s", shown)
	}
}
