package web

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/timeguard"
	"github.com/flaked/flaked/worker"
)

// confirmed is the tenure of a node that may write at once.
type confirmed struct{}

func (confirmed) Slot(int64) seq.Slot {
	return seq.Slot{Path: "/cluster", Version: store.AnyVersion}
}

func (confirmed) ReleasesAtStop() bool { return false }

func (confirmed) ReportLoss(int64, string) {}

func (confirmed) Cluster() (seq.ClusterInfo, bool) {
	return seq.ClusterInfo{UUID: "test", ConfirmTime: time.Millisecond}, true
}

// issuer returns a node's sequences on a ZooKeeper in memory: order, eights (1, 9, 17, ...), small (1 to 3),
// a/b, slow (50 values a second), large (blocks of 2^21), hidden (salted) and the strict one invoice.
func issuer(t *testing.T) *seq.Issuer {
	t.Helper()
	now := func() int64 { return time.Now().UnixMilli() }
	mem := memzk.New(now)
	mem.SetEpoch(1)
	st := mem.Session()
	if err := st.EnsureRoot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Create(t.Context(), "/cluster", []byte(`{"uuid":"test"}`), store.Persistent); err != nil {
		t.Fatal(err)
	}
	is, rounds := seq.New(seq.Config{Store: st, Tenure: confirmed{},
		Elapsed: timeguard.NewElapsed(timeguard.System()), Follow: 20 * time.Millisecond})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); rounds.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	o := operator.Commands{Store: mem.Session()}
	for deadline := time.Now().Add(10 * time.Second); ; {
		if _, _, err := o.Find(t.Context(), "order"); err == operator.ErrNotFound {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the node does not create /seq")
		}
	}
	long := sequence.Map{Start: 1, Increment: 1, Max: sequence.MaxJavaScript}
	for _, d := range []operator.Definition{
		{Name: "order", Map: long},
		{Name: "eights", Map: sequence.Map{Start: 1, Increment: 8, Max: sequence.MaxJavaScript}},
		{Name: "small", Map: sequence.Map{Start: 1, Increment: 1, Max: 3}},
		{Name: "slow", Map: long, Settings: record.Settings{Ceiling: 50, HardCeiling: 50}},
		{Name: "large", Map: long, Settings: record.Settings{Block: 1 << 21}},
		{Name: "hidden", Map: sequence.Map{Start: 1, Increment: 1, Salt: 16, Max: math.MaxInt64}},
		{Name: "a/b", Map: sequence.Map{Start: 5, Increment: 1, Max: sequence.MaxJavaScript}},
		{Name: "invoice", Mode: record.Strict, Map: long},
		{Name: "ticks", Mode: record.Ordered, Map: long, Settings: record.Settings{HoldMs: 3000}},
		{Name: "msg:*", Mode: record.Ordered, Sections: 4, Map: long, Settings: record.Settings{HoldMs: 3000}},
	} {
		s := &d.Settings
		s.Block, s.SupplyMs, s.HoldMs = cmp.Or(s.Block, 32), 900_000, cmp.Or(s.HoldMs, 3_600_000)
		s.Ceiling, s.HardCeiling = cmp.Or(s.Ceiling, 1_000_000), cmp.Or(s.HardCeiling, 1_000_000)
		if _, err := o.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	return is
}

// step is a request and what must be answered.
type step struct {
	method, path string
	code         int
	body         string // ... stands for anything
}

func walk(t *testing.T, cfg Config, all []step) {
	t.Helper()
	cfg.Issuer = issuer(t)
	addr, _ := start(t, cfg)
	steps(t, addr, all)
}

func steps(t *testing.T, addr string, all []step) {
	t.Helper()
	for _, s := range all {
		code, _, body := do(t, s.method, "http://"+addr+s.path)
		body = strings.TrimSuffix(body, "\n")
		parts := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(s.body), `\.\.\.`, "(?s:.*)") + "$")
		if code != s.code || !parts.MatchString(body) {
			t.Errorf("%s %s: %d %q, want %d %q", s.method, s.path, code, body, s.code, s.body)
		}
	}
}

