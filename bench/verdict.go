//go:build linux

package main

import (
	"fmt"
	"strings"

	"github.com/flaked/flaked/internal/figures"
	"github.com/flaked/flaked/internal/load"
)

// ceiling is the most IDs that one worker of the default layout can make in a second.
const ceiling = 4_096_000

// atCeiling is the share of the ceiling that counts as having reached the ceiling.
const atCeiling = 0.99

// field holds the throughput of other ID servers as a share of the C floor's, with 50
// connections and no pipelining. flaked's share must be atLeastFold times as large. The
// shares come from a separate run on a machine of this kind. This program does not measure
// them.
var field = []struct {
	name        string
	ofFloor     float64
	atLeastFold float64
}{
	{"noeqd", 0.58, 1.25}, {"gosnowflake", 0.49, 1.6}, {"Leaf over HTTP, on one core", 0.15, 4},
}

// Verdict is a target, the figure that was measured, and the outcome.
type Verdict struct {
	Wanted, Found string
	Reached       Reached
}

// Reached is the outcome of a verdict.
type Reached string

const (
	yes        Reached = "yes"
	no         Reached = "NO"
	unmeasured Reached = "not measured"
)

func reached(ok bool) Reached {
	if ok {
		return yes
	}
	return no
}

// judge collects verdicts. A verdict is unmeasured if one of its figures is missing.
type judge struct {
	r        *Results
	missing  bool
	verdicts []Verdict
}

func (j *judge) median(name string, who Contender, m Metric) float64 {
	v, ok := j.r.median(name, who, m)
	j.missing = j.missing || !ok
	return v
}

func (j *judge) ratio(name string, who, to Contender, m Metric) float64 {
	v, ok := j.r.ratio(name, who, to, m)
	j.missing = j.missing || !ok
	return v
}

// verdict adds a verdict. It is unmeasured if a figure was missing since the previous call of
// verdict.
func (j *judge) verdict(wanted string, ok bool, format string, args ...any) {
	v := Verdict{wanted, fmt.Sprintf(format, args...), reached(ok)}
	if j.missing {
		v = Verdict{wanted, "", unmeasured}
	}
	j.missing = false
	j.verdicts = append(j.verdicts, v)
}

// verdicts compares all figures with their targets.
func (r *Results) verdicts() []Verdict {
	j := &judge{r: r}
	for _, who := range []Contender{flaked, flakedRESP} {
		for _, conns := range []int{50, 200} {
			j.unpipelined(who, conns)
		}
	}
	for _, conns := range []int{50, 200} {
		v := j.ratio(gridName("unix", conns, 1), flaked, redis, throughput)
		j.verdict(fmt.Sprintf("%d connections on a unix socket: ahead of Redis on one", conns), v > 1, "%.2f of Redis", v)
	}
	j.pipelined()
	j.alone()
	j.steady()
	for _, f := range field {
		v := j.ratio(gridName("tcp", 50, 1), flaked, floorC, throughput) / f.ofFloor
		j.verdict(fmt.Sprintf("%.4g x %s (%.2f of the floor in a run of its own)", f.atLeastFold, f.name, f.ofFloor), v >= f.atLeastFold, "%.2f x", v)
	}
	j.idle()
	j.check()
	j.hostile()
	j.greedy()
	return j.verdicts
}

func (j *judge) unpipelined(who Contender, conns int) {
	name := gridName("tcp", conns, 1)
	at := fmt.Sprintf("%s, %d connections, no pipelining, TCP: ", who, conns)
	v := j.ratio(name, who, floorC, throughput)
	j.verdict(at+"95 % of the C floor", v >= 0.95, "%.1f %%", 100*v)
	v = j.ratio(name, who, memcached, throughput)
	j.verdict(at+"ahead of memcached", v > 1, "%.2f of memcached", v)
	v = j.ratio(name, who, redis, throughput)
	j.verdict(at+"ahead of Redis", v > 1, "%.2f of Redis", v)
	ours, theirs := j.median(name, who, p99), j.median(name, redis, p99)
	j.verdict(at+"p99 no worse than Redis's", ours <= theirs, "%.0f us, Redis %.0f us", ours, theirs)
}

