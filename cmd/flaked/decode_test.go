package main

import (
	"strings"
	"testing"
)

const exampleJSON = `{"id":"2071452936696786986","time":"2026-06-29T04:37:20.500Z","timestamp_ms":1782707840500,"datacenter":0,"worker":7,"sequence":42}` + "\n"

func TestDecode(t *testing.T) {
	for _, row := range []struct {
		name, stdin, args string
		code              int
		out, err          string
	}{
		{"first there can be", "", "decode -o json 0", 0, `{"id":"0","time":"2010-11-04T01:42:54.657Z","timestamp_ms":1288834974657,"datacenter":0,"worker":0,"sequence":0}` + "\n", ""},
		{"last there can be", "", "decode -o json 9223372036854775807", 0, `{"id":"9223372036854775807","time":"2080-07-10T17:30:30.208Z","timestamp_ms":3487858230208,"datacenter":0,"worker":1023,"sequence":4095}` + "\n", ""},
		{"flags after it", "", "decode 4097 -o json", 0, `"sequence":1}` + "\n", ""},
		{"twitter's fields", "", "decode -o json --layout twitter 4063232", 0, `"datacenter":31,"worker":0,"sequence":0}`, ""},
		{"leaf's fields", "", "decode -o json --layout leaf 4063232", 0, `"datacenter":0,"worker":992,"sequence":0}`, ""},
		{"own layout", "", "decode -o json --layout time=35@10ms,worker=10,sequence=12,epoch=2020-01-01T00:00:00Z 4194304", 0, `"time":"2020-01-01T00:00:00.010Z"`, ""},
		{"sonyflake's order", "", "decode -o json --layout sonyflake 16908295", 0, `"time":"2014-09-01T00:00:00.010Z","timestamp_ms":1409529600010,"datacenter":0,"worker":7,"sequence":2}` + "\n", ""},
		{"written in sonyflake's order", "", "decode -o json --layout time=39@10ms,sequence=8,worker=16,epoch=2014-09-01 16908295", 0, `"worker":7,"sequence":2}` + "\n", ""},
		{"a segment", "", "decode -o json --layout pearflower 1077412971", 0, `"worker":7,"sequence":1131,"segment":2}` + "\n", ""},
		{"a segment, in a table", "", "decode --layout pearflower 1077412971", 0, "        0       7    2/1131\n", ""},
		{"a rollback", "", "decode -o json --layout leaf,time=40,rollback=1 4198401", 0, `"worker":1,"sequence":1,"rollback":1}` + "\n", ""},
		{"a rollback, in a table", "", "decode --layout leaf,time=40,rollback=1 4198401", 0, "        0       1      1 r1\n", ""},
		{"several, an object a line", "", "decode -o json 1 2", 0, `"sequence":1}` + "\n" + `{"id":"2"`, ""},
		{"table", "", "decode 4097", 0, "ID                   TIME                       TIMESTAMP MS  DATACENTER  WORKER  SEQUENCE\n4097                 2010-11-04T01:42:54.657Z  1288834974657           0       1         1\n", ""},
		{"wide is the same", "", "decode -o wide 4097", 0, "4097                 2010", ""},
		{"from stdin", "1\n\n 2 \r\n3", "decode -o json", 0, `{"id":"3"`, ""},
		{"nothing on stdin", "\n", "decode", 0, "", ""},
		{"too large", "", "decode 9223372036854775808", exitFailure, "", `flaked: "9223372036854775808" is not an ID: IDs are decimal numbers from 0 to`},
		{"negative", "", "decode -1", exitFailure, "", "-1 is not an ID: IDs are positive"},
		{"not a number", "", "decode abc", exitFailure, "", `"abc" is not an ID`},
		{"hex", "", "decode 0x10", exitFailure, "", `"0x10" is not an ID`},
		{"with a point", "", "decode 1.5", exitFailure, "", `"1.5" is not an ID`},
		{"empty argument", "", "decode --", 0, "", ""},
		{"beyond the time field", "", "decode --layout time=40@1ms,worker=10,sequence=12 9223372036854775807", exitFailure, "", "is not an ID of this layout"},
		{"bad ones among good ones", "1\nx\n2\n-3\n", "decode -o json", exitFailure, `{"id":"2"`, "flaked: \"x\" is not an ID"},
	} {
		t.Run(row.name, func(t *testing.T) {
			call(t, row.stdin, strings.Fields(row.args)...).wants(t, row.code, row.out, row.err)
		})
	}
}

// The whole of it: scripts read this.
func TestDecodeJSONGolden(t *testing.T) {
	r := call(t, "", "decode", "2071452936696786986", "-o", "json")
	var want string
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("%+v", r)
	}
	if want = exampleJSON; r.stdout != want {
		t.Errorf("%s\nwant\n%s", r.stdout, want)
	}
	if r := call(t, "1\nx\n2\n", "decode", "-o", "json"); !strings.HasSuffix(r.stderr, "flaked: 1 of 3 could not be decoded\n") {
		t.Errorf("%q", r.stderr)
	}
}