func TestSequenceRoutes(t *testing.T) {
	walk(t, Config{}, []step{
		{"POST", "/v1/sequences/order/next", 200, `{"name":"order","values":["1"]}`},
		{"POST", "/v1/sequences/order/next?n=3", 200, `{"name":"order","values":["2","3","4"]}`},
		{"POST", "/v1/sequences/order/range?n=10", 200,
			`{"first":"5","increment":"1","last":"14","n":10,"name":"order"}`},
		{"POST", "/v1/sequences/eights/range?n=2", 200, `{"first":"1","increment":"8","last":"9","n":2,"name":"eights"}`},
		{"POST", "/v1/sequences/a/b/next", 200, `{"name":"a/b","values":["5"]}`},
		{"POST", "/v1/sequences/invoice/next?n=2", 200, `{"name":"invoice","values":["1","2"]}`},
		{"POST", "/v1/sequences/invoice/range?n=5", 200,
			`{"first":"3","increment":"1","last":"7","n":5,"name":"invoice"}`},
		{"POST", "/v1/sequences/ticks/next?n=2", 200, `{"name":"ticks","values":["1","2"]}`},
		{"GET", "/v1/sequences/ticks", 200, `{"name":"ticks","state":"in-use","mode":"ordered","next":"33","start":"1","increment":"1",` +
			`"max":"9007199254740991","taken":"32","positions":"9007199254740991","used_percent":0,...` +
			`"lease_ms":3000,...,"owner":"unknown","owned_since_ms":...,"term":1,"id":...,"held":"30","values_per_second":0,` +
			`"owned_sections":1}`},
		{"POST", "/v1/sequences/msg:alice/range?n=3", 200,
			`{"first":"1","increment":"1","last":"3","n":3,"name":"msg:alice"}`},
		{"GET", "/v1/sequences/msg:alice", 200, `{"name":"msg:alice","state":"in-use","mode":"ordered",...` +
			`"lease_ms":3000,...,"owner":"unknown",...,"term":1,"family":"msg:*","section":0,...,"held":"29",...` +
			`"owned_sections":1}`},
		{"GET", "/v1/sequences?prefix=msg", 200, `{"sequences":[{"name":"msg:*","state":"family",...` +
			`"lease_ms":3000,...,"term":1,"known_sections":...,"id":...,"held":"29",...,"owned_sections":1}]}`},
		{"GET", "/v1/sequences/msg:*", 404, `{"error":{"code":"ERR","text":"reason=no-sequence ...`},
		{"GET", "/v1/sequences/invoice", 200, `{"name":"invoice",...,"mode":"strict",...,"taken":"7",...,"held":"0","values_per_second":...}`},
		{"GET", "/v1/sequences/a/b", 200, `{"name":"a/b",...,"mode":"segment",...,"start":"5",...`},
		{"GET", "/v1/sequences?prefix=a/", 200, `{"sequences":[{"name":"a/b","state":...`},
		{"POST", "/v1/sequences/small/next?n=3", 200, `{"name":"small","values":["1","2","3"]}`},
		{"POST", "/v1/sequences/small/range?n=1", 500, `{"error":{"code":"EXHAUSTED","text":"reason=exhausted...`},
		{"GET", "/v1/sequences/nobody", 404,
			`{"error":{"code":"ERR","text":"reason=no-sequence there is no sequence nobody...`},
		{"GET", "/v1/sequences/order/next?n=2", 404, `{"error":{"code":"ERR","text":"reason=no-sequence there is no ` +
			`sequence order/next. To take values, send POST, not GET"}}`},
		{"POST", "/v1/sequences/9/next", 404,
			`{"error":{"code":"ERR","text":"reason=no-sequence the name of a sequence must have more than digits...`},
		{"POST", "/v1/sequences/order", 400, `{"error":{"code":"ERR","text":"POST /v1/sequences/NAME/next or...`},
		{"POST", "/v1/sequences/order/next?n=0", 400,
			`{"error":{"code":"ERR","text":"n must be 1 to 10000, digits only"}}`},
		{"POST", "/v1/sequences/order/next?n=05", 400, `{"error":...`},
		{"POST", "/v1/sequences/order/next?n=10001", 400, `{"error":...`},
		{"POST", "/v1/sequences/order/range?n=1000001", 400,
			`{"error":{"code":"ERR","text":"n must be 1 to 1000000, digits only"}}`},
		{"POST", "/v1/sequences/slow/range?n=501", 400, `{"error":{"code":"ERR","text":"reason=too-many...`},
		{"POST", "/v1/sequences/hidden/range?n=2", 400, `{"error":{"code":"ERR","text":"reason=wrong-mode...`},
		{"DELETE", "/v1/sequences/order", 405, "method not allowed..."},
		{"HEAD", "/v1/sequences/order", 200, ""},
		{"POST", "/v1/sequences/order/next", 200, `{"name":"order","values":["15"]}`}, // refused requests took nothing
	})
}

