package e2e

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// touches reports whether one of the windows has a part of the time between from and to.
func touches(windows []window, from, to int64) bool {
	return slices.ContainsFunc(windows, func(w window) bool { return w.from <= to && from <= w.to })
}

// after returns the windows from each fault that is picked until a time after nodes were well again.
func (c *campaign) after(settled time.Duration, pick func(*fault) bool) (all []window) {
	for _, f := range c.faults {
		if !pick(f) {
			continue
		}
		to := int64(math.MaxInt64)
		if f.well != 0 {
			to = f.well + int64(settled)
		}
		all = append(all, window{f.injected - int64(underWay), to})
	}
	return all
}

// lossWindows returns the windows in which ZooKeeper may have older records than before.
func (c *campaign) lossWindows() []window {
	return c.after(repaid, func(f *fault) bool { return f.kind.loses() })
}

// frozenWindows returns the windows in which the strict sequence may be frozen: from a loss of data until an operator
// has looked after it.
func (c *campaign) frozenWindows() (all []window) {
	for _, lost := range c.lossWindows() {
		frozen := window{lost.from, math.MaxInt64}
		if k := slices.IndexFunc(c.seq.vouched, func(at int64) bool { return at > lost.to }); k >= 0 {
			frozen.to = c.seq.vouched[k] + int64(settled)
		}
		all = append(all, frozen)
	}
	return all
}

// neverExpected reports whether no fault of the campaign is a reason for the refusal of a sequence.
func (m miss) neverExpected(kind int) bool {
	if kind == strictKind && (strings.HasPrefix(m.text, "-ERR reason=frozen") ||
		strings.HasPrefix(m.text, "-NOTREADY reason=unknown")) {
		return false
	}
	return !slices.ContainsFunc([]string{"", "-NOTREADY ", "-ERR reason=no-sequence", "-FENCED", "-CLOCK"},
		func(begin string) bool {
			return m.text == begin || begin != "" && strings.HasPrefix(m.text, begin)
		})
}

// sequenceExcuses returns the windows in which a node may refuse to answer values. While it cannot reach
// ZooKeeper it issues what it has, so that is an excuse only for a node that has had no time to take blocks. empty
// has the windows for sequences of which nodes never have much.
func (c *campaign) sequenceExcuses(node int) (windows, empty []window) {
	own := func(f *fault) bool { return f.node == node }
	away := c.after(settled, func(f *fault) bool { return f.node < 0 || own(f) && f.kind.serves })
	fresh := c.after(stocked, func(f *fault) bool { return own(f) && !f.kind.serves || f.kind.loses() })
	fresh = append(fresh, window{0, c.seq.from + int64(stocked)})
	down := append(c.after(settled, func(f *fault) bool { return own(f) && !f.kind.serves }), c.lossWindows()...)
	down = append(down, window{c.ended, c.ended + int64(time.Hour)})
	return join(append(meeting(away, fresh), down...)), join(append(away, down...))
}

// meeting returns the windows of all in which one of others begins or lasts, from then on: a node that was cut off
// before it had taken blocks gets none until it is back.
func meeting(all, others []window) (met []window) {
	for _, w := range all {
		for _, other := range others {
			if from := max(w.from, other.from); from < min(w.to, other.to) {
				met = append(met, window{from, w.to})
			}
		}
	}
	return met
}

// sequenceAvailability finds requests that were refused, or not answered, although the node had to answer them,
// or for a reason that does not apply. due is the number of requests that were answered then.
func (c *campaign) sequenceAvailability(f *sequenceFindings) (due int) {
	for _, client := range c.seq.clients {
		full, empty := c.sequenceExcuses(client.node.id)
		for _, v := range client.answers {
			if v.kind < slowKind && !touches(full, v.asked, v.asked) {
				due++
			}
		}
		windows := full
		switch client.kind {
		case slowKind:
			windows = empty
		case strictKind:
			windows = join(append(c.frozenWindows(), empty...))
		case lifeKind:
			windows = join(append(slices.Clone(c.seq.gone), empty...))
		}
		for _, m := range client.misses {
			if m.why == broke {
				m.first = m.given // a node lets requests wait for values: the first one may have been sent long before
			}
			// The machine's disk is ZooKeeper's, too.
			late := c.late(m.first-int64(sequenceTimeout), m.last) > time.Second
			slow := client.kind == slowKind && strings.HasPrefix(m.text, "-NOTREADY reason=ceiling")
			expected := !m.neverExpected(client.kind) && (slow || late || excused(windows, m, c.late))
			// Of a campaign below a minute, nearly all is an edge: two dozen answers are due.
			if !expected && *chaosFor >= time.Minute {
				f.found("availability", "%s: %s: %s", nodeName(m.node), sequenceKinds[client.kind].name, m.String())
			}
		}
	}
	return due
}

// judgeSequences checks what was answered of sequences, and returns a paragraph of the report.
func (c *campaign) judgeSequences() string {
	if n := len(c.seq.gone); n > 0 && c.seq.gone[n-1].to == 0 {
		c.seq.gone[n-1].to = c.ended
	}
	var all []stretch
	var refused, asked int
	var unanswered [len(sequenceKinds)]int64
	numbers := map[string]int64{}
	for _, client := range c.seq.clients {
		all = append(all, client.answers...)
		for _, m := range client.misses {
			refused += m.count
		}
		asked += client.asked
		unanswered[client.kind] += client.unanswered
		numbers[sequenceKinds[client.kind].name] += client.answered
	}
	var f sequenceFindings
	f.twice(all)
	f.order(all)
	missing := f.gaps(all, c.seq.jumps, unanswered)
	due := c.sequenceAvailability(&f)
	if len(all) == 0 {
		f.found("answers", "no node has answered a value")
	}
	c.wrong = append(c.wrong, f.text...)
	return fmt.Sprintf("sequences: values by name: %v\n", numbers) +
		fmt.Sprintf("%d requests, %d of them not answered, %d answers where a node had to answer\n", asked, refused,
			due) +
		fmt.Sprintf("strict: %d numbers are missing, and requests for %d were not answered\n", missing,
			unanswered[strictKind]) +
		fmt.Sprintf("%d commands of operators, who said %d times where a strict sequence goes on\n", c.seq.done,
			len(c.seq.jumps)) +
		fmt.Sprintf("violations: %v\n", f.count)
}
