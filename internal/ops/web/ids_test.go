package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/worker"
)

// counting returns a Reserve that makes IDs from first on, at most three per call.
func counting(first worker.ID) func(context.Context, int) (worker.Run, error) {
	return func(_ context.Context, n int) (worker.Run, error) {
		run := worker.Run{First: first, Step: 1, Len: min(n, 3)}
		first += worker.ID(run.Len)
		return run, nil
	}
}

func refusing(code ids.Code, text string) func(context.Context, int) (worker.Run, error) {
	return func(context.Context, int) (worker.Run, error) {
		return worker.Run{}, fmt.Errorf("wrapped: %w", replies.New(code, text))
	}
}

func TestIDs(t *testing.T) {
	for _, row := range []struct {
		name, method, query string
		reserve             func(context.Context, int) (worker.Run, error)
		code                int
		retry, body         string
	}{
		{"one", "GET", "", counting(2123840319823806551), 200, "", `{"ids":["2123840319823806551"]}`},
		{"by POST", "POST", "", counting(5), 200, "", `{"ids":["5"]}`},
		{"some", "GET", "?n=4", counting(7), 200, "", `{"ids":["7","8","9","10"]}`},
		{"none", "GET", "?n=0", counting(7), 400, "",
			`{"error":{"code":"ERR","text":"n must be 1 to 10000, digits only"}}`},
		{"too many", "GET", "?n=10001", counting(7), 400, "",
			`{"error":{"code":"ERR","text":"n must be 1 to 10000, digits only"}}`},
		{"a zero before", "GET", "?n=05", counting(7), 400, "",
			`{"error":{"code":"ERR","text":"n must be 1 to 10000, digits only"}}`},
		{"HEAD would burn one", "HEAD", "", counting(7), 405, "", ""},
		{"not ready", "GET", "", refusing(ids.NOTREADY, "starting"), 503, "1",
			`{"error":{"code":"NOTREADY","text":"starting"}}`},
		{"a sequence at its ceiling", "GET", "", refusing(ids.NOTREADY, "reason=ceiling retry_after_ms=6640 x"),
			503, "7", `{"error":{"code":"NOTREADY","text":"reason=ceiling retry_after_ms=6640 x"}}`},
		{"a clock behind", "GET", "", refusing(ids.CLOCK, "behind_ms=2500 retry_after_ms=2500"), 503, "3",
			`{"error":{"code":"CLOCK","text":"behind_ms=2500 retry_after_ms=2500"}}`},
		{"fenced", "GET", "", refusing(ids.FENCED, "lost"), 503, "1", `{"error":{"code":"FENCED","text":"lost"}}`},
		{"the end of time", "GET", "", refusing(ids.EXHAUSTED, "used up"), 500, "",
			`{"error":{"code":"EXHAUSTED","text":"used up"}}`},
		{"busy", "GET", "", refusing(ids.BUSY, "busy"), 429, "1", `{"error":{"code":"BUSY","text":"busy"}}`},
		{"anything else", "GET", "", func(context.Context, int) (worker.Run, error) {
			return worker.Run{},
				errors.New("odd")
		}, 503, "1", `{"error":{"code":"NOTREADY","text":"odd"}}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			addr, _ := start(t, Config{Reserve: row.reserve})
			code, header, body := do(t, row.method, "http://"+addr+"/v1/ids"+row.query)
			if code != row.code || strings.TrimSpace(body) != row.body || header.Get("Retry-After") != row.retry {
				t.Errorf("%d %q %s, want %d %q %s", code, header.Get("Retry-After"), body, row.code, row.retry,
					row.body)
			}
		})
	}
}

// leafCluster returns the state of a node of a cluster with Leaf's layout.
func leafCluster() node.Snapshot {
	return node.Snapshot{Cluster: node.ClusterSnapshot{Layout: worker.Leaf().String()}}
}

// leafID is the ID that a comment in the source of Leaf's server decodes: timestamp
// 1567733700834, worker 39, sequence 3448.
const leafID = "1169786042799259000"

func TestDecode(t *testing.T) {
	for _, row := range []struct {
		name, id string
		state    node.Snapshot
		code     int
		body     string
	}{
		{"an ID", leafID, leafCluster(), 200,
			`{"id":"1169786042799259000","time":"2019-09-06T01:35:00.834Z","timestamp_ms":1567733700834,` +
				`"datacenter":0,"worker":39,"sequence":3448,"segment":0,"layout":"` + worker.Leaf().String() +
				`","parts":[` +
				`{"field":"time","bits":41,"shift":22,"value":278898726177},{"field":"worker","bits":10,` +
				`"shift":12,"value":39},{"field":"sequence","bits":12,"shift":0,"value":3448}]}`},
		{"no ID", "x", leafCluster(), 400,
			`{"error":{"code":"ERR","text":"an ID must be 1 to 9223372036854775807, digits only"}}`},
		{"zero", "0", leafCluster(), 400,
			`{"error":{"code":"ERR","text":"an ID must be 1 to 9223372036854775807, digits only"}}`},
		{"a zero before", "0" + leafID, leafCluster(), 400,
			`{"error":{"code":"ERR","text":"an ID must be 1 to 9223372036854775807, digits only"}}`},
		{"too early", leafID, node.Snapshot{}, 503,
			`{"error":{"code":"NOTREADY","text":"starting: the cluster's layout is not known yet"}}`},
		{"not of this layout", "9223372036854775807",
			node.Snapshot{Cluster: node.ClusterSnapshot{Layout: mustLayout(t,
				"time=39@10ms,worker=10,sequence=12,epoch=2020-01-01").String()}},
			400, `{"error":{"code":"ERR","text":"9223372036854775807 is not an ID of this layout: it has bits ` +
				`above the 39-bit time field"}}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			addr, _ := start(t, Config{Node: func() node.Snapshot { return row.state }})
			if code, _, body := do(t, "GET", "http://"+addr+"/v1/decode/"+row.id); code != row.code ||
				strings.TrimSpace(body) != row.body {
				t.Errorf("%d %s\nwant %d %s", code, body, row.code, row.body)
			}
		})
	}
}

func mustLayout(t *testing.T, text string) worker.Layout {
	t.Helper()
	l, err := worker.ParseLayout(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLeaf(t *testing.T) {
	addr, _ := start(t, Config{Node: leafCluster, Reserve: counting(1169786042799259000)})
	for _, row := range []struct {
		name, method, path string
		code               int
		kind, body         string
	}{
		{"an ID, no line ending", "GET", "/api/snowflake/get/order", 200, "text/plain; charset=utf-8", leafID},
		{"any method", "POST", "/api/snowflake/get/a%20b", 200, "text/plain; charset=utf-8", "1169786042799259001"},
		{"no key", "GET", "/api/snowflake/get/", 404, "text/plain; charset=utf-8", "path not found. Paths:"},
		{"taken apart", "GET", "/decodeSnowflakeId?snowflakeId=" + leafID, 200, "application/json",
			`{"sequenceId":"3448","timestamp":"1567733700834(2019-09-06 01:35:00.834)","workerId":"39"}`},
		{"no ID", "GET", "/decodeSnowflakeId?snowflakeId=x", 200, "application/json",
			`{"errorMsg":"an ID must be 1 to `},
		{"no parameter", "GET", "/decodeSnowflakeId", 400, "application/json", `{"error":`},
	} {
		t.Run(row.name, func(t *testing.T) {
			code, header, body := do(t, row.method, "http://"+addr+row.path)
			if code != row.code || header.Get("Content-Type") != row.kind || !strings.HasPrefix(body, row.body) ||
				code == 200 && row.kind[0] == 't' && body != row.body {
				t.Errorf("%d %s %q, want %d %s %q", code, header.Get("Content-Type"), body, row.code, row.kind,
					row.body)
			}
		})
	}
}

// A refusal is answered like an exception in Leaf's server: 500 and Spring's document.
func TestLeafRefusalIsSpringsErrorDocument(t *testing.T) {
	addr, _ := start(t, Config{Reserve: refusing(ids.CLOCK, "the clock is behind")})
	code, _, body := do(t, "GET", "http://"+addr+"/api/snowflake/get/order")
	var doc struct {
		Timestamp, Error, Message, Path string
		Status                          int
	}
	if err := json.Unmarshal([]byte(body), &doc); err != nil || code != 500 {
		t.Fatalf("%d %s", code, body)
	}
	if doc.Status != 500 || doc.Error != "Internal Server Error" || !strings.Contains(doc.Message, "-CLOCK the clock "+
		"is behind") ||
		doc.Path != "/api/snowflake/get/order" ||
		!regexp.MustCompile(`^\d{4}-\d\d-\d\dT.*\+00:00$`).MatchString(doc.Timestamp) {
		t.Errorf("%+v", doc)
	}
}
