package web

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flaked/flaked/internal/check/upgrade"
	"github.com/flaked/flaked/internal/core/seq"
)

func TestFrozenPaths(t *testing.T) {
	s, err := New(whole(full()))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range s.routes() {
		if !strings.HasPrefix(r.path, "/page") {
			names = append(names, r.path)
		}
	}
	upgrade.Names(t, "paths", names)
}

// The metrics, with their types and labels.
func TestFrozenMetrics(t *testing.T) {
	cfg := whole(full())
	cfg.Sequences = func() seq.Report {
		r := someSequences()
		r.Refused = map[seq.Reason]int64{seq.CeilingReached: 1}
		for _, mode := range []seq.Mode{seq.Ordered, seq.Strict} {
			u := used(string(mode), 1)
			u.Record.Mode = mode
			r.Sequences = append(r.Sequences, u)
		}
		return r
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := serve(t, s)
	do(t, "GET", "http://"+addr+"/v1/workers") // which reads the slots
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	unseen := metricsOfTheSource(t)
	var names []string
	for _, f := range families {
		delete(unseen, f.GetName())
		var labels []string
		for _, l := range f.Metric[0].Label {
			labels = append(labels, l.GetName())
		}
		names = append(names, strings.TrimSpace(fmt.Sprintf("%s %s %s", f.GetName(),
			strings.ToLower(f.GetType().String()), strings.Join(labels, ","))))
	}
	for _, name := range slices.Sorted(maps.Keys(unseen)) {
		t.Errorf("this test sees no %s", name)
	}
	upgrade.Names(t, "metrics", names)
}
