package main

import (
	"strings"
	"testing"
)

// recent is a layout whose first IDs are not doubted.
const recent = "leaf,epoch=2021-01-01"

func TestDecode(t *testing.T) {
	const sonyflake = "sonyflake,epoch=2021-01-01"
	for _, row := range []struct {
		name, stdin, args string
		code              int
		out, err          string
	}{
		{"first there can be", "", "decode -o json --layout RECENT 0", 0,
			`"time":"2021-01-01T00:00:00.000Z","timestamp_ms":1609459200000,"datacenter":0,"worker":0,"sequence":0,`, ""},
		{"last there can be", "", "decode -o json --layout leaf 9223372036854775807", 0,
			`"time":"2080-07-10T17:30:30.208Z","timestamp_ms":3487858230208,"datacenter":0,"worker":1023,"sequence":4095`,
			""},
		{"twitter's fields", "", "decode -o json --layout twitter,epoch=2021-01-01 4063232", 0,
			`"datacenter":31,"worker":0,"sequence":0,`, ""},
		{"own layout", "", "decode -o json --layout time=35@10ms,worker=10,sequence=12,epoch=2020-01-01T00:00:00Z " +
			"4194304", 0, `"time":"2020-01-01T00:00:00.010Z"`, ""},
		{"sonyflake's order", "", "decode -o json --layout " + sonyflake + " 16908295", 0,
			`"timestamp_ms":1609459200010,"datacenter":0,"worker":7,"sequence":2,`, ""},
		{"a segment", "", "decode -o json --layout pearflower,epoch=2021-01-01 1077412971", 0,
			`"worker":7,"sequence":1131,"segment":2,`, ""},
		{"a segment, in a table", "", "decode --layout pearflower,epoch=2021-01-01 1077412971", 0,
			"        0       7    2/1131\n", ""},
		{"a rollback", "", "decode -o json --layout RECENT,time=40,rollback=1 4198401", 0,
			`"worker":1,"sequence":1,"rollback":1,`, ""},
		{"a rollback, in a table", "", "decode --layout RECENT,time=40,rollback=1 4198401", 0,
			"        0       1      1 r1\n", ""},
		{"several, an object a line", "", "decode -o json --layout RECENT 1 2", 0, `"layout_from":"--layout"}` + "\n" +
			`{"id":"2"`, ""},
		{"from stdin", "1\n\n 2 \r\n3", "decode -o json --layout RECENT", 0, `{"id":"3"`, ""},
		{"too large", "", "decode --layout RECENT 9223372036854775808", exitFailure, "",
			`flaked: "9223372036854775808" is not an ID: IDs are decimal numbers from 0 to`},
		{"negative", "", "decode --layout RECENT -1", exitFailure, "", "-1 is not an ID: an ID must not be negative"},
		{"not a number", "", "decode --layout RECENT abc", exitFailure, "", `"abc" is not an ID`},
		{"beyond the time field", "", "decode --layout time=40@1ms,worker=10,sequence=12 9223372036854775807",
			exitFailure, "", "is not an ID of this layout"},
		{"bad ones among good ones", "1\nx\n2\n-3\n", "decode -o json --layout RECENT", exitFailure, `{"id":"2"`,
			"flaked: \"x\" is not an ID"},
	} {
		t.Run(row.name, func(t *testing.T) {
			args := strings.Fields(strings.ReplaceAll(row.args, "RECENT", recent))
			call(t, row.stdin, args...).wants(t, row.code, row.out, row.err)
		})
	}
}

// Scripts read the whole line.
func TestDecodeGolden(t *testing.T) {
	for name, args := range map[string][]string{"decode.json": {"-o", "json"}, "decode.txt": nil} {
		r := call(t, "", append([]string{"decode", "2071452936696786986", "--layout", "leaf"}, args...)...)
		golden(t, name, r.stdout)
		if r.code != 0 || r.stderr != "" {
			t.Errorf("%+v", r)
		}
	}
	if r := call(t, "1\nx\n2\n", "decode", "-o", "json", "--layout", recent); !strings.HasSuffix(r.stderr,
		"flaked: 1 of 3 could not be decoded\n") {
		t.Errorf("%q", r.stderr)
	}
}
