package web

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/flaked/flaked/internal/check/upgrade"
)

func scrape(t *testing.T, addr string) string {
	t.Helper()
	code, _, body := do(t, "GET", "http://"+addr+"/metrics")
	if code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	problems, err := promlint.New(strings.NewReader(body)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	return body
}

// The file has all metrics of full: go test ./internal/ops/web -update writes it again.
func TestMetrics(t *testing.T) {
	addr, _ := start(t, full())
	do(t, "GET", "http://"+addr+"/v1/workers") // which reads the slots
	do(t, "GET", "http://"+addr+"/nowhere")
	var own strings.Builder
	for line := range strings.Lines(scrape(t, addr)) {
		line = regexp.MustCompile(`^(flaked_cluster_read_timestamp_seconds) 1\.\d+e\+09`).ReplaceAllString(line, "$1 NOW")
		if strings.HasPrefix(line, "flaked_") {
			own.WriteString(line)
		}
	}
	golden(t, "testdata/metrics.txt", own.String())
}

// The metrics with their types and labels stay, and docs/http.md has every metric, and no other.
func TestFrozenMetrics(t *testing.T) {
	s := New(whole(full()))
	addr, _ := serve(t, s)
	do(t, "GET", "http://"+addr+"/v1/workers") // which reads the slots
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]bool)
	for _, row := range regexp.MustCompile("(?m)^- `flaked_[^:]*:").FindAllString(read(t, "../../../docs/http.md"), -1) {
		for _, name := range regexp.MustCompile("flaked_[a-z_]+").FindAllString(row, -1) {
			documented[name] = true
		}
	}
	unseen := make(map[string]bool)
	names := regexp.MustCompile(`(?:(?:gauge|counter|histogram|summary|\bof)\("|Name: "flaked_)(\w+)"`)
	for _, found := range names.FindAllStringSubmatch(read(t, "metrics.go"), -1) {
		unseen["flaked_"+found[1]] = true
	}
	var frozen []string
	for _, f := range families {
		name := f.GetName()
		if !documented[name] {
			t.Errorf("docs/http.md says nothing of %s", name)
		}
		delete(documented, name)
		delete(unseen, name)
		var labels []string
		for _, l := range f.Metric[0].Label {
			labels = append(labels, l.GetName())
		}
		frozen = append(frozen, strings.TrimSpace(fmt.Sprintf("%s %s %s", name, strings.ToLower(f.GetType().String()),
			strings.Join(labels, ","))))
	}
	if len(documented)+len(unseen) > 0 {
		t.Errorf("docs/http.md has %v, which there is not. This test sees no %v", slices.Sorted(maps.Keys(documented)),
			slices.Sorted(maps.Keys(unseen)))
	}
	upgrade.Names(t, "metrics", frozen)
}

func TestFrozenPaths(t *testing.T) {
	var names []string
	for _, r := range New(whole(full())).routes() {
		if !strings.HasPrefix(r.path, "/page") {
			names = append(names, r.path)
		}
	}
	upgrade.Names(t, "paths", names)
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// golden compares a text with a file, or with -update writes the file.
func golden(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := read(t, file); text != want {
		t.Errorf("%s differs from\n%s", file, text)
	}
}
