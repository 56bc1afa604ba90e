//go:build linux

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/figures"
	"github.com/flaked/flaked/internal/load"
)

// measured returns results in which fold multiplies a contender's throughput in every case,
// and divides its latencies and its CPU time for a request. A contender that is not in fold
// has the factor 1.
func measured(rounds int, fold map[Contender]float64) *Results {
	r := &Results{Rounds: rounds, Seconds: 2, When: time.Unix(1_800_000_000, 0).UTC(), Versions: map[string]string{"flaked": "1.2.3"}}
	for _, c := range cases() {
		for round := range rounds {
			weather := 1 + float64(round) // the machine is faster in each round
			for _, who := range c.Who {
				f, ok := fold[who]
				if !ok {
					f = 1
				}
				b := Bench{Seconds: 2, RequestsPerSecond: 100_000 * f * weather, IDsPerSecond: 100_000 * f * weather * float64(c.Batch), ClientCPU: 1}
				b.Latency.P50, b.Latency.P99, b.Latency.P999 = 100/f, 400/f, 800/f
				b.Server = &load.ServerReport{CPU: 1, PerMillion: 5 / f}
				r.Runs = append(r.Runs, Run{c.Name, who, round, b})
			}
		}
	}
	return r
}

func find(t *testing.T, r *Results, wanted string) Verdict {
	t.Helper()
	for _, v := range r.verdicts() {
		if strings.HasPrefix(v.Wanted, wanted) {
			return v
		}
	}
	t.Fatalf("there is no verdict %q", wanted)
	return Verdict{}
}

func TestVerdicts(t *testing.T) {
	const unpipelined = "flaked, 50 connections, no pipelining, TCP: "
	for _, row := range []struct {
		wanted string
		fold   map[Contender]float64
		found  string
		want   Reached
	}{
		{unpipelined + "95 %", map[Contender]float64{flaked: 0.951}, "95.1 %", yes},
		{unpipelined + "95 %", map[Contender]float64{flaked: 0.949}, "94.9 %", no},
		{unpipelined + "ahead of memcached", map[Contender]float64{flaked: 0.9, memcached: 0.8}, "1.12 of", yes},
		{unpipelined + "ahead of memcached", map[Contender]float64{flaked: 0.8, memcached: 0.9}, "0.89 of", no},
		{unpipelined + "ahead of Redis", map[Contender]float64{flaked: 0.8, redis: 0.9}, "0.89 of", no},
		{unpipelined + "p99", map[Contender]float64{flaked: 1, redis: 0.5}, "400 us, Redis 800 us", yes},
		{unpipelined + "p99", map[Contender]float64{flaked: 0.5, redis: 1}, "800 us, Redis 400 us", no},
		{"50 connections on a unix socket", map[Contender]float64{flaked: 2}, "2.00 of", yes},
		{"pipeline 16", map[Contender]float64{flaked: 0.89}, "89.0 %", no},
		{"pipeline 16", map[Contender]float64{flaked: 41, floorC: 80}, "the layout's ceiling binds", yes},
		{"pipeline 100: the", map[Contender]float64{flaked: 20.4}, "4.080 million at 50 %", yes},
		{"pipeline 100: the", map[Contender]float64{flaked: 20}, "4.000 million", no},
		{"pipeline 100, 20 bits", map[Contender]float64{flakedWide: 0.8}, "80.0 %", no},
		{"GET 1000, 20 bits", map[Contender]float64{flakedWide: 0.95}, "95.0 %", yes},
		{"1 connection, no", map[Contender]float64{flaked: 0.9}, "111 %", no},
		{"1 connection, with", map[Contender]float64{flakedSpin: 2.1}, "48 %", yes},
		{"50,000 requests a second: server CPU within", map[Contender]float64{flaked: 0.9}, "111 %", no},
		{"50,000 requests a second: server CPU below that of Redis", map[Contender]float64{flaked: 2}, "50 %", yes},
		{"1.25 x noeqd", map[Contender]float64{flaked: 0.7}, "1.21 x", no},
		{"1.25 x noeqd", map[Contender]float64{flaked: 0.8}, "1.38 x", yes},
		{"10,000 idle", nil, "", unmeasured},
		{"of the IDs", nil, "", unmeasured},
		{"beside a client", nil, "", unmeasured},
	} {
		v := find(t, measured(3, row.fold), row.wanted)
		if v.Reached != row.want || !strings.Contains(v.Found, row.found) {
			t.Errorf("%s: %q, %s; want %q, %s", row.wanted, v.Found, v.Reached, row.found, row.want)
		}
	}
}

