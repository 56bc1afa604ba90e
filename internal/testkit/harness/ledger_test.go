//go:build unix

package harness

import (
	"slices"
	"testing"

	"github.com/flaked/flaked/internal/check/order"
)

func answerOf(node int, first, last, sent, answered int64) order.Request {
	return order.Request{Name: "orders", Node: node, First: first, Last: last, Sent: sent, Answered: answered}
}

func strictAnswer(node int, first, last, sent, answered int64) order.Request {
	return named("invoices", answerOf(node, first, last, sent, answered))[0]
}

func named(name string, all ...order.Request) []order.Request {
	for i := range all {
		all[i].Name = name
	}
	return all
}

func keyOf(key string, r order.Request) order.Request {
	r.Key = key
	return r
}

// noAnswer is a request for three values of the strict sequence.
func noAnswer(sent int64) order.Request {
	r := strictAnswer(0, 0, 0, sent, sent+1)
	r.Lost = 3
	return r
}

// ledgerRows: each row adds answers to good ones, and must lead to the violation want.
var ledgerRows = []struct {
	name   string
	values []order.Request
	want   string
}{
	{"good", nil, ""},
	{"twice", []order.Request{answerOf(1, 30, 31, 5, 6)}, order.NoValueTwice},
	{"inside", []order.Request{answerOf(2, 5, 5, 5, 6)}, order.NoValueTwice},
	{"a lower one later", []order.Request{answerOf(1, 13, 14, 5, 6)}, order.InOrder},
	{"a lower one later, scattered", named("voucher", answerOf(1, 5, 5, 3, 4), answerOf(1, 4, 4, 5, 6)), ""},
	{"twice, scattered", named("voucher", answerOf(1, 5, 5, 3, 4), answerOf(2, 5, 5, 5, 6)), order.NoValueTwice},
	{"a lower strict one of another node", []order.Request{strictAnswer(0, 5, 6, 1, 2), strictAnswer(1, 1, 4, 3, 4)},
		order.InOrder},
	{"strict ones that overlap", []order.Request{strictAnswer(0, 5, 6, 1, 3), strictAnswer(1, 1, 4, 2, 4)}, ""},
	{"a lower ordered one of another node", named(Plain, answerOf(0, 5, 6, 1, 2), answerOf(1, 1, 4, 3, 4)),
		order.InOrder},
	{"values of two names of a family", append(named(Members[0], answerOf(0, 5, 6, 1, 2)),
		named(Members[1], answerOf(1, 1, 6, 3, 4))...), ""},
	{"a value of a name of a family, twice", named(Members[0], answerOf(0, 5, 6, 1, 3), answerOf(1, 6, 6, 2, 4)),
		order.InOrder},
	{"a gap", []order.Request{strictAnswer(0, 1, 6, 1, 2), noAnswer(3), strictAnswer(0, 11, 30, 4, 5)}, order.InOrder},
	{"a gap of a request without an answer",
		[]order.Request{strictAnswer(0, 1, 6, 1, 2), noAnswer(0), strictAnswer(0, 10, 30, 3, 4)}, ""},
	{"a gap by an operator", []order.Request{strictAnswer(0, 1, 6, 1, 2), strictAnswer(0, 1000, 1001, 3, 4)}, ""},
	{"a gap above that of an operator", []order.Request{strictAnswer(0, 1, 6, 1, 2), strictAnswer(0, 1001, 1099, 3, 4)},
		order.InOrder},
	{"a key again", []order.Request{keyOf("k", strictAnswer(0, 1, 1, 1, 2)), strictAnswer(1, 2, 2, 3, 4),
		keyOf("k", strictAnswer(1, 1, 1, 5, 6))}, ""},
	{"another value for a key", []order.Request{keyOf("k", strictAnswer(0, 1, 1, 1, 2)),
		keyOf("k", strictAnswer(1, 2, 2, 3, 4))}, order.InOrder},
	{"a lower one at the same time", []order.Request{answerOf(1, 13, 14, 2, 6)}, ""},
}

func TestLedgerFindsEachViolation(t *testing.T) {
	good := []order.Request{answerOf(0, 1, 10, 1, 2), answerOf(1, 21, 30, 1, 2), answerOf(0, 11, 12, 3, 4)}
	for _, row := range ledgerRows {
		l := NewLedger()
		l.modes = map[string]string{"invoices": "strict", Plain: "ordered", Family: "ordered", "voucher": scattered}
		l.Jumps, l.requests = []int64{1000}, append(slices.Clone(good), row.values...)
		found := l.Violations()
		if (row.want == "") != (len(found) == 0) ||
			row.want != "" && !slices.ContainsFunc(found, func(v order.Violation) bool { return v.Rule == row.want }) {
			t.Errorf("%s: %v, want %q", row.name, found, row.want)
		}
	}
}