func (j *judge) pipelined() {
	p16, p100 := gridName("tcp", 50, 16), gridName("tcp", 50, 100)
	v := j.ratio(p16, flaked, floorC, throughput)
	bound := j.median(p16, flaked, throughput) >= atCeiling*ceiling
	note := ""
	if bound {
		note = ": the layout's ceiling binds"
	}
	j.verdict("pipeline 16: 90 % of the C floor", v >= 0.9 || bound, "%.1f %%%s", 100*v, note)
	for _, c := range []struct {
		name, at string
		ids      Metric
	}{
		{p100, "pipeline 100", throughput},
		{batchCase, "GET 1000", func(b Bench) float64 { return b.IDsPerSecond }},
	} {
		ids, share := j.median(c.name, flaked, c.ids), j.median(c.name, flaked, busy)
		j.verdict(c.at+": the layout's ceiling, 4.096 million IDs a second, at 60 % of a core at most",
			ids >= atCeiling*ceiling && share <= 0.6, "%.3f million at %.0f %%", ids/1e6, 100*share)
	}
	for _, c := range []struct {
		name, at string
		floor    Contender
	}{{p100, "pipeline 100", floorC}, {batchCase, "GET 1000", floorC1000}} {
		v, client := j.ratio(c.name, flakedWide, c.floor, throughput), j.median(c.name, c.floor, clientBusy)
		j.verdict(c.at+", 20 bits of sequence: 90 % of the C floor", v >= 0.9, "%.1f %% (generator %.0f %% busy at the floor)", 100*v, 100*client)
	}
}

func (j *judge) alone() {
	name := gridName("tcp", 1, 1)
	v := j.ratio(name, flaked, floorC, p50)
	j.verdict("1 connection, no pipelining: p50 within 5 % of the C floor's", v <= 1.05, "%.0f %% of it", 100*v)
	v = j.ratio(name, flakedSpin, floorC, p50)
	j.verdict("1 connection, with --spin 20us: p50 under half of the C floor's", v < 0.5, "%.0f %% of it", 100*v)
}

func (j *judge) steady() {
	at := "50,000 requests a second: "
	v := j.ratio(openLoop, flaked, floorC, perMillion)
	j.verdict(at+"server CPU within 5 % of the C floor's", v <= 1.05, "%.0f %% of it", 100*v)
	for _, peer := range []Contender{memcached, redis} {
		v := j.ratio(openLoop, flaked, peer, perMillion)
		j.verdict(fmt.Sprintf("%sserver CPU below that of %s", at, peer), v < 1, "%.0f %% of it", 100*v)
	}
	ours, theirs := j.median(openLoop, flaked, p99), j.median(openLoop, redis, p99)
	j.verdict(at+"p99 no worse than Redis's", ours <= theirs, "%.0f us, Redis %.0f us", ours, theirs)
}

func (j *judge) idle() {
	const most = 30 << 20
	var served int64
	j.missing = true
	for _, i := range j.r.Idle {
		if i.Who == flaked {
			served, j.missing = i.Served, false
		}
	}
	j.verdict("10,000 idle connections, after a request each: under 30 MiB resident", served < most, "%s", mib(served))
}

// check judges the IDs of the runs in which the generator checked them, and the failed
// requests of all runs of flaked.
func (j *judge) check() {
	var ids, wrong, failed int64
	for _, run := range j.r.Runs {
		if k := run.Bench.Check; k != nil {
			ids, wrong = ids+k.IDs, wrong+k.Duplicates+k.Backwards
		}
		if strings.HasPrefix(string(run.Who), "flaked") {
			failed += run.Bench.Errors.Total
		}
	}
	j.missing = ids == 0
	j.verdict("of the IDs handed out, none twice and none out of order on its connection", wrong == 0 && failed == 0,
		"%d wrong of %.1f million; %d requests failed", wrong, float64(ids)/1e6, failed)
}

func (j *judge) hostile() {
	for _, a := range attacks {
		loss, growth, share, ok := j.r.hostile(a)
		j.missing = !ok
		j.verdict(fmt.Sprintf("beside a client that %s: 50 good connections lose less than 5 %% beyond its processor time, p99 within 2x", a),
			loss < share+0.05 && growth <= 2, "lost %.1f %%, the attack alone takes %.1f %%, p99 %.2f x", 100*loss, 100*share, growth)
	}
}

// greedy compares the waits and the memory beside greedy clients with their limits.
func (j *judge) greedy() {
	for _, a := range load.Attacks() {
		p99, longest, most, ok := j.r.greedyWorst(a.Name, flaked)
		j.missing = !ok
		j.verdict(fmt.Sprintf("beside clients that %s: others' p99 below %s, none waits %s, the node stays below %s", a.Name, greedyP99, greedyMax, mib(greedyPeak)),
			p99 < greedyP99 && longest < greedyMax && most < greedyPeak, "p99 %s ms, longest %s ms, %s", milliseconds(p99), milliseconds(longest), mib(most))
	}
}

func (r *Results) verdictTable() string {
	var t figures.Table
	t.Row("must show", "measured", "reached")
	for _, v := range r.verdicts() {
		t.Row(v.Wanted, v.Found, string(v.Reached))
	}
	return t.String()
}