func TestVerdictsOfOtherMeasurements(t *testing.T) {
	r := measured(1, nil)
	r.Idle = []Idle{{Who: flaked, Served: 31 << 20}}
	r.Hostile = []Hostile{{Attack: drips, Share: 0.1, Without: r.Runs[0].Bench, With: r.Runs[0].Bench}}
	r.Hostile[0].With.RequestsPerSecond *= 0.86
	if v := find(t, r, "10,000 idle"); v.Reached != no || v.Found != "31.0 MiB" {
		t.Error(v)
	}
	if v := find(t, r, "beside a client that drips"); v.Reached != yes || !strings.Contains(v.Found, "lost 14.0 %") {
		t.Error(v)
	}
	r.Hostile[0].With.Latency.P99 *= 2.1
	if v := find(t, r, "beside a client that drips"); v.Reached != no {
		t.Error(v)
	}
	for i := range r.Runs {
		if r.Runs[i].Case == checked {
			r.Runs[i].Bench.Check = &load.CheckResult{IDs: 5}
		}
	}
	if v := find(t, r, "of the IDs"); v.Reached != yes {
		t.Error(v)
	}
	r.Runs[len(r.Runs)-1].Bench.Check.Duplicates = 1
	if v := find(t, r, "of the IDs"); v.Reached != no {
		t.Error(v)
	}
}

func TestGreedyVerdicts(t *testing.T) {
	a := load.Attacks()[0]
	beside := func(who Contender, p99, longest float64, peak int64) Greedy {
		g := Greedy{Attack: a.Name, Who: who, Peak: peak}
		g.Bench.Latency.P99, g.Bench.Latency.Max = p99, longest
		return g
	}
	for _, row := range []struct {
		name  string
		worst Greedy
		want  Reached
	}{
		{"as wanted", beside(flaked, 300, 99_000, 149<<20), yes},
		{"one p99 of three", beside(flaked, 90_000, 99_000, 1), yes},
		{"a long wait", beside(flaked, 300, 100_000, 1), no},
		{"much memory", beside(flaked, 300, 1, 150<<20), no},
		{"another node's", beside(flakedBefore, 9e6, 9e6, 1<<30), yes},
	} {
		r := &Results{Greedy: []Greedy{beside(flaked, 200, 900, 1), row.worst, beside(flaked, 19_000, 900, 1)}}
		if v := find(t, r, "beside clients that "+a.Name); v.Reached != row.want {
			t.Errorf("%s: %+v", row.name, v)
		}
	}
	r := &Results{Greedy: []Greedy{beside(flaked, 20_000, 21_000, 1)}}
	if v := find(t, r, "beside clients that "+a.Name); v.Reached != no {
		t.Errorf("p99 of 20 ms: %+v", v)
	}
	r.Greedy = append(r.Greedy, beside(flakedBefore, 9e6, 9.5e6, 1<<20))
	if text := r.greedyTable(); !strings.Contains(text, "| flaked, before | 9000.0 | 9500.0 | 1.0 |") || strings.Contains(text, string(flakedGoroutines)) {
		t.Error(text)
	}
	if _, ok := findGreedy(Attack(a.Name)); !ok {
		t.Errorf("%q is not found by its name", a.Name)
	}
	if _, ok := findGreedy(churns); ok {
		t.Errorf("%q is taken for a greedy one", churns)
	}
}

