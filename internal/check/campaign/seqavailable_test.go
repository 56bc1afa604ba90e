package campaign

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/check/order"
)

const (
	// settled is the time after a fault in which a node connects, sends a heartbeat, and waits for the
	// confirming time.
	settled = confirm + 4*slowest
	// stocked is the time after which a node that was started, or whose sequences lost their credit, has
	// taken blocks that last.
	stocked = 15 * time.Second
	// repaid is the time after a loss of data in which nodes raise the incarnation, put records back, and wait for
	// the confirming time once more. Then a sequence gives nothing until it has paid for what it skipped.
	repaid = 30 * time.Second
)

// sequenceFindings collects violations by check.
type sequenceFindings struct {
	count map[string]int
	text  []string
}

// found adds a violation. Of each check the first five have a text.
func (f *sequenceFindings) found(check, format string, args ...any) {
	if f.count == nil {
		f.count = map[string]int{}
	}
	if f.count[check]++; f.count[check] <= 5 {
		f.text = append(f.text, "sequences: "+check+": "+fmt.Sprintf(format, args...))
	}
}

// kindOf returns the place of the sequence of that name in sequenceKinds.
func kindOf(name string) int {
	i := slices.IndexFunc(sequenceKinds[:], func(k sequenceKind) bool { return k.name == name })
	if i < 0 {
		return familyKind
	}
	return i
}

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
func neverExpected(m harness.Miss, kind int) bool {
	if kind == strictKind && (strings.HasPrefix(m.Text, "-ERR reason=frozen") ||
		strings.HasPrefix(m.Text, "-NOTREADY reason=unknown")) {
		return false
	}
	return !slices.ContainsFunc([]string{"", "-NOTREADY ", "-ERR reason=no-sequence", "-FENCED", "-CLOCK"},
		func(begin string) bool {
			return m.Text == begin || begin != "" && strings.HasPrefix(m.Text, begin)
		})
}

// sequenceExcuses returns the windows in which a node may refuse to answer values. While it cannot reach
// ZooKeeper it issues what it has, so that is an excuse only for a node that has had no time to take blocks. empty
// has the windows for sequences of which nodes never have much.
func (c *campaign) sequenceExcuses(node int) (windows, empty []window) {
	own := func(f *fault) bool { return f.node == node }
	// Joined, because a node that was away takes blocks only when it has settled.
	away := join(c.after(settled, func(f *fault) bool { return f.node < 0 || own(f) && f.kind.serves }))
	fresh := c.after(stocked, func(f *fault) bool { return own(f) && !f.kind.serves || f.kind.loses() })
	fresh = append(fresh, window{0, c.seq.from + int64(stocked)})
	down := append(c.after(settled, func(f *fault) bool { return own(f) && !f.kind.serves }), c.lossWindows()...)
	down = append(down, window{c.ended, c.ended + int64(time.Hour)})
	return join(append(meeting(away, fresh), down...)), join(append(away, down...))
}

// ownerBack is the longest time without an owner, after the last one has ended: its lease, the steps of the others, who
// read the record with their heartbeats, and a margin.
const ownerBack = harness.OwnerLease + 2*slowest + time.Second

