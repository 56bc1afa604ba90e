//go:build linux

package main

import (
	"fmt"

	"github.com/flaked/flaked/internal/figures"
)

// aheadAllowance is a lead over the clock. A contender whose IDs have a time further ahead
// counts as running ahead of the clock.
const aheadAllowance = 10 // ms

// nearest divides the figure of us by those of all other contenders. It returns the largest
// ratio, and the contender that it belongs to. A ratio below 1 means that us has the lowest
// figure. Contenders that run ahead of the clock, and so do not wait, count only if ahead is
// set.
func (r *Results) nearest(name, us string, all []Contender, goroutines int, m Metric, ahead bool) (who string, ratio float64) {
	for _, o := range all {
		if o.ours() || !ahead && r.most(name, o.Name, aheadMs) > aheadAllowance {
			continue
		}
		if v, ok := r.ratio(name, us, o.Name, goroutines, m); ok && v > ratio {
			who, ratio = o.Name, v
		}
	}
	return who, ratio
}

// verdictTable returns the table that compares the figures with their targets.
func (r *Results) verdictTable() *figures.Table {
	t := &figures.Table{}
	t.Row("must show", "measured", "reached")
	verdict := func(ok bool) string {
		if ok {
			return "yes"
		}
		return "NO"
	}
	row := func(what, format, name, us string, all []Contender, n int, m Metric, ahead bool) {
		who, ratio := r.nearest(name, us, all, n, m, ahead)
		t.Row(fmt.Sprintf("%s, %s: %s", us, goroutines(n), what), fmt.Sprintf(format+" of %s, the next", ratio, who), verdict(ratio > 0 && ratio < 1))
	}
	for _, us := range []string{flakedNext, flakedReserve} {
		for _, n := range ceilingGoroutines {
			row("at the ceiling the least CPU of those that keep to it", "%.2f", ceilingCase, us, bound(), n, cpuNs, false)
		}
	}
	for _, n := range ceilingGoroutines {
		row("the least CPU at the ceiling, even beside those that run ahead of the clock", "%.2f", ceilingCase, flakedNext, bound(), n, cpuNs, true)
	}
	for _, n := range freeGoroutines {
		row("without a ceiling, the fastest reservation for an ID", "%.3f", freeCase, flakedReserve, free(), n, perIDNs, true)
		row("without a ceiling, the fastest single call", "%.2f", freeCase, flakedNext, free(), n, perIDNs, true)
		row("without a ceiling, the single call of the least CPU", "%.2f", freeCase, flakedNext, free(), n, cpuNs, true)
	}
	if v, ok := r.ratio(freeCase, flakedNode, flakedNext, 1, perIDNs); ok {
		t.Row("a node in the program takes at most a tenth longer than its generator alone", fmt.Sprintf("%.2f times as long", v), verdict(v <= 1.1))
	}
	var twice, ids int64
	for _, s := range r.Samples {
		for _, c := range append(bound(), free()...) {
			if c.ours() && c.Name == s.Who {
				twice, ids = twice+s.Twice+s.Backward, ids+s.IDs
				break
			}
		}
	}
	t.Row("flaked gave no ID twice, and each goroutine growing ones", fmt.Sprintf("%d wrong of %.0f million", twice, float64(ids)/1e6), verdict(ids > 0 && twice == 0))
	return t
}