// A run of only the greedy attacks leaves the report and the other tables as they are.
func TestWriteKeepsUnmeasuredTables(t *testing.T) {
	dir := t.TempDir()
	o := options{Options: figures.Options{Docs: filepath.Join(dir, "docs.md")}, report: filepath.Join(dir, "report.md"), plot: filepath.Join(dir, "plot.svg")}
	const empty = "<!-- bench:begin -->\nold\n<!-- bench:end -->\n<!-- greedy:begin -->\nold\n<!-- greedy:end -->\n"
	for _, row := range []struct {
		r             *Results
		bench, greedy bool
	}{{measured(1, nil), true, false}, {&Results{Greedy: []Greedy{{Attack: noAttack.Name, Who: flaked}}}, false, true}} {
		if err := os.WriteFile(o.Docs, []byte(empty), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(o.report)
		if err := row.r.write(o); err != nil {
			t.Fatal(err)
		}
		text, _ := os.ReadFile(o.Docs)
		_, err := os.Stat(o.report)
		if strings.Contains(string(text), "TCP on loopback") != row.bench || strings.Contains(string(text), noAttack.Name) != row.greedy || (err == nil) != row.bench {
			t.Errorf("%s, report: %v", text, err)
		}
	}
}

func TestBeforeAddsContenders(t *testing.T) {
	o := options{only: "GET 1000", before: "/old/flaked", who: "flaked;floor, C"}
	got := o.chosen()[0].Who
	want := []Contender{floorC1000, flaked, flakedRESP, flakedWide, flakedBefore, flakedWideBefore}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if o.before = ""; slices.Contains(o.chosen()[0].Who, flakedBefore) {
		t.Error("there is no other flaked")
	}
}

func TestEmptyResultsAreUnmeasured(t *testing.T) {
	r := &Results{}
	for _, v := range r.verdicts() {
		if v.Reached != unmeasured {
			t.Errorf("%+v", v)
		}
	}
	_ = r.tables("x.svg") + r.report() + r.plot()
}

func TestTables(t *testing.T) {
	r := measured(5, map[Contender]float64{flaked: 41, flakedRESP: 0.5, memcached: 0.25})
	text := r.tables("performance.svg")
	for _, want := range []string{
		"medians of 5 rounds, 2s for each measurement",
		"flaked 1.2.3 on a real ZooKeeper",
		"| floor, C | 300,000 | 1.00 | 300,000 | 1.00 | 300,000 | 1.00 |",
		"| flaked | 12,300,000* | 41.00 |",
		"| 50 | memcached incr | 75,000 | 0.25 | 400 | 1600 | 3200 | 20.00 | 50 % |",
		"![Requests a second beside the C floor's, and p99](performance.svg)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("not in the tables: %s\n%s", want, text)
			break
		}
	}
	for line := range strings.Lines(r.report()) {
		if strings.HasPrefix(line, "|") && strings.Contains(line, "||") && !strings.HasPrefix(line, "|---") {
			t.Errorf("a broken row: %s", line)
		}
	}
	if text := measured(1, nil).tables("x"); !strings.Contains(text, "a trial only") {
		t.Error("a trial does not say that it is one")
	}
}

func TestPlot(t *testing.T) {
	text := measured(1, map[Contender]float64{redis: 0.5}).plot()
	d := xml.NewDecoder(strings.NewReader(text))
	bars := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "rect" {
			bars++
		}
	}
	if bars < 20 || !strings.Contains(text, "Redis INCR") {
		t.Errorf("%d bars", bars)
	}
}

func TestOnlySelectsCases(t *testing.T) {
	chosen := func(only string) []Case { return options{only: only}.chosen() }
	if n := len(chosen("tcp c50,GET")); n != len(pipelines)+1 {
		t.Errorf("%d cases", n)
	}
	if len(chosen("")) != len(cases()) || len(chosen("nothing")) != 0 {
		t.Error("all or none")
	}
}
