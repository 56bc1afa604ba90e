package e2e

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/sequence"
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

func (v stretch) String() string {
	return fmt.Sprintf("%s %d to %d, asked of node %d at %s, answered at %s", sequenceKinds[v.kind].name, v.first, v.last, v.node, moment(v.asked), moment(v.got))
}

// twice finds values that were answered twice. Within one answer values have no gaps, so two answers have a
// value in common, or values of the one lie between those of the other, only if a rule is broken.
func (f *sequenceFindings) twice(all []stretch) {
	slices.SortFunc(all, func(a, b stretch) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.first, b.first)) })
	var highest stretch
	for i, v := range all {
		if i > 0 && v.kind == highest.kind && v.first <= highest.last {
			f.found("no value twice", "%s; %s", highest, v)
		}
		if i == 0 || v.kind != highest.kind || v.last > highest.last {
			highest = v
		}
	}
}

// order finds answers of a node that are not above all those that the node had given before the request was
// sent, over all its connections and processes. In a strict sequence that holds over all nodes.
func (f *sequenceFindings) order(all []stretch) {
	key := func(v stretch) int {
		if sequenceKinds[v.kind].strict {
			return int(v.kind)
		}
		return int(v.node)<<8 | int(v.kind)
	}
	slices.SortFunc(all, func(a, b stretch) int { return cmp.Compare(a.asked, b.asked) })
	byGot := slices.Clone(all)
	slices.SortFunc(byGot, func(a, b stretch) int { return cmp.Compare(a.got, b.got) })
	highest := map[int]stretch{}
	next := 0
	for _, v := range all {
		for ; next < len(byGot) && byGot[next].got < v.asked; next++ {
			if w := byGot[next]; w.last > highest[key(w)].last {
				highest[key(w)] = w
			}
		}
		if h, ok := highest[key(v)]; ok && v.first <= h.last {
			f.found("order", "%s; then %s", h, v)
		}
	}
}

// gaps finds numbers of strict sequences that are missing, beyond those of requests that were not answered and those
// that operators skipped: jumps are the values at which they went on. unanswered is by kind.
func (f *sequenceFindings) gaps(all []stretch, jumps []int64, unanswered [len(sequenceKinds)]int64) (missing int64) {
	slices.SortFunc(all, func(a, b stretch) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.first, b.first)) })
	var gaps [len(sequenceKinds)]int64
	next := map[uint8]int64{}
	for _, v := range all {
		k := sequenceKinds[v.kind]
		if !k.strict {
			continue
		}
		from := cmp.Or(next[v.kind], k.start)
		for _, jump := range jumps {
			if from <= jump && jump <= v.first {
				from = max(from, jump)
			}
		}
		gaps[v.kind] += max(0, v.first-from)
		next[v.kind] = max(from, v.last+1)
	}
	for kind, n := range gaps {
		if missing += n; n > unanswered[kind] {
			f.found("numbers without gaps", "%d numbers of %s are missing, and requests for %d were not answered", n, sequenceKinds[kind].name, unanswered[kind])
		}
	}
	return missing
}

// records finds records whose next value is not above all that had been answered before the record was read.
// lost are the windows in which ZooKeeper may have an older record, and frozen those for a strict sequence: nobody issues it
// then, and the nodes that know better may be away.
func (f *sequenceFindings) records(all []stretch, polls []poll, lost, frozen []window) {
	slices.SortFunc(all, func(a, b stretch) int { return cmp.Compare(a.got, b.got) })
	highest := make([]stretch, len(sequenceKinds))
	next := 0
	for _, p := range polls {
		for ; next < len(all) && all[next].got < p.asked; next++ {
			if v := all[next]; v.last > highest[v.kind].last {
				highest[v.kind] = v
			}
		}
		h, r := highest[p.kind], p.record
		windows := lost
		if sequenceKinds[p.kind].strict {
			windows = frozen
		}
		if touches(windows, p.asked, p.got) || r.DeletedAt != 0 || h.n == 0 {
			continue
		}
		if !sequenceKinds[p.kind].strict && r.Incarnation < p.state.Incarnation {
			continue // nobody has taken a block since the loss: the first one skips
		}
		if value := r.Value(r.Next); value <= h.last {
			f.found("the record is above all values", "%s; at %s the next value is %d", h, moment(p.got), value)
		}
	}
}

// regress finds records that were older than before.
func (f *sequenceFindings) regress(polls []poll, lost []window) {
	last := map[int]poll{}
	for _, p := range polls {
		was, ok := last[p.kind]
		last[p.kind] = p
		if !ok || touches(lost, was.asked, p.got) {
			continue
		}
		older := p.record.Incarnation < was.record.Incarnation || p.record.Incarnation == was.record.Incarnation && p.record.Gen < was.record.Gen
		if older || p.state.Incarnation < was.state.Incarnation || p.state.Incarnation == was.state.Incarnation && p.state.Changes < was.state.Changes {
			f.found("records do not go back", "%s at %s: %+v, %+v; at %s: %+v, %+v", sequenceKinds[p.kind].name, moment(was.got), was.record, was.state, moment(p.got), p.record, p.state)
		}
	}
}