// SEQ and the report over HTTP have one word and one value for each quantity.
func TestSEQHasTheWordsOfTheReport(t *testing.T) {
	is := issuer(t)
	addr, _ := start(t, Config{Issuer: is})
	line := func(name string) string {
		text, err := is.Show(new(sequence.Wait), []byte(name), func() {})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for _, name := range []string{"order", "eights", "hidden", "invoice", "ticks", "msg:alice"} {
		do(t, "POST", "http://"+addr+"/v1/sequences/"+name+"/next?n=3")
		said, doc := line(name), map[string]any{}
		for range 100 { // until the node does nothing in between
			_, _, body := do(t, "GET", "http://"+addr+"/v1/sequences/"+name)
			if err := json.Unmarshal([]byte(body), &doc); err != nil {
				t.Fatal(err)
			}
			before := said
			if said = line(name); said == before {
				break
			}
		}
		for field := range strings.FieldsSeq(said) {
			word, want, _ := strings.Cut(field, "=")
			got, has := doc[word]
			switch {
			case word == "sections": // only SEQ knows how many there are
			case word == "owner" && want == "-" && got == "unknown": // the test's node has no address
			case !has && want == "0": // missing if 0
			case word == "used_percent":
				if fmt.Sprintf("%.1f", got) != want {
					t.Errorf("%s: %s: %v, want %s", name, word, got, want)
				}
			case fmt.Sprint(got) != want && fmt.Sprintf("%.0f", got) != want:
				t.Errorf("%s: %s: %v, want %s", name, word, got, want)
			}
		}
	}
}

// A token that includes one sequence shows nothing of the others, not even whether they exist.
func TestSequenceRoutesObeyRights(t *testing.T) {
	some, err := sequence.ParseRights("order,nobody")
	if err != nil {
		t.Fatal(err)
	}
	const refused = `{"error":{"code":"NOPERM","text":"reason=no-right this token may not use sequence `
	rights := (*sequence.Rights)(nil)
	addr, _ := start(t, Config{Issuer: issuer(t),
		Authenticate: func([]byte) (*sequence.Rights, bool) { return rights, true }})
	steps(t, addr, []step{{"POST", "/v1/sequences/eights/next", 200, "..."}}) // the node knows it, too
	rights = some
	steps(t, addr, []step{
		{"POST", "/v1/sequences/eights/next", 403, refused + `eights"}}`},
		{"POST", "/v1/sequences/eights/range?n=5", 403, refused + `eights"}}`},
		{"GET", "/v1/sequences/eights", 403, refused + `eights"}}`},
		{"GET", "/v1/sequences/unknown", 403, refused + `unknown"}}`},
		{"GET", "/v1/sequences/nobody", 404, `{"error":{"code":"ERR","text":"reason=no-sequence...`},
		{"GET", "/api/segment/get/eights", 500, `{"error":"Internal Server Error","message":"...`},
		{"GET", "/api/segment/get/order", 200, "1"},
		{"GET", "/v1/sequences", 200,
			`{"sequences":[{"name":"order",...,"taken":"32",...,"held":"31","values_per_second":...}]}`},
		{"GET", "/cache", 200,
			`[{"initOk":true,"key":"order","pos":0,"nextReady":false,"max0":33,"value0":2,"step0":32,"max1":0,` +
				`"value1":0,"step1":0}]`},
	})
}

func TestLeafSegmentRoutes(t *testing.T) {
	hidden, err := sequence.ParseRights("hidden") // /cache shows these alone
	if err != nil {
		t.Fatal(err)
	}
	walk(t, Config{}, []step{
		{"GET", "/api/segment/get/order", 200, "1"},
		{"POST", "/api/segment/get/order", 200, "2"},
		{"GET", "/api/segment/get/eights", 200, "1"},
		{"GET", "/api/segment/get/eights", 200, "9"},
		{"GET", "/api/segment/get/nobody", 500, `{"error":"Internal Server Error","message":"...`},
		{"GET", "/cache", 200,
			`[...{"initOk":true,"key":"eights","pos":0,"nextReady":false,"max0":257,"value0":17,...` +
				`{"initOk":true,"key":"order","pos":0,"nextReady":false,"max0":33,"value0":3,"step0":32,"max1":0,` +
				`"value1":0,"step1":0}...`},
	})
	// The values of a salted sequence do not follow each other, so /cache has no bounds of them.
	walk(t, Config{Authenticate: func([]byte) (*sequence.Rights, bool) { return hidden, true }}, []step{
		{"GET", "/api/segment/get/hidden", 200, "..."},
		{"GET", "/cache", 200, `[{"initOk":true,"key":"hidden","pos":0,"nextReady":false,"max0":0,"value0":0,"step0":0,` +
			`"max1":0,"value1":0,"step1":0}]`},
	})
}

func TestTinyidRoutes(t *testing.T) {
	orders, err := sequence.ParseRights("order")
	if err != nil {
		t.Fatal(err)
	}
	let := func(token []byte) (*sequence.Rights, bool) {
		switch string(token) {
		case "0f673adf80504e2eaa552f5d791b644c":
			return nil, true
		case "orders":
			return orders, true
		}
		return nil, false
	}
	const token = "&token=0f673adf80504e2eaa552f5d791b644c"
	wrong := `{"data":null,"code":5,"message":"token is error"}`
	walk(t, Config{Authenticate: let}, []step{
		{"GET", "/tinyid/id/nextId?bizType=order" + token, 200, `{"data":[1],"code":200,"message":""}`},
		{"POST", "/tinyid/id/nextId?bizType=order&batchSize=3" + token, 200,
			`{"data":[2,3,4],"code":200,"message":""}`},
		{"GET", "/tinyid/id/nextIdSimple?bizType=order" + token, 200, "5"},
		{"GET", "/tinyid/id/nextIdSimple?bizType=order&batchSize=2" + token, 200, "6,7"},
		{"GET", "/tinyid/id/nextSegmentId?bizType=eights" + token, 200,
			`{"data":{"maxId":7993,"loadingId":1593,"currentId":-7,"delta":8,"remainder":1},"code":200,"message":""}`},
		{"POST", "/tinyid/id/nextSegmentIdSimple?bizType=eights" + token, 200, "7993,9593,15993,8,1"},
		{"GET", "/tinyid/id/nextId?bizType=order&token=no", 200, wrong},
		{"GET", "/tinyid/id/nextId?bizType=eights&token=orders", 200, wrong},
		{"GET", "/tinyid/id/nextSegmentIdSimple?bizType=eights&token=orders", 200, ""},
		{"GET", "/tinyid/id/nextId?bizType=order", 200, wrong},
		{"GET", "/tinyid/id/nextId?x=1" + token, 200, wrong}, // tinyid's answer when bizType is missing
		{"GET", "/tinyid/id/nextIdSimple?bizType=order&token=no", 200, ""},
		{"GET", "/tinyid/id/nextId?bizType=nobody" + token, 200, `{"data":null,"code":6,"message":"...`},
		{"GET", "/tinyid/id/nextId?bizType=order&batchSize=x" + token, 200,
			`{"data":null,"code":6,"message":"batchSize...`},
		{"GET", "/tinyid/id/nextId?bizType=invoice" + token, 200, `{"data":[1],"code":200,"message":""}`},
		{"GET", "/tinyid/id/nextSegmentId?bizType=invoice" + token, 200,
			`{"data":null,"code":6,"message":"invoice is a strict sequence...`},
		{"DELETE", "/tinyid/id/nextId?bizType=order" + token, 405, "method not allowed..."},
		{"GET", "/tinyid/id/nextIdSimple?bizType=order" + token, 200, "8"},
		{"GET", "/tinyid/id/nextIdSimple?bizType=order&token=orders", 200, "9"},
		{"GET", "/v1/sequences/order", 401, "token missing..."},
		{"GET", "/api/segment/get/order", 401, "token missing..."},
	})
	walk(t, Config{Closed: "closed"}, []step{{"GET", "/tinyid/id/nextId?bizType=order", 403, "closed"}})
}

// A block for tinyid's client has 1,000 values or the sequence's own block, but no more than the sequence can give.
func TestTinyidBlocksHaveASizeThatTheSequenceCanGive(t *testing.T) {
	walk(t, Config{}, []step{
		{"GET", "/tinyid/id/nextSegmentIdSimple?bizType=large", 200, "0,200000,1000000,1,0"},
		{"GET", "/tinyid/id/nextSegmentIdSimple?bizType=slow", 200, "0,25,125,1,0"},
		{"GET", "/tinyid/id/nextSegmentIdSimple?bizType=slow", 200, "125,150,250,1,0"},
		{"POST", "/v1/sequences/small/next?n=2", 200, `{"name":"small","values":["1","2"]}`},
		{"GET", "/tinyid/id/nextSegmentIdSimple?bizType=small", 200, "2,2,3,1,0"},
		{"GET", "/tinyid/id/nextSegmentIdSimple?bizType=small", 200, ""},
		{"GET", "/tinyid/id/nextSegmentId?bizType=small", 200,
			`{"data":null,"code":6,"message":"-EXHAUSTED reason=exhausted...`},
		{"GET", "/tinyid/id/nextSegmentId?bizType=hidden", 200,
			`{"data":null,"code":6,"message":"-ERR reason=wrong-mode...`},
	})
}

// The client of tinyid finds its first value by adding 1 until the remainder fits.
func TestSegmentForTinyidsClient(t *testing.T) {
	for _, run := range []worker.Run{{First: 1, Step: 1, Len: 1000}, {First: 0, Step: 1, Len: 5},
		{First: 1, Step: 10, Len: 7}, {First: 3, Step: 2, Len: 1000},
		{First: 9_000_000_000_000_000_000, Step: 5, Len: 1000}} {
		seg, err := segmentOf(run)
		if err != nil {
			t.Fatal(err)
		}
		got := valuesOfSegment(seg)
		if len(got) != run.Len || got[0] != int64(run.First) || got[len(got)-1] != int64(run.At(run.Len-1)) {
			t.Errorf("%+v: %+v gives %d values, from %d to %d", run, seg, len(got), got[0], got[len(got)-1])
		}
	}
	if _, err := segmentOf(worker.Run{First: 1, Step: 1 << 31, Len: 10}); err == nil {
		t.Error("an increment above Java's int is accepted")
	}
}

// valuesOfSegment returns the values that tinyid's client issues from a block.
func valuesOfSegment(s tinyidSegment) (all []int64) {
	at := s.CurrentID
	if at%s.Delta != s.Remainder {
		for tries := int64(0); tries <= s.Delta; tries++ {
			if at++; at%s.Delta == s.Remainder {
				at -= s.Delta
				break
			}
		}
	}
	for at += s.Delta; at <= s.MaxID; at += s.Delta {
		all = append(all, at)
	}
	return all
}
