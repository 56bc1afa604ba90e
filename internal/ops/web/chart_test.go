package web

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestScales(t *testing.T) {
	for _, row := range []struct {
		name            string
		of              func(lowest, highest float64) scale
		lowest, highest float64
		want            string // labels from the top
	}{
		{"no requests", rateScale, 0, 0, "1/s 0.5/s 0"},
		{"few", rateScale, 0, 1.2, "2/s 1/s 0"},
		{"up to the top", rateScale, 3, 5000, "5,000/s 2,500/s 0"},
		{"just above", rateScale, 3, 5001, "10k/s 5,000/s 0"},
		{"many", rateScale, 3, 1.2e6, "2M/s 1M/s 0"},
		{"one latency", latencyScale, 128e-6, 128e-6, "1 ms 100 µs"},
		{"all latencies", latencyScale, 1e-6, 4.2, " 1 s  10 ms  100 µs  1 µs"},
		{"in step", offsetScale, -1, 3, "+500ms 0 -500ms"},
		{"ahead", offsetScale, 0, 700, "+1.0s 0 -1.0s"},
		{"an hour behind", offsetScale, -3_600_000, 0, "+1h23m 0 -1h23m"},
	} {
		ticks := row.of(row.lowest, row.highest).ticks()
		if strings.Contains(row.name, "latenc") {
			for i, j := 0, len(ticks)-1; i < j; i, j = i+1, j-1 {
				ticks[i], ticks[j] = ticks[j], ticks[i]
			}
		}
		var labels []string
		for _, l := range ticks {
			labels = append(labels, l.Label)
		}
		if got := strings.Join(labels, " "); got != row.want || ticks[0].Y != "7" || ticks[len(ticks)-1].Y != "87" {
			t.Errorf("%s: %q, want %q: %v", row.name, got, row.want, ticks)
		}
	}
}

func TestPathHasGaps(t *testing.T) {
	no := math.NaN()
	for _, row := range []struct {
		all  []float64
		path string
		gaps string
	}{
		{[]float64{no, no}, "", "[{54 6}]"},
		{[]float64{0, 50, 100}, "M55 87L58 47L61 7", "[]"},
		{[]float64{no, 0, no, 100, 200, no}, "M58 87h0M64 7L67 7", "[{54 3} {60 3} {69 3}]"}, // 200 is outside
	} {
		sampled := make([]bool, len(row.all))
		for i, v := range row.all {
			sampled[i] = !math.IsNaN(v)
		}
		if got := rateScale(0, 100).path(row.all); got != row.path {
			t.Errorf("%v: %s, want %s", row.all, got, row.path)
		}
		if got := fmt.Sprint(gapsOf(sampled)); got != row.gaps {
			t.Errorf("%v: %s, want %s", row.all, got, row.gaps)
		}
	}
}

// The limits by which a clock is judged are lines of its chart, as far as they are inside and apart from the line of 0.
func TestLimitsOfTheClock(t *testing.T) {
	for _, row := range []struct {
		offset float64
		want   string
	}{
		{1, "+500ms 7 warns 18"}, {700, "+1.0s 27 warns 24"}, {-8000, "+10s 27 refuses 24"},
		{4000, "+5.0s 43 warns 40 7 refuses 18"}, {-45_000, "+50s 43 refuses 40"}, {-3_600_000, "+1h23m"},
	} {
		line := make([]float64, pastSteps)
		line[5] = row.offset
		c := chartsOf(2, false)[ofOffset].draw(line, func(int) string { return "" })
		got := c.Ticks[0].Label
		for _, l := range c.Limits {
			if l.Label != "" {
				got += " " + l.Y + " " + l.Label + " " + l.LabelY
			}
		}
		if got != row.want {
			t.Errorf("%v: %s, want %s", row.offset, got, row.want)
		}
	}
}

// pastOfAll returns samples of 8 minutes before at0, in which the node was paused and its clock was wrong.
func pastOfAll() (samples []sample, boot int64) {
	requests := int64(0)
	for s := 10_000; s <= 10_480; s += 10 {
		requests += int64(40 + 30*math.Sin(float64(s)/80))
		one := at(s, 10*requests)
		if one.failed = requests / 20; s > 10_400 {
			one.offset = -712
		}
		if s < 10_200 || s >= 10_260 {
			samples = append(samples, one)
		}
	}
	return samples, sec(10_485)
}

// go test ./internal/ops/web -update writes the file again.
func TestCharts(t *testing.T) {
	samples, boot := pastOfAll()
	v := describePast(samples, samples[0].at, boot, time.UnixMilli(at0), false)
	html := string(render("charts", v)) + string(render("minutes", v))
	golden(t, "testdata/charts.html", html)
	if bad := regexp.MustCompile(`style=|on[a-z]+=|NaN|Inf`).FindString(html); bad != "" {
		t.Error(bad)
	}
	if len(html) > 16<<10 {
		t.Errorf("%d bytes", len(html))
	}
}

func TestPastSaysSinceWhen(t *testing.T) {
	idle := func(samples ...sample) []sample {
		for i := range samples {
			samples[i].offset = math.NaN()
		}
		return samples
	}
	for _, row := range []struct {
		name, want string
		samples    []sample
		began      int
		dev        bool
		charts     int
	}{
		{"no requests", ">0/s all the time<", idle(at(990, 0), at(1000, 0)), 3, false, 5},
		{"no latency", ">no requests<", idle(at(990, 0), at(1000, 0)), 3, false, 5},
		{"no ZooKeeper", ">not compared<", idle(at(990, 0), at(1000, 0)), 3, false, 5},
		{"ZooKeeper has gone", "not compared now, lowest &#43;1.5ms, highest &#43;1.5ms at 10:31<",
			append([]sample{at(970, 0), at(980, 0)}, idle(at(990, 0), at(1000, 0))...), 3, false, 5},
		{"it sleeps since long", ">no samples<", []sample{at(10, 0), at(20, 0)}, 3, false, 5},
		{"a refusal", "now 1.0/s, lowest 1.0/s, highest 2.0/s at 10:31<",
			[]sample{at(980, 0), at(990, 20), at(1000, 30)}, 3, false, 5},
		{"no samples", "No samples yet. The node started at 10:29:25,", []sample{at(840, 0)}, 840, false, 0},
		{"one sample", " The node started at 10:29:25.<", []sample{at(840, 0), at(850, 0)}, 840, false, 5},
		{"for an hour", "was paused.<", []sample{at(990, 0), at(1000, 0)}, 3, false, 5},
		{"a development node has no clock to compare with", "was paused.<", []sample{at(990, 0), at(1000, 0)}, 3, true, 4},
	} {
		v := describePast(row.samples, sec(row.began), sec(1000), time.UnixMilli(at0), row.dev)
		if html := string(render("charts", v)); !strings.Contains(html, row.want) ||
			strings.Count(html, "<svg ") != row.charts || strings.Contains(html, "cannot render") {
			t.Errorf("%s: no %q with %d charts in\n%s", row.name, row.want, row.charts, html)
		}
	}
}
