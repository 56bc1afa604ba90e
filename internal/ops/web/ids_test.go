package web

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync/atomic"
	"testing"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/worker"
)

// counting returns a Reserve that makes IDs from first on, at most three per call.
func counting(first worker.ID) func(context.Context, int) (worker.Run, error) {
	next := atomic.Int64{}
	next.Store(int64(first))
	return func(_ context.Context, n int) (worker.Run, error) {
		n = min(n, 3)
		return worker.Run{First: worker.ID(next.Add(int64(n)) - int64(n)), Step: 1, Len: n}, nil
	}
}

// errorBody is the JSON document of an error.
func errorBody(code, text string) string {
	return `{"error":{"code":"` + code + `","text":"` + text + `"}}`
}

var noCount, noID = errorBody("ERR", "n must be 1 to 10000, digits only"),
	errorBody("ERR", "an ID must be 1 to 9223372036854775807, digits only")

func TestIDs(t *testing.T) {
	addr, _ := start(t, Config{Reserve: counting(2123840319823806551), Node: leafCluster})
	steps(t, addr, []step{
		{"GET", "/v1/ids", 200, `{"ids":["2123840319823806551"]}`},
		{"POST", "/v1/ids", 200, `{"ids":["2123840319823806552"]}`},
		{"GET", "/v1/ids?n=4", 200, `{"ids":["2123840319823806553","2123840319823806554","2123840319823806555",` +
			`"2123840319823806556"]}`},
		{"GET", "/v1/ids?n=0", 400, noCount}, {"GET", "/v1/ids?n=10001", 400, noCount},
		{"GET", "/v1/ids?n=05", 400, noCount},
		{"HEAD", "/v1/ids", 405, ""}, // it would use up an ID
		{"GET", "/api/snowflake/get/order", 200, "2123840319823806557"},
		{"POST", "/api/snowflake/get/a%20b", 200, "2123840319823806558"},
		{"GET", "/api/snowflake/get/", 404, "path not found..."},
	})
}

func TestRefusals(t *testing.T) {
	for _, row := range []struct {
		refusal     error
		status      int
		retry, code string
		text        string
	}{
		{replies.New(ids.NOTREADY, "starting"), 503, "1", "NOTREADY", "starting"},
		{replies.New(ids.NOTREADY, "reason=ceiling retry_after_ms=6640 x"), 503, "7", "NOTREADY",
			"reason=ceiling retry_after_ms=6640 x"},
		{replies.New(ids.CLOCK, "retry_after_ms=2500"), 503, "3", "CLOCK", "retry_after_ms=2500"},
		{replies.New(ids.FENCED, "lost"), 503, "1", "FENCED", "lost"},
		{replies.New(ids.EXHAUSTED, "used up"), 500, "", "EXHAUSTED", "used up"},
		{replies.New(ids.BUSY, "busy"), 429, "1", "BUSY", "busy"},
		{errors.New("odd"), 503, "1", "NOTREADY", "odd"},
	} {
		addr, _ := start(t, Config{Reserve: func(context.Context, int) (worker.Run, error) {
			return worker.Run{}, fmt.Errorf("%w", row.refusal)
		}})
		status, header, body := do(t, "GET", "http://"+addr+"/v1/ids")
		if want := errorBody(row.code, row.text) + "\n"; status != row.status || body != want ||
			header.Get("Retry-After") != row.retry {
			t.Errorf("%d %q %s, want %+v", status, header.Get("Retry-After"), body, row)
		}
		// Leaf's server answers an exception with Spring's document.
		spring := regexp.MustCompile(`^{"error":"Internal Server Error","message":"[^"]*` + row.text +
			`","path":"/api/snowflake/get/a","status":500,"timestamp":"\d{4}-\d\d-\d\dT[^"]*\+00:00"}\n$`)
		if status, _, body := do(t, "GET", "http://"+addr+"/api/snowflake/get/a"); status != 500 ||
			!spring.MatchString(body) {
			t.Errorf("as Leaf: %d %s", status, body)
		}
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
	layout := worker.Leaf().String()
	addr, _ := start(t, Config{Node: func() node.Snapshot {
		return node.Snapshot{Cluster: node.ClusterSnapshot{Layout: layout}}
	}})
	steps(t, addr, []step{
		{"GET", "/v1/decode/" + leafID, 200,
			`{"id":"1169786042799259000","time":"2019-09-06T01:35:00.834Z","timestamp_ms":1567733700834,` +
				`"datacenter":0,"worker":39,"sequence":3448,"segment":0,"layout":"` + layout + `","parts":[` +
				`{"field":"time","bits":41,"shift":22,"value":278898726177},{"field":"worker","bits":10,` +
				`"shift":12,"value":39},{"field":"sequence","bits":12,"shift":0,"value":3448}]}`},
		{"GET", "/v1/decode/x", 400, noID}, {"GET", "/v1/decode/0", 400, noID},
		{"GET", "/v1/decode/0" + leafID, 400, noID}, {"GET", "/v1/decode/%2B" + leafID, 400, noID},
		{"GET", "/decodeSnowflakeId?snowflakeId=" + leafID, 200,
			`{"sequenceId":"3448","timestamp":"1567733700834(2019-09-06 01:35:00.834)","workerId":"39"}`},
		{"GET", "/decodeSnowflakeId?snowflakeId=x", 200, `{"errorMsg":"an ID must be 1 to ...`},
		{"GET", "/decodeSnowflakeId", 400, `{"error":...`},
	})
	layout = "time=39@10ms,worker=10,sequence=12,epoch=2020-01-01"
	steps(t, addr, []step{{"GET", "/v1/decode/9223372036854775807", 400,
		errorBody("ERR", "9223372036854775807 is not an ID of this layout: it has bits above the 39-bit time field")}})
	layout = ""
	early := errorBody("NOTREADY", "starting: the cluster's layout is not known yet")
	steps(t, addr, []step{{"GET", "/v1/decode/" + leafID, 503, early},
		{"GET", "/decodeSnowflakeId?snowflakeId=" + leafID, 503, early}})
}
