package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
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

func answerOf(node uint8, first, last, asked, got int64) stretch {
	const s = int64(time.Second)
	return stretch{node: node, first: first, last: last, n: int32(last - first + 1), asked: asked * s, got: got * s}
}

func strictAnswer(node uint8, first, last, asked, got int64) stretch {
	v := answerOf(node, first, last, asked, got)
	v.kind = strictKind
	return v
}

// testedJump is the value at which an operator let the strict sequence go on. testedLoss numbers of it were asked for
// without an answer.
const testedJump, testedLoss = 1000, 3

// sequenceRows: each row adds answers to good ones, and must lead to the finding want.
var sequenceRows = []struct {
	name   string
	values []stretch
	want   string
}{
	{"good", nil, ""},
	{"twice", []stretch{answerOf(1, 30, 31, 5, 6)}, "no value twice"},
	{"inside", []stretch{answerOf(2, 5, 5, 5, 6)}, "no value twice"},
	{"a lower one later", []stretch{answerOf(1, 13, 14, 5, 6)}, "order"},
	{"a lower strict one of another node", []stretch{strictAnswer(0, 5, 6, 1, 2), strictAnswer(1, 1, 4, 3, 4)},
		"order"},
	{"strict ones that overlap", []stretch{strictAnswer(0, 5, 6, 1, 3), strictAnswer(1, 1, 4, 2, 4)}, ""},
	{"a gap", []stretch{strictAnswer(0, 1, 6, 1, 2), strictAnswer(0, 8+testedLoss, 30, 3, 4)}, "numbers without gaps"},
	{"a gap of a request without an answer",
		[]stretch{strictAnswer(0, 1, 6, 1, 2), strictAnswer(0, 7+testedLoss, 30, 3, 4)}, ""},
	{"a gap by an operator", []stretch{strictAnswer(0, 1, 6, 1, 2), strictAnswer(0, testedJump, testedJump+1, 3, 4)},
		""},
	{"a gap above that of an operator", []stretch{strictAnswer(0, 1, 6, 1, 2),
		strictAnswer(0, testedJump+1+testedLoss, testedJump+99, 3, 4)}, "numbers without gaps"},
	{"a lower one at the same time", []stretch{answerOf(1, 13, 14, 2, 6)}, ""},
}

func TestSequenceFindings(t *testing.T) {
	good := []stretch{answerOf(0, 1, 10, 1, 2), answerOf(1, 21, 30, 1, 2), answerOf(0, 11, 12, 3, 4)}
	for _, row := range sequenceRows {
		all := append(slices.Clone(good), row.values...)
		var f sequenceFindings
		f.twice(all)
		f.order(all)
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
