package seqimport

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/flaked/flaked/sequence"
)

func same(name string) (string, error) { return name, sequence.CheckName(name) }

// The expected numbers are what each generator issues next, as read in its code or tried with it.
func TestFirstFree(t *testing.T) {
	for _, c := range []struct {
		from, row               string
		first, increment, start int64
	}{
		{"leaf", "order\t1\t1000", 1, 1, 1}, // a new row issues 1 first
		{"leaf", "order\t2001\t1000", 2001, 1, 1},
		{"leaf", "order\t0", 0, 1, 0},
		{"tinyid", "order\t1\t100000\t1\t0", 2, 1, 1}, // tinyid's README shows 2 first
		{"tinyid", "order\t100001\t100000\t1\t0", 100002, 1, 1},
		{"tinyid", "order\t100000\t100000\t2\t0", 100002, 2, 2},
		{"tinyid", "order\t100000\t100000\t2\t1", 100001, 2, 1},
		{"tinyid", "order\t100001\t100000\t2\t1", 100003, 2, 1},
		{"tinyid", "order\t100\t10\t7\t6", 104, 7, 6},
		{"tinyid", "order\t104\t10\t7\t6", 111, 7, 6},
		{"mysql", "order,501,500", 501, 1, 1},
		{"mysql", "order,501,700", 701, 1, 1}, // stale statistics
		{"mysql", "order,501,NULL", 501, 1, 1},
		{"mysql", "order,NULL,NULL", 1, 1, 1},
		{"mysql", "order,501,500,2,2", 502, 2, 2},
		{"mysql", "order,501,500,2,1", 501, 2, 1},
		{"mysql", "order,501,501,2,1", 503, 2, 1},
		{"mysql", "order,501,501,2,2", 502, 2, 2},
		{"postgres", "order|500|t|1", 501, 1, 1},
		{"postgres", "order|500|f|1", 500, 1, 1},
		{"postgres", "order|500|t|10", 510, 10, 10},
		{"postgres", "order|501|true|10", 511, 10, 1},
		{"postgres", "order|1|f|1", 1, 1, 1},
		{"redis", "order\t500", 501, 1, 1},
		{"redis", `"order","500"`, 501, 1, 1},
		{"redis", "order\t0", 1, 1, 1},
		{"redis", "order\t-1", 0, 1, 0},
	} {
		found, err := Read(c.from, strings.NewReader(c.row+"\n"), same)
		if err != nil || len(found) != 1 {
			t.Errorf("%s %q: %v %v", c.from, c.row, found, err)
			continue
		}
		if f := found[0]; f.Name != "order" || f.First != c.first || f.Increment != c.increment || f.Start() != c.start {
			t.Errorf("%s %q: %+v, start %d, not %d by %d from %d", c.from, c.row, f, f.Start(), c.first, c.increment, c.start)
		}
	}
}

func TestReadKnowsHeaders(t *testing.T) {
	for _, c := range []struct{ from, in string }{
		{"leaf", "biz_tag\tmax_id\tstep\tdescription\tupdate_time\norder\t2001\t1000\tTest, leaf\t2026-11-01 10:00:00\n"},
		{"leaf", "MAX_ID,BIZ_TAG\n2001,order\n"},
		{"tinyid", "id\tbiz_type\tbegin_id\tmax_id\tstep\tdelta\tremainder\tversion\n1\torder\t1\t2000\t1000\t1\t0\t3\n"},
		{"mysql", "name\tauto_increment\tmax_id\r\norder\t2001\t17\r\n"},
		{"postgres", "name|last_value|is_called|increment\n\norder|2000|t|1\n\n"},
		{"redis", "name,value\norder,2000\n"},
	} {
		found, err := Read(c.from, strings.NewReader(c.in), same)
		if err != nil || len(found) != 1 || found[0].First != 2001 || found[0].Name != "order" {
			t.Errorf("%s: %+v %v", c.from, found, err)
		}
	}
}

