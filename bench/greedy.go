//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flaked/flaked/internal/figures"
	"github.com/flaked/flaked/internal/load"
)

// Greedy is one measurement of other clients' waiting time while greedy clients ask for more
// IDs than a worker makes.
type Greedy struct {
	Attack string
	Who    Contender
	Round  int
	Bench  Bench
	// Peak is the most resident memory that the node had, in bytes.
	Peak int64
}

// Limits during each attack: other clients' p99, their longest wait, and the node's memory.
const (
	greedyP99  = 20 * time.Millisecond
	greedyMax  = 100 * time.Millisecond
	greedyPeak = 150 << 20
)

// greedyNice is the attackers' nice value. The attackers share a core with the measured
// clients. At equal priority the clients would measure their wait for that core.
const greedyNice = 5

// greedyCase is the name of these measurements for -only.
const greedyCase = "greedy"

// noAttack is the baseline: the waits that the machine itself causes.
var noAttack = load.Attack{Name: "do nothing"}

func greedyAttacks() []load.Attack { return append([]load.Attack{noAttack}, load.Attacks()...) }

// others is the load of the clients that are measured during an attack. Each request is due
// at its time, whether earlier requests were answered or not. The long timeout lets long
// waits end, so that they are measured. The rate is low, because a generator that never
// sleeps would wait for the attackers on its core.
var others = Case{
	Name: greedyCase, Network: "tcp", Conns: 20, Pipeline: 1, Batch: 1, Rate: 250,
	Duration: 8 * time.Second, Timeout: 30 * time.Second,
}

// measureGreedy starts a node for each measurement, so that the node's peak memory is caused
// by that attack.
func (r *Results) measureGreedy(ctx context.Context, f *farm) error {
	who := []Contender{flaked, flakedGoroutines}
	if f.o.before != "" {
		who = append(who, flakedBefore)
	}
	for round := range f.o.Rounds {
		for _, a := range greedyAttacks() {
			for i := range who {
				w := who[(i+round)%len(who)]
				g, err := f.besideGreedy(ctx, w, a)
				if err != nil {
					if err := r.skip(ctx, w, fmt.Errorf("beside clients that %s: %w", a.Name, err)); err != nil {
						return err
					}
					continue
				}
				g.Round = round
				r.Greedy = append(r.Greedy, g)
				fmt.Printf("greedy: %s: %s: p50 %.1f, p99 %.1f, max %.1f ms, errors %v, unanswered %d, %s\n", a.Name, w,
					g.Bench.Latency.P50/1e3, g.Bench.Latency.P99/1e3, g.Bench.Latency.Max/1e3, g.Bench.Errors.ByCode, g.Bench.Unanswered, mib(g.Peak))
			}
		}
	}
	return nil
}

func (f *farm) besideGreedy(ctx context.Context, who Contender, a load.Attack) (Greedy, error) {
	g := Greedy{Attack: a.Name, Who: who}
	p, err := f.startDev(ctx, who)
	if err != nil {
		return g, err
	}
	defer f.stop(p)
	stop := func() error { return nil }
	if a.Name != noAttack.Name {
		if stop, err = f.attack(Attack(a.Name), p.tcp, greedyNice); err != nil {
			return g, err
		}
	}
	g.Bench, err = f.generate(ctx, others, who, p)
	g.Peak = int64(load.ProcessStatus(p.PID()).VmHWM)
	return g, errors.Join(err, stop())
}

// findGreedy returns the attack of internal/load that has this name, and whether there is
// one.
func findGreedy(name Attack) (load.Attack, bool) {
	all := load.Attacks()
	i := slices.IndexFunc(all, func(a load.Attack) bool { return a.Name == string(name) })
	if i < 0 {
		return load.Attack{}, false
	}
	return all[i], true
}

// greedyWorst returns the median over the rounds of the others' p99, and the largest value of
// all rounds of their longest wait and of the node's memory in bytes. ok is false if there
// is no measurement.
func (r *Results) greedyWorst(attack string, who Contender) (p99, longest time.Duration, most int64, ok bool) {
	var p99s []float64
	for _, g := range r.Greedy {
		if g.Attack == attack && g.Who == who {
			p99s = append(p99s, g.Bench.Latency.P99)
			longest, most = max(longest, microseconds(g.Bench.Latency.Max)), max(most, g.Peak)
		}
	}
	median, ok := figures.Median(p99s)
	return microseconds(median), longest, most, ok
}

func microseconds(us float64) time.Duration { return time.Duration(us * float64(time.Microsecond)) }

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()*1000) }

// greedyTable returns the table for docs/performance.md.
func (r *Results) greedyTable() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s by `make bench`, %d times %s each, nodes taking turns: the median of the others' p99, the longest wait of all and the most memory. "+
		"%s; flaked %s", r.When.Format(time.DateOnly), r.Rounds, others.Duration, r.Machine, r.Versions["flaked"])
	if before := r.Versions["before"]; before != "" {
		fmt.Fprintf(&b, ", before: %s", before)
	}
	fmt.Fprintf(&b, ".\n\n")
	var t figures.Table
	t.Row("beside clients that", "", "others' p99 ms", "longest wait ms", "resident MiB, at most")
	for _, a := range greedyAttacks() {
		for _, who := range []Contender{flakedBefore, flaked, flakedGoroutines} {
			if p99, longest, most, ok := r.greedyWorst(a.Name, who); ok {
				t.Row(a.Name, string(who), milliseconds(p99), milliseconds(longest), bare(most))
			}
		}
	}
	b.WriteString(t.String())
	return b.String()
}
