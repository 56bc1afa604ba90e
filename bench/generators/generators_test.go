//go:build linux

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/worker"
)

func TestWrongCountsDuplicatesAndBackwardCalls(t *testing.T) {
	for _, row := range []struct {
		name            string
		given           [][]span
		twice, backward int64
	}{
		{"none", nil, 0, 0},
		{"singles", [][]span{{{1, 1}, {3, 1}}, {{2, 1}, {4, 1}}}, 0, 0},
		{"one twice, by two", [][]span{{{1, 1}, {3, 1}}, {{3, 1}, {4, 1}}}, 1, 0},
		{"one three times", [][]span{{{3, 1}}, {{3, 1}}, {{3, 1}}}, 2, 0},
		{"by the same", [][]span{{{3, 1}, {3, 1}}}, 1, 0},
		{"backward", [][]span{{{5, 1}, {4, 1}, {6, 1}}}, 0, 1},
		{"backward and twice", [][]span{{{5, 1}, {4, 1}}, {{4, 1}}}, 1, 1},
		{"runs", [][]span{{{0, 64}, {128, 64}}, {{64, 64}}}, 0, 0},
		{"runs that overlap", [][]span{{{0, 64}}, {{60, 10}}}, 4, 0},
		{"a run within one", [][]span{{{0, 64}}, {{10, 5}, {63, 1}, {64, 1}}}, 6, 0},
		{"negative", [][]span{{{-5, 1}, {-4, 1}}, {{-5, 1}}}, 1, 0},
	} {
		if twice, backward := wrong(row.given); twice != row.twice || backward != row.backward {
			t.Errorf("%s: %d twice, %d backward; want %d, %d", row.name, twice, backward, row.twice, row.backward)
		}
	}
}

// Every contender makes IDs of the current time, and stops.
func TestContendersMakeCurrentIDs(t *testing.T) {
	b := make(buffers, 1<<20)
	for _, c := range append(append(bound(), free()...), advance()...) {
		s, err := c.start()
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		id, n := s.draw()
		if age := time.Since(time.UnixMilli(s.madeAt(id))); n < 1 || age < -10*time.Second || age > 10*time.Second {
			t.Errorf("%s: %d is %s old", c.Name, id, age)
		}
		m := b.flatOut(s, 2, 5*time.Millisecond)
		if m.IDs == 0 || m.Calls == 0 || m.Seconds <= 0 {
			t.Errorf("%s: %+v", c.Name, m)
		}
		if c.ours() && m.Twice+m.Backward > 0 {
			t.Errorf("%s: %+v", c.Name, m)
		}
		if s.stop != nil {
			s.stop()
		}
	}
}

// The ring gives no ID twice to several goroutines that take more IDs than it holds.
func TestRingGivesNoIDTwice(t *testing.T) {
	l := worker.Leaf()
	l.WorkerBits, l.SequenceBits = 2, 20
	s, err := inAdvance(l).start()
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	m := make(buffers, 4*ringSize).flatOut(s, 4, time.Minute)
	if m.Twice+m.Backward > 0 || m.IDs < ringSize {
		t.Errorf("%+v", m)
	}
}

// measured returns results in which each measurement takes 1 s, of CPU and of wall time. For
// contenders in cpu it takes the time in seconds given there. influxdb runs ahead of the
// clock.
func measured(cpu map[string]float64) *Results {
	r := &Results{Rounds: 5, Seconds: 1}
	for round := range 5 {
		add := func(name string, all []Contender, counts []int) {
			for _, n := range counts {
				for _, c := range all {
					s := Sample{Case: name, Who: c.Name, Goroutines: n, Round: round, Seconds: 1, IDs: 1000, Calls: 1000, CPU: 1}
					if v, ok := cpu[c.Name]; ok {
						s.CPU, s.Seconds = v, v
					}
					if c.Name == "influxdb" {
						s.AheadMs = 500
					}
					r.Samples = append(r.Samples, s)
				}
			}
		}
		add(ceilingCase, bound(), ceilingGoroutines)
		add(freeCase, free(), freeGoroutines)
		add(advanceCase, advance(), freeGoroutines)
		add(pacedCase, advance(), []int{1})
		add(burstCase, advance(), []int{1})
	}
	return r
}

func TestVerdicts(t *testing.T) {
	const keep, ahead = "1 goroutine: at the ceiling the least CPU of those that keep to it", "1 goroutine: the least CPU at the ceiling, even beside"
	for _, row := range []struct {
		wanted string
		cpu    map[string]float64
		want   string
	}{
		{flakedNext + ", " + keep, map[string]float64{flakedNext: 0.5}, "| 0.50 of bwmarrin, the next | yes |"},
		{flakedNext + ", " + keep, map[string]float64{flakedNext: 0.5, "GUAIK": 0.25}, "| 2.00 of GUAIK, the next | NO |"},
		{flakedNext + ", " + keep, map[string]float64{flakedNext: 0.5, "influxdb": 0.25}, "| 0.50 of bwmarrin, the next | yes |"},
		{flakedNext + ", " + ahead, map[string]float64{flakedNext: 0.5, "influxdb": 0.25}, "| 2.00 of influxdb, the next | NO |"},
		{flakedReserve + ", 2 goroutines: without a ceiling, the fastest reservation", map[string]float64{flakedReserve: 0.5}, "| 0.500 of bwmarrin, the next | yes |"},
		{flakedNext + ", 2 goroutines: without a ceiling, the fastest single call", nil, "| 1.00 of bwmarrin, the next | NO |"},
	} {
		table := measured(row.cpu).verdictTable().String()
		found := ""
		for line := range strings.Lines(table) {
			if strings.HasPrefix(line, "| "+row.wanted) {
				found = strings.TrimSpace(line)
			}
		}
		if !strings.HasSuffix(found, row.want) {
			t.Errorf("%s, %v: %q, want %q", row.wanted, row.cpu, found, row.want)
		}
	}
}

func TestTables(t *testing.T) {
	r := measured(nil)
	r.Samples[3].Who, r.Samples[3].Twice = "godruoyi", 7
	text := r.tables()
	for _, want := range []string{"medians of 5 rounds", "| 500 ms |", "| 7 of ", "#### Made in advance", flakedBorrow} {
		if !strings.Contains(text, want) {
			t.Errorf("not in the tables: %s\n%s", want, text)
		}
	}
	for line := range strings.Lines((&Results{}).tables()) {
		if strings.HasPrefix(line, "|") && strings.Contains(line, "NaN") {
			t.Errorf("nothing was measured: %s", line)
		}
	}
}