// unowned returns the windows in which a node may have to wait for the owner of an ordered sequence, because of faults
// of any node: it may be the owner. A node that cannot reach ZooKeeper or its disk well may lose its ownership at any
// time until the fault is over.
func (c *campaign) unowned() (all []window) {
	for _, f := range c.faults {
		to := f.injected
		if f.node >= 0 && (f.kind.serves || f.bound != 0) {
			to = max(to, f.healed)
		}
		all = append(all, window{f.injected - int64(underWay), to + int64(ownerBack)})
	}
	return all
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
// or for a reason that does not apply. due is the number of answers that were due, by kind.
func (c *campaign) sequenceAvailability(f *sequenceFindings) (due [len(sequenceKinds)]int) {
	answered := map[[2]int][]int64{} // by node and kind: when the requests were sent
	for _, r := range c.site.Values.All("") {
		if key := [2]int{r.Node, kindOf(r.Name)}; r.Lost == 0 {
			answered[key] = append(answered[key], r.Sent)
		}
	}
	for _, client := range c.seq.clients {
		full, empty := c.sequenceExcuses(client.Node.ID)
		ordered := sequenceKinds[client.kind].ordered()
		if ordered {
			full = join(append(c.unowned(), empty...))
		}
		for _, sent := range answered[[2]int{client.Node.ID, client.kind}] {
			if (client.kind < slowKind || ordered) && !touches(full, sent, sent) {
				due[client.kind]++
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
		for _, m := range client.Misses {
			late := c.late(m.Given-int64(sequenceTimeout), m.Last) > time.Second // the machine's disk is ZooKeeper's, too
			waited := m
			waited.First = m.Given // a node lets requests wait for values: the first one may have been sent long before
			slow := client.kind == slowKind && strings.HasPrefix(m.Text, "-NOTREADY reason=ceiling")
			expected := !neverExpected(m, client.kind) && (slow || late || excused(windows, waited, c.late))
			// Of a campaign below a minute, nearly all is an edge: two dozen answers are due. A soak is hours beside
			// other work: it counts what was refused because ZooKeeper did not answer in time, and does not judge it.
			if !expected && *chaosFor >= time.Minute && !soaks() {
				f.found("availability", "%s: %s: %s", nodeName(m.Node), sequenceKinds[client.kind].name, m.String())
			}
		}
	}
	return due
}

// shortReason returns the reason of a refusal, or why there was no answer.
func shortReason(m harness.Miss) string {
	if _, reason, ok := strings.Cut(m.Text, "reason="); ok {
		return strings.Fields(reason)[0]
	}
	return m.Reason()
}

// judgeSequences checks what was answered of sequences, and returns a paragraph of the report.
func (c *campaign) judgeSequences() string {
	if n := len(c.seq.gone); n > 0 && c.seq.gone[n-1].to == 0 {
		c.seq.gone[n-1].to = c.ended
	}
	var asked [len(sequenceKinds)]int
	var refused [len(sequenceKinds)]map[string]int
	var answered [len(sequenceKinds)]int64
	for _, client := range c.seq.clients {
		for _, m := range client.Misses {
			if refused[client.kind] == nil {
				refused[client.kind] = map[string]int{}
			}
			refused[client.kind][shortReason(m)] += m.Count
		}
		asked[client.kind] += client.asked
		answered[client.kind] += client.Answered
	}
	var f sequenceFindings
	ledger := c.site.Values
	for _, v := range ledger.Violations() {
		f.found(v.Rule, "%s; then %s", v.Before, v.After)
	}
	for _, w := range ledger.Wrong {
		f.found("answers", "%s", w)
	}
	_, lost := order.Missing(ledger.All(""), sequenceKinds[strictKind].name, 0, math.MaxInt64)
	due := c.sequenceAvailability(&f)
	if answered == [len(sequenceKinds)]int64{} {
		f.found("answers", "no node has answered a value")
	}
	c.wrong = append(c.wrong, f.text...)
	text := ""
	for kind, k := range sequenceKinds {
		text += fmt.Sprintf("sequence %-9s %9d values, %6d requests, %5d answers were due, not answered: %v\n", k.name,
			answered[kind], asked[kind], due[kind], refused[kind])
	}
	return text + fmt.Sprintf("strict: requests for %d numbers were not answered, %d keys were used\n", lost,
		c.seq.keys.Load()-int64(len(ledger.Jumps))*staleKey) +
		fmt.Sprintf("%d commands of operators, who said %d times where a strict sequence goes on\n", c.seq.done,
			len(ledger.Jumps)) +
		fmt.Sprintf("violations: %v\n", f.count)
}

func TestRefusalsThatNoFaultExplains(t *testing.T) {
	for text, want := range map[string]bool{"": false, "-NOTREADY reason=ceiling x": false,
		"-ERR reason=frozen x": true, "-EXHAUSTED x": true, "-ERR reason=no-sequence x": false} {
		if neverExpected((harness.Miss{Text: text}), 0) != want {
			t.Errorf("%q", text)
		}
	}
}
