package e2e

import (
	"cmp"
	"fmt"
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
	return fmt.Sprintf("%s %d to %d, asked of node %d at %s, answered at %s", sequenceKinds[v.kind].name, v.first,
		v.last, v.node, moment(v.asked), moment(v.got))
}

// twice finds values that were answered twice. Within one answer values have no gaps, so two answers have a
// value in common, or values of the one lie between those of the other, only if a rule is broken.
func (f *sequenceFindings) twice(all []stretch) {
	slices.SortFunc(all, func(a, b stretch) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind),
			cmp.Compare(a.first, b.first))
	})
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
	slices.SortFunc(all, func(a, b stretch) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind),
			cmp.Compare(a.first, b.first))
	})
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
			f.found("numbers without gaps", "%d numbers of %s are missing, and requests for %d were not answered", n,
				sequenceKinds[kind].name, unanswered[kind])
		}
	}
	return missing
}

// records finds records whose next value is not above all that had been answered before the record was read.
// lost are the windows in which ZooKeeper may have an older record, and frozen those for a strict sequence: nobody
// issues it
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
		older := p.record.Incarnation < was.record.Incarnation || p.record.Incarnation == was.record.Incarnation &&
			p.record.Gen < was.record.Gen
		if older || p.state.Incarnation < was.state.Incarnation || p.state.Incarnation == was.state.Incarnation &&
			p.state.Changes < was.state.Changes {
			f.found("records do not go back", "%s at %s: %+v, %+v; at %s: %+v, %+v", sequenceKinds[p.kind].name,
				moment(was.got), was.record, was.state, moment(p.got), p.record, p.state)
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
				if b.record.ID != a.record.ID || b.record.Incarnation != a.record.Incarnation ||
					b.record.From != a.record.From {
					break
				}
				c := a.record.HardCeiling
				most := c*(time.Duration(b.got-a.asked)+sequence.Burst+limits.ClocksApart).Milliseconds()/1000 + 1
				if n := b.record.Next - a.record.Next; n > most && !touches(lost, a.asked, b.got) {
					f.found("the ceiling", "%d positions of %s were taken from %s to %s, and %d are allowed", n,
						sequenceKinds[kind].name, moment(a.asked), moment(b.got), most)
					break
				}
			}
		}
	}
}

func answerOf(node uint8, first, last, asked, got int64) stretch {
	const s = int64(time.Second)
	return stretch{node: node, first: first, last: last, n: int32(last - first + 1), asked: asked * s, got: got * s}
}

func strictAnswer(node uint8, first, last, asked, got int64) stretch {
	v := answerOf(node, first, last, asked, got)
	v.kind = strictKind
	return v
}

func lookAt(at, incarnation, gen, next int64) poll {
	at *= int64(time.Second)
	return poll{asked: at, got: at, state: seq.State{Incarnation: incarnation}, record: seq.Record{
		ID: "a", Map: sequence.Map{Start: 1, Increment: 1, Max: sequence.MaxJavaScript}, Incarnation: incarnation,
		Gen:  gen,
		Next: next, Settings: seq.Settings{HardCeiling: 10},
	}}
}

// testedJump is the value at which an operator let the strict sequence go on, and testedLoss how many numbers of it
// were
// asked for without an answer.
const testedJump, testedLoss = 1000, 3

// sequenceRows: each row adds answers and looks to good ones, and must lead to the finding want.
var sequenceRows = []struct {
	name   string
	values []stretch
	polls  []poll
	lost   []window
	want   string
}{
	{"good", nil, nil, nil, ""},
	{"twice", []stretch{answerOf(1, 30, 31, 5, 6)}, nil, nil, "no value twice"},
	{"inside", []stretch{answerOf(2, 5, 5, 5, 6)}, nil, nil, "no value twice"},
	{"a lower one later", []stretch{answerOf(1, 13, 14, 5, 6)}, nil, nil, "order"},
	{"a lower strict one of another node", []stretch{strictAnswer(0, 5, 6, 1, 2), strictAnswer(1, 1, 4, 3, 4)}, nil,
		nil, "order"},
	{"strict ones that overlap", []stretch{strictAnswer(0, 5, 6, 1, 3), strictAnswer(1, 1, 4, 2, 4)}, nil, nil, ""},
	{"a gap", []stretch{strictAnswer(0, 1, 6, 1, 2), strictAnswer(0, 8+testedLoss, 30, 3, 4)}, nil, nil,
		"numbers without gaps"},
	{"a gap of a request without an answer",
		[]stretch{strictAnswer(0, 1, 6, 1, 2), strictAnswer(0, 7+testedLoss, 30, 3, 4)}, nil, nil, ""},
	{"a gap by an operator", []stretch{strictAnswer(0, 1, 6, 1, 2), strictAnswer(0, testedJump, testedJump+1, 3, 4)},
		nil, nil, ""},
	{"a gap above that of an operator", []stretch{strictAnswer(0, 1, 6, 1, 2),
		strictAnswer(0, testedJump+1+testedLoss, testedJump+99, 3, 4)}, nil, nil, "numbers without gaps"},
	{"a lower one at the same time", []stretch{answerOf(1, 13, 14, 2, 6)}, nil, nil, ""},
	{"above the record", []stretch{answerOf(1, 41, 45, 5, 6)}, nil, nil, "the record is above all values"},
	{"above an old record", []stretch{answerOf(1, 41, 45, 5, 6)}, nil,
		[]window{{8 * int64(time.Second), 10 * int64(time.Second)}}, ""},
	{"an older record", nil, []poll{lookAt(10, 1, 4, 40)}, nil, "records do not go back"},
	{"an older incarnation", nil, []poll{lookAt(10, 2, 6, 40), lookAt(11, 1, 7, 40)}, nil, "records do not go back"},
	{"an older record after a loss", nil, []poll{lookAt(10, 1, 4, 40)},
		[]window{{10 * int64(time.Second), 11 * int64(time.Second)}}, ""},
	{"too much", nil, []poll{lookAt(10, 1, 6, 40+210+11)}, nil, "the ceiling"},
	{"as much as allowed", nil, []poll{lookAt(10, 1, 6, 250)}, nil, ""},
	{"a skip", nil, []poll{lookAt(10, 2, 6, 4000)}, nil, ""},
}

func TestSequenceFindings(t *testing.T) {
	good := []stretch{answerOf(0, 1, 10, 1, 2), answerOf(1, 21, 30, 1, 2), answerOf(0, 11, 12, 3, 4)}
	looks := []poll{lookAt(0, 1, 1, 0), lookAt(5, 1, 4, 30), lookAt(9, 1, 5, 40)}
	for _, row := range sequenceRows {
		all, polls := append(slices.Clone(good), row.values...), append(slices.Clone(looks), row.polls...)
		var f sequenceFindings
		f.twice(all)
		f.order(all)
		f.records(all, polls, row.lost, row.lost)
		f.regress(polls, row.lost)
		f.ceiling(polls, row.lost)
		f.gaps(all, []int64{testedJump}, [len(sequenceKinds)]int64{strictKind: testedLoss})
		if got := strings.Join(f.text, "\n"); (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
			t.Errorf("%s: %q, not %q", row.name, got, row.want)
		}
	}
	for text, want := range map[string]bool{"": false, "-NOTREADY reason=ceiling x": false,
		"-ERR reason=frozen x": true, "-EXHAUSTED x": true, "-ERR reason=no-sequence x": false} {
		if (miss{text: text}).neverExpected(0) != want {
			t.Errorf("%q", text)
		}
	}
}
