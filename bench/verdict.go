//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flaked/flaked/internal/figures"
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

// TrustedClock is the outcome of a verdict.
type Reached string

// The outcomes.
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

// judge makes verdicts. A verdict is unmeasured if one of its figures is missing.
type judge struct {
	r       *Results
	missing bool
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

// verdict returns a verdict. It is unmeasured if median or ratio found no figure since the
// previous call of verdict.
func (j *judge) verdict(wanted string, ok bool, format string, args ...any) Verdict {
	missing := j.missing
	j.missing = false
	if missing {
		return Verdict{wanted, "", unmeasured}
	}
	return Verdict{wanted, fmt.Sprintf(format, args...), reached(ok)}
}

// verdicts compares all figures with their targets.
func (r *Results) verdicts() []Verdict {
	j := &judge{r: r}
	var out []Verdict
	for _, who := range []Contender{flaked, flakedRESP} {
		for _, conns := range []int{50, 200} {
			out = append(out, j.unpipelined(who, conns)...)
		}
	}
	for _, conns := range []int{50, 200} {
		name := gridName("unix", conns, 1)
		v := j.ratio(name, flaked, redis, throughput)
		out = append(out, j.verdict(fmt.Sprintf("%d connections on a unix socket: ahead of Redis on one", conns), v > 1, "%.2f of Redis", v))
	}
	out = append(out, j.pipelined()...)
	out = append(out, j.alone()...)
	out = append(out, j.steady()...)
	for _, f := range field {
		v := j.ratio(gridName("tcp", 50, 1), flaked, floorC, throughput) / f.ofFloor
		out = append(out, j.verdict(fmt.Sprintf("%.4g x %s (%.2f of the floor in a run of its own)", f.atLeastFold, f.name, f.ofFloor), v >= f.atLeastFold, "%.2f x", v))
	}
	return slices.Concat(out, []Verdict{r.idleVerdict(), r.checkVerdict()}, r.hostileVerdicts(), r.greedyVerdicts())
}

func (j *judge) unpipelined(who Contender, conns int) []Verdict {
	name := gridName("tcp", conns, 1)
	at := fmt.Sprintf("%s, %d connections, no pipelining, TCP: ", who, conns)
	var out []Verdict
	v := j.ratio(name, who, floorC, throughput)
	out = append(out, j.verdict(at+"95 % of the C floor", v >= 0.95, "%.1f %%", 100*v))
	v = j.ratio(name, who, memcached, throughput)
	out = append(out, j.verdict(at+"ahead of memcached", v > 1, "%.2f of memcached", v))
	v = j.ratio(name, who, redis, throughput)
	out = append(out, j.verdict(at+"ahead of Redis", v > 1, "%.2f of Redis", v))
	ours, theirs := j.median(name, who, p99), j.median(name, redis, p99)
	return append(out, j.verdict(at+"p99 no worse than Redis's", ours <= theirs, "%.0f us, Redis %.0f us", ours, theirs))
}

func (j *judge) pipelined() []Verdict {
	var out []Verdict
	p16, p100 := gridName("tcp", 50, 16), gridName("tcp", 50, 100)
	v := j.ratio(p16, flaked, floorC, throughput)
	bound := j.median(p16, flaked, throughput) >= atCeiling*ceiling
	note := ""
	if bound {
		note = ": the layout's ceiling binds"
	}
	out = append(out, j.verdict("pipeline 16: 90 % of the C floor", v >= 0.9 || bound, "%.1f %%%s", 100*v, note))
	for _, c := range []struct {
		name, at string
		ids      Metric
	}{
		{p100, "pipeline 100", throughput},
		{batchCase, "GET 1000", func(b Bench) float64 { return b.IDsPerSecond }},
	} {
		ids, share := j.median(c.name, flaked, c.ids), j.median(c.name, flaked, busy)
		out = append(out, j.verdict(c.at+": the layout's ceiling, 4.096 million IDs a second, at 60 % of a core at most",
			ids >= atCeiling*ceiling && share <= 0.6, "%.3f million at %.0f %%", ids/1e6, 100*share))
	}
	v = j.ratio(p100, flakedWide, floorC, throughput)
	client := j.median(p100, floorC, clientBusy)
	out = append(out, j.verdict("pipeline 100, 20 bits of sequence: 90 % of the C floor", v >= 0.9, "%.1f %% (generator %.0f %% busy at the floor)", 100*v, 100*client))
	v = j.ratio(batchCase, flakedWide, floorC1000, throughput)
	client = j.median(batchCase, floorC1000, clientBusy)
	return append(out, j.verdict("GET 1000, 20 bits of sequence: 90 % of the C floor", v >= 0.9, "%.1f %% (generator %.0f %% busy at the floor)", 100*v, 100*client))
}

func (j *judge) alone() []Verdict {
	name := gridName("tcp", 1, 1)
	v := j.ratio(name, flaked, floorC, p50)
	first := j.verdict("1 connection, no pipelining: p50 within 5 % of the C floor's", v <= 1.05, "%.0f %% of it", 100*v)
	v = j.ratio(name, flakedSpin, floorC, p50)
	return []Verdict{first, j.verdict("1 connection, with --spin 20us: p50 under half of the C floor's", v < 0.5, "%.0f %% of it", 100*v)}
}

func (j *judge) steady() []Verdict {
	at := "50,000 requests a second: "
	var out []Verdict
	v := j.ratio(openLoop, flaked, floorC, perMillion)
	out = append(out, j.verdict(at+"server CPU within 5 % of the C floor's", v <= 1.05, "%.0f %% of it", 100*v))
	for _, peer := range []Contender{memcached, redis} {
		v := j.ratio(openLoop, flaked, peer, perMillion)
		out = append(out, j.verdict(fmt.Sprintf("%sserver CPU below that of %s", at, peer), v < 1, "%.0f %% of it", 100*v))
	}
	ours, theirs := j.median(openLoop, flaked, p99), j.median(openLoop, redis, p99)
	return append(out, j.verdict(at+"p99 no worse than Redis's", ours <= theirs, "%.0f us, Redis %.0f us", ours, theirs))
}

func (r *Results) idleVerdict() Verdict {
	const most = 30 << 20
	wanted := "10,000 idle connections, after a request each: under 30 MiB resident"
	i, ok := r.idle(flaked)
	if !ok {
		return Verdict{wanted, "", unmeasured}
	}
	return Verdict{wanted, mib(i.Served), reached(i.Served < most)}
}

// checkVerdict judges the IDs of the runs in which the generator checked them, and the
// failed requests of all runs of flaked.
func (r *Results) checkVerdict() Verdict {
	wanted := "of the IDs handed out, none twice and none out of order on its connection"
	var ids, wrong, failed int64
	for _, run := range r.Runs {
		if k := run.Bench.Check; k != nil {
			ids, wrong = ids+k.IDs, wrong+k.Duplicates+k.Backwards
		}
		if strings.HasPrefix(string(run.Who), "flaked") {
			failed += run.Bench.Errors.Total
		}
	}
	if ids == 0 {
		return Verdict{wanted, "", unmeasured}
	}
	return Verdict{wanted, fmt.Sprintf("%d wrong of %.1f million; %d requests failed", wrong, float64(ids)/1e6, failed), reached(wrong == 0 && failed == 0)}
}

func (r *Results) hostileVerdicts() []Verdict {
	var out []Verdict
	for _, a := range attacks {
		wanted := fmt.Sprintf("beside a client that %s: 50 good connections lose less than 5 %% beyond its processor time, p99 within 2x", a)
		loss, growth, share, ok := r.hostile(a)
		if !ok {
			out = append(out, Verdict{wanted, "", unmeasured})
			continue
		}
		out = append(out, Verdict{wanted, fmt.Sprintf("lost %.1f %%, the attack alone takes %.1f %%, p99 %.2f x", 100*loss, 100*share, growth), reached(loss < share+0.05 && growth <= 2)})
	}
	return out
}

func (r *Results) verdictTable() string {
	var t figures.Table
	t.Row("must show", "measured", "reached")
	for _, v := range r.verdicts() {
		t.Row(v.Wanted, v.Found, string(v.Reached))
	}
	return t.String()
}