// ceiling finds windows of time in which nodes took more positions than the ceiling allows. It compares records
// of the same life and incarnation between which no operator raised the next value.
func (f *sequenceFindings) ceiling(polls []poll, lost []window) {
	byKind := map[int][]poll{}
	for _, p := range polls {
		byKind[p.kind] = append(byKind[p.kind], p)
	}
	for kind, all := range byKind {
		if sequenceKinds[kind].strict {
			continue
		}
		for i, a := range all {
			for _, b := range all[i+1:] {
				if b.record.ID != a.record.ID || b.record.Incarnation != a.record.Incarnation || b.record.From != a.record.From {
					break
				}
				c := a.record.HardCeiling
				most := c*(time.Duration(b.got-a.asked)+sequence.Burst+limits.ClocksApart).Milliseconds()/1000 + 1
				if n := b.record.Next - a.record.Next; n > most && !touches(lost, a.asked, b.got) {
					f.found("the ceiling", "%d positions of %s were taken from %s to %s, and %d are allowed", n, sequenceKinds[kind].name, moment(a.asked), moment(b.got), most)
					break
				}
			}
		}
	}
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

// neverExpected reports whether no fault of the campaign is a reason for the refusal.
func (m sequenceMiss) neverExpected() bool {
	if m.kind == strictKind && (strings.HasPrefix(m.text, "-ERR reason=frozen") || strings.HasPrefix(m.text, "-NOTREADY reason=unknown")) {
		return false
	}
	return !slices.ContainsFunc([]string{"", "-NOTREADY ", "-ERR reason=no-sequence", "-FENCED", "-CLOCK"}, func(begin string) bool {
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
		gone := join(append(slices.Clone(c.seq.gone), empty...))
		for _, v := range client.answers {
			if v.kind < slowKind && !touches(full, v.asked, v.asked) {
				due++
			}
		}
		for _, m := range client.misses {
			windows := full
			switch m.kind {
			case slowKind:
				windows = empty
			case strictKind:
				windows = join(append(c.frozenWindows(), empty...))
			case lifeKind:
				windows = gone
			}
			switch {
			case m.neverExpected():
			case excused(windows, m.miss, c.late):
				continue
			case m.kind == slowKind && strings.HasPrefix(m.text, "-NOTREADY reason=ceiling"):
				continue
			case c.late(m.first-int64(sequenceTimeout), m.last) > time.Second: // the machine's disk is ZooKeeper's, too
				continue
			}
			if *chaosFor < time.Minute { // of so short a campaign, nearly all is an edge: two dozen answers are due
				continue
			}
			f.found("availability", "%s: %s: %s", nodeName(m.node), sequenceKinds[m.kind].name, m.String())
		}
	}
	return due
}

// judgeSequences checks what was answered of sequences, and returns a paragraph of the report.
func (c *campaign) judgeSequences() string {
	var all []stretch
	var refused, asked int
	var unanswered [len(sequenceKinds)]int64
	for i := range c.seq.gone {
		if c.seq.gone[i].to == 0 {
			c.seq.gone[i].to = c.ended
		}
	}
	for _, client := range c.seq.clients {
		all = append(all, client.answers...)
		for _, m := range client.misses {
			refused += m.count
			unanswered[m.kind] += m.numbers
		}
		for _, n := range client.asked {
			asked += n
		}
	}
	lost := c.lossWindows()
	var f sequenceFindings
	f.twice(all)
	f.order(all)
	missing := f.gaps(all, c.seq.jumps, unanswered)
	f.records(all, c.seq.polls, lost, c.frozenWindows())
	f.regress(c.seq.polls, lost)
	f.ceiling(c.seq.polls, lost)
	due := c.sequenceAvailability(&f)
	if len(all) == 0 {
		f.found("answers", "no node has answered a value")
	}
	c.wrong = append(c.wrong, f.text...)
	var numbers [len(sequenceKinds)]int64
	for _, v := range all {
		numbers[v.kind] += int64(v.n)
	}
	return c.sequenceFigures(numbers, asked, refused, due, f) + fmt.Sprintf("strict: %s numbers are missing, and requests for %s were not answered; %d times an operator said where it goes on\n",
		thousands(missing), thousands(unanswered[strictKind]), len(c.seq.jumps))
}

func (c *campaign) sequenceFigures(numbers [len(sequenceKinds)]int64, asked, refused, due int, f sequenceFindings) string {
	var sum int64
	var parts []string
	for kind, n := range numbers {
		sum += n
		parts = append(parts, fmt.Sprintf("%s %s", sequenceKinds[kind].name, thousands(n)))
	}
	incarnation := int64(0)
	for _, p := range c.seq.polls {
		incarnation = max(incarnation, p.state.Incarnation)
	}
	return fmt.Sprintf("sequences: %s numbers (%s), %s requests of which %s were not answered, %s answers where a node had to answer, %d commands of operators, %d looks at records, incarnation %d; violations: %v\n",
		thousands(sum), strings.Join(parts, ", "), thousands(int64(asked)), thousands(int64(refused)), thousands(int64(due)), c.seq.done, len(c.seq.polls), incarnation, f.count)
}

func TestSequenceFindings(t *testing.T) {
	s := int64(time.Second)
	answer := func(node uint8, first, last, asked, got int64) stretch {
		return stretch{node: node, first: first, last: last, n: int32(last - first + 1), asked: asked * s, got: got * s}
	}
	strict := func(node uint8, first, last, asked, got int64) stretch {
		v := answer(node, first, last, asked, got)
		v.kind = strictKind
		return v
	}
	const unanswered, jump = 3, 1000
	look := func(at, incarnation, gen, next int64) poll {
		return poll{asked: at * s, got: at * s, state: seq.State{Incarnation: incarnation}, record: seq.Record{
			ID: "a", Map: sequence.Map{Start: 1, Increment: 1, Max: sequence.MaxJavaScript}, Incarnation: incarnation, Gen: gen, Next: next,
			Settings: seq.Settings{HardCeiling: 10},
		}}
	}
	good := []stretch{answer(0, 1, 10, 1, 2), answer(1, 21, 30, 1, 2), answer(0, 11, 12, 3, 4)}
	looks := []poll{look(0, 1, 1, 0), look(5, 1, 4, 30), look(9, 1, 5, 40)}
	for _, row := range []struct {
		name   string
		values []stretch
		polls  []poll
		lost   []window
		want   string
	}{
		{"good", nil, nil, nil, ""},
		{"twice", []stretch{answer(1, 30, 31, 5, 6)}, nil, nil, "no value twice"},
		{"inside", []stretch{answer(2, 5, 5, 5, 6)}, nil, nil, "no value twice"},
		{"a lower one later", []stretch{answer(1, 13, 14, 5, 6)}, nil, nil, "order"},
		{"a lower strict one of another node", []stretch{strict(0, 5, 6, 1, 2), strict(1, 1, 4, 3, 4)}, nil, nil, "order"},
		{"strict ones that overlap", []stretch{strict(0, 5, 6, 1, 3), strict(1, 1, 4, 2, 4)}, nil, nil, ""},
		{"a gap", []stretch{strict(0, 1, 6, 1, 2), strict(0, 8+unanswered, 30, 3, 4)}, nil, nil, "numbers without gaps"},
		{"a gap of a request without an answer", []stretch{strict(0, 1, 6, 1, 2), strict(0, 7+unanswered, 30, 3, 4)}, nil, nil, ""},
		{"a gap by an operator", []stretch{strict(0, 1, 6, 1, 2), strict(0, jump, jump+1, 3, 4)}, nil, nil, ""},
		{"a gap above that of an operator", []stretch{strict(0, 1, 6, 1, 2), strict(0, jump+1+unanswered, jump+99, 3, 4)}, nil, nil, "numbers without gaps"},
		{"a lower one at the same time", []stretch{answer(1, 13, 14, 2, 6)}, nil, nil, ""},
		{"above the record", []stretch{answer(1, 41, 45, 5, 6)}, nil, nil, "the record is above all values"},
		{"above an old record", []stretch{answer(1, 41, 45, 5, 6)}, nil, []window{{8 * s, 10 * s}}, ""},
		{"an older record", nil, []poll{look(10, 1, 4, 40)}, nil, "records do not go back"},
		{"an older incarnation", nil, []poll{look(10, 2, 6, 40), look(11, 1, 7, 40)}, nil, "records do not go back"},
		{"an older record after a loss", nil, []poll{look(10, 1, 4, 40)}, []window{{10 * s, 11 * s}}, ""},
		{"too much", nil, []poll{look(10, 1, 6, 40+210+11)}, nil, "the ceiling"},
		{"as much as allowed", nil, []poll{look(10, 1, 6, 250)}, nil, ""},
		{"a skip", nil, []poll{look(10, 2, 6, 4000)}, nil, ""},
	} {
		all, polls := append(slices.Clone(good), row.values...), append(slices.Clone(looks), row.polls...)
		var f sequenceFindings
		f.twice(all)
		f.order(all)
		f.records(all, polls, row.lost, row.lost)
		f.regress(polls, row.lost)
		f.ceiling(polls, row.lost)
		f.gaps(all, []int64{jump}, [len(sequenceKinds)]int64{strictKind: unanswered})
		if got := strings.Join(f.text, "\n"); (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
			t.Errorf("%s: %q, not %q", row.name, got, row.want)
		}
	}
	for text, want := range map[string]bool{"": false, "-NOTREADY reason=ceiling x": false, "-ERR reason=frozen x": true, "-EXHAUSTED x": true, "-ERR reason=no-sequence x": false} {
		if (sequenceMiss{miss: miss{text: text}}).neverExpected() != want {
			t.Errorf("%q", text)
		}
	}
}