func TestReadNamesEachBadLine(t *testing.T) {
	for _, c := range []struct{ from, in, want string }{
		{"leaf", "order\t1\nuser\tx\ncart\t1\t0\n", "line 2: max_id is \"x\", not a whole number of 64 bits; line 3: step must be 1 or more, not 0"},
		{"leaf", "order\t1\norder\t2\n", "line 2: sequence order is in line 1, too"},
		{"leaf", "order\tNULL\n", "line 1: max_id is empty"},
		{"leaf", "order\t-5\n", "line 1: " + errNegative.Error()},
		{"leaf", "2nd\t1\n", "line 1: the name of a sequence must begin with a letter, not '2'"},
		{"leaf", "order\n", "line 1: 1 column, but a row has biz_tag, max_id, and may have step, separated by tabs or commas"},
		{"leaf", "biz_tag\tmax_id\norder\t1\t2\n", "line 2: 3 columns, but the header has 2"},
		{"leaf", "biz_tag\tstep\norder\t1000\n", "line 2: the header has no column max_id. A row has biz_tag, max_id, and may have step"},
		{"leaf", "order\t9223372036854775808\n", `line 1: max_id is "9223372036854775808", not a whole number of 64 bits`},
		{"tinyid", "order\t1\t1000\t2\t2\n", "line 1: remainder must be 0 to 1, below delta, not 2. No number has it"},
		{"tinyid", "order\t1\t1000\t0\t0\n", "line 1: delta and step must be 1 or more"},
		{"tinyid", "order\t9223372036854775807\t1000\t1\t0\n", "line 1: " + errTooLarge.Error()},
		{"tinyid", "order\t9223372036854775806\t1000\t4\t0\n", "line 1: " + errTooLarge.Error()},
		{"mysql", "order,1,1,2,3\n", "line 1: auto_increment_increment must be 1 or more, and auto_increment_offset 1 to that"},
		{"mysql", "order,one,1\n", `line 1: auto_increment is "one", not a whole number of 64 bits`},
		{"postgres", "order|1|t|-1\n", "line 1: increment must be 1 or more, not -1. A sequence does not count down"},
		{"postgres", "order|1|maybe|1\n", `line 1: is_called is "maybe", not t or f`},
		{"postgres", "order||t|1\n", "line 1: last_value is empty"},
		{"postgres", "order|9223372036854775807|t|1\n", "line 1: " + errTooLarge.Error()},
		{"redis", "order\t\n", "line 1: value is empty"},
		{"redis", "order\t1.5\n", `line 1: value is "1.5", not a whole number of 64 bits`},
	} {
		_, err := Read(c.from, strings.NewReader(c.in), same)
		if bad := (BadRows{}); !errors.As(err, &bad) || bad.Error() != c.want {
			t.Errorf("%s %q: %v", c.from, c.in, err)
		}
	}
}

func TestBadRowsAreNotAllPrinted(t *testing.T) {
	var in strings.Builder
	for k := range 15 {
		fmt.Fprintf(&in, "order%d\tx\n", k)
	}
	_, err := Read("redis", strings.NewReader(in.String()), same)
	if err == nil || strings.Count(err.Error(), "; ") != 10 || !strings.HasSuffix(err.Error(), "; and 5 more lines") {
		t.Error(err)
	}
}

func TestReadWithoutRows(t *testing.T) {
	for _, c := range []struct{ from, in, want string }{
		{"leaf", "", "standard input has no rows. Each has biz_tag, max_id, step, separated by tabs or commas"},
		{"redis", "name,value\n", "standard input has no rows. Each has name, value, separated by tabs or commas"},
		{"oracle", "order,1\n", `must be one of leaf, tinyid, mysql, postgres, redis, not "oracle"`},
	} {
		if _, err := Read(c.from, strings.NewReader(c.in), same); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", c.from, err)
		}
	}
}

func TestMargin(t *testing.T) {
	for _, c := range []struct {
		margin  string
		counter Counter
		want    int64
	}{
		{"10%", Counter{First: 1001, Increment: 1}, 1101},
		{"10%", Counter{First: 1001, Increment: 1, Step: 100}, 2001}, // ten steps at least
		{"10%", Counter{First: 51, Increment: 1}, 61},
		{"10%", Counter{First: 1, Increment: 1}, 11},
		{"10%", Counter{First: 10_001, Increment: 10}, 11_001}, // a tenth of 1,000 numbers, ten apart
		{"100%", Counter{First: 1001, Increment: 1}, 2001},
		{"0%", Counter{First: 1001, Increment: 1}, 1011},
		{"0", Counter{First: 1001, Increment: 1}, 1001},
		{"7", Counter{First: 1002, Increment: 2}, 1016},
		{"10%", Counter{First: math.MaxInt64/11*10 - 10, Increment: 1}, 9223372036854775788},
	} {
		m, err := ParseMargin(c.margin)
		if err != nil {
			t.Fatal(err)
		}
		if next, err := m.After(c.counter); err != nil || next != c.want {
			t.Errorf("%s after %+v: %d, not %d, %v", c.margin, c.counter, next, c.want, err)
		}
	}
	for _, c := range []Counter{{First: math.MaxInt64 - 5, Increment: 1}, {First: 1, Increment: math.MaxInt64}, {First: 1, Increment: 1 << 30, Step: math.MaxInt64}} {
		if next, err := (Margin{percent: 10}).After(c); err == nil {
			t.Errorf("10%% after %+v: %d", c, next)
		}
	}
	for _, text := range []string{"", "%", "x", "-1", "-1%", "101%", "1.5%", "9223372036854775808"} {
		if m, err := ParseMargin(text); err == nil {
			t.Errorf("%q: %+v", text, m)
		}
	}
}
