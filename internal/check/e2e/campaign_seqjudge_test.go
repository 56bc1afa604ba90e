package e2e

import (
	"fmt"
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

// judge finds values that were answered twice, and answers that are not above all those that had been given before
// their request was sent. Values of a segment rise on each node, over all its connections and processes, the others
// over all nodes. jumps are the values at which operators let the strict sequence go on.
func (f *sequenceFindings) judge(all []order.Request, jumps []int64) {
	type counter struct {
		name string
		node int
	}
	var segments, ordered, strict []order.Request
	for _, r := range all {
		switch k := kindOf(r.Name); {
		case k.mode == "":
			segments = append(segments, r)
		case k.ordered():
			ordered = append(ordered, r)
		default:
			strict = append(strict, r)
		}
	}
	for _, v := range slices.Concat(order.Twice(segments),
		order.Rising(segments, func(r order.Request) counter { return counter{r.Name, r.Node} }),
		order.Rising(ordered, func(r order.Request) string { return r.Name }),
		order.Strict(strict, jumps)) {
		f.found(v.Rule, "%s; then %s", v.Before, v.After)
	}
}

// kindOf returns the kind of the sequence of that name.
func kindOf(name string) sequenceKind {
	i := slices.IndexFunc(sequenceKinds[:], func(k sequenceKind) bool { return k.name == name })
	if i < 0 {
		i = familyKind
	}
	return sequenceKinds[i]
}

func answerOf(node int, first, last, sent, answered int64) order.Request {
	const s = int64(time.Second)
	return order.Request{Name: "orders", Node: node, First: first, Last: last, Sent: sent * s, Answered: answered * s}
}

func strictAnswer(node int, first, last, sent, answered int64) order.Request {
	return named(sequenceKinds[strictKind].name, answerOf(node, first, last, sent, answered))[0]
}

func named(name string, all ...order.Request) []order.Request {
	for i := range all {
		all[i].Name = name
	}
	return all
}

func keyed(key string, r order.Request) order.Request {
	r.Key = key
	return r
}

// noAnswer is a request for three values of the strict sequence.
func noAnswer(sent int64) order.Request {
	r := strictAnswer(0, 0, 0, sent, sent+1)
	r.Lost = 3
	return r
}

// testedJump is the value at which an operator let the strict sequence go on.
const testedJump = 1000

// sequenceRows: each row adds answers to good ones, and must lead to the finding want.
var sequenceRows = []struct {
	name   string
	values []order.Request
	want   string
}{
	{"good", nil, ""},
	{"twice", []order.Request{answerOf(1, 30, 31, 5, 6)}, "no value twice"},
	{"inside", []order.Request{answerOf(2, 5, 5, 5, 6)}, "no value twice"},
	{"a lower one later", []order.Request{answerOf(1, 13, 14, 5, 6)}, "order"},
	{"a lower strict one of another node", []order.Request{strictAnswer(0, 5, 6, 1, 2), strictAnswer(1, 1, 4, 3, 4)},
		"order"},
	{"strict ones that overlap", []order.Request{strictAnswer(0, 5, 6, 1, 3), strictAnswer(1, 1, 4, 2, 4)}, ""},
	{"a lower ordered one of another node", named(plain, answerOf(0, 5, 6, 1, 2), answerOf(1, 1, 4, 3, 4)), "order"},
	{"values of two names of a family", append(named(members[0], answerOf(0, 5, 6, 1, 2)),
		named(members[1], answerOf(1, 1, 6, 3, 4))...), ""},
	{"a value of a name of a family, twice", named(members[0], answerOf(0, 5, 6, 1, 3), answerOf(1, 6, 6, 2, 4)),
		"order"},
	{"a gap", []order.Request{strictAnswer(0, 1, 6, 1, 2), noAnswer(3), strictAnswer(0, 11, 30, 4, 5)}, "order"},
	{"a gap of a request without an answer",
		[]order.Request{strictAnswer(0, 1, 6, 1, 2), noAnswer(0), strictAnswer(0, 10, 30, 3, 4)}, ""},
	{"a gap by an operator", []order.Request{strictAnswer(0, 1, 6, 1, 2),
		strictAnswer(0, testedJump, testedJump+1, 3, 4)}, ""},
	{"a gap above that of an operator", []order.Request{strictAnswer(0, 1, 6, 1, 2),
		strictAnswer(0, testedJump+1, testedJump+99, 3, 4)}, "order"},
	{"a key again", []order.Request{keyed("k", strictAnswer(0, 1, 1, 1, 2)), strictAnswer(1, 2, 2, 3, 4),
		keyed("k", strictAnswer(1, 1, 1, 5, 6))}, ""},
	{"another value for a key", []order.Request{keyed("k", strictAnswer(0, 1, 1, 1, 2)),
		keyed("k", strictAnswer(1, 2, 2, 3, 4))}, "order"},
	{"a lower one at the same time", []order.Request{answerOf(1, 13, 14, 2, 6)}, ""},
}

func TestSequenceFindings(t *testing.T) {
	good := []order.Request{answerOf(0, 1, 10, 1, 2), answerOf(1, 21, 30, 1, 2), answerOf(0, 11, 12, 3, 4)}
	for _, row := range sequenceRows {
		all := append(slices.Clone(good), row.values...)
		var f sequenceFindings
		f.judge(all, []int64{testedJump})
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
