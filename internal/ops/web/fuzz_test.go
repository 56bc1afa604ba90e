package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// taken counts the IDs and values that requests have taken. It is a node with one sequence.
type taken struct {
	Issuer
	n     int
	names []string
}

func (k *taken) reserve(_ context.Context, n int) (worker.Run, error) {
	k.n += n
	return worker.Run{First: 5, Step: 1, Len: n}, nil
}

func (k *taken) Take(_ *sequence.Wait, name []byte, n int, _ bool, _ func(), _ []worker.Run) ([]worker.Run, error) {
	k.names = append(k.names, string(name))
	if string(name) != "order" {
		return nil, replies.New(ids.ERR, "reason=no-sequence there is no sequence "+string(name))
	}
	k.n += n
	return []worker.Run{{First: 5, Step: 1, Len: n}}, nil
}

func (k *taken) Report() seq.Report  { return seq.Report{} }
func (k *taken) State() record.State { return record.State{} }

func (k *taken) Show(_ *sequence.Wait, name []byte, _ func()) (string, error) { return "", nil }
func (k *taken) Use(name string) (mode.Use, bool) {
	return mode.Use{Name: name, Record: record.Record{Map: sequence.Map{Start: 1, Increment: 1, Max: 1 << 53},
		Settings: record.Settings{Block: 32, Ceiling: 1000, HardCeiling: 1000}}}, name == "order"
}

// mayHaveToken matches a request that has the token, perhaps in base64, with percent signs, or in several chunks.
var mayHaveToken = regexp.MustCompile("(?i)good|basic|%|chunked|quoted")

// FuzzHandler: a request of any bytes gets a whole answer, and JSON if the answer says so. Without a token it takes
// nothing, and with one it takes what the sequences of the token have. Nothing is taken that the answer does not have.
func FuzzHandler(f *testing.F) {
	for _, line := range []string{"GET /v1/ids?n=3", "POST /v1/ids", "GET /v1/decode/1169786042799259000",
		"GET /v1/decode/x", "GET /",
		"GET /decodeSnowflakeId?snowflakeId=5", "GET /api/snowflake/get/a", "GET /api/segment/get/order",
		"HEAD /v1/ids",
		"POST /v1/sequences/order/next?n=4", "POST /v1/sequences/order/range?n=9", "GET /v1/sequences/order",
		"GET /cache",
		"GET /v1/sequences?prefix=o", "POST /tinyid/id/nextId?bizType=order&token=good&batchSize=9",
		"GET /readyz?verbose",
		"GET /tinyid/id/nextSegmentIdSimple?bizType=order&token=good", "POST /v1/sequences/a%2Fb%0A/next",
		"GET /v1/status", "PUT /x"} {
		f.Add([]byte(line + " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer good\r\n\r\n"))
		f.Add([]byte(line + " HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\n\r\n"))
	}
	f.Add([]byte("POST /tinyid/id/nextId HTTP/1.1\r\nHost: a\r\nContent-Length: 25\r\n" +
		"Content-Type: application/x-www-form-urlencoded\r\n\r\nbizType=order&token=good&&"))
	rights, _ := sequence.ParseRights("order")
	k := &taken{}
	h := New(whole(Config{Reserve: k.reserve, Issuer: k, Node: leafCluster,
		Authenticate: func(token []byte) (*sequence.Rights, bool) { return rights, string(token) == "good" }})).Handler()
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return // net/http refuses it
		}
		k.n, k.names = 0, nil
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		body, _ := io.ReadAll(w.Result().Body)
		if kind := w.Header().Get("Content-Type"); kind == "application/json" && !json.Valid(body) || w.Code < 200 ||
			w.Code > 503 {
			t.Fatalf("%q: %d %s %q", raw, w.Code, kind, body)
		}
		if k.n > 0 && (w.Code != http.StatusOK || r.Method == http.MethodHead || len(body) == 0) {
			t.Fatalf("%q: took %d, and answered %d %q", raw, k.n, w.Code, body)
		}
		for _, name := range k.names {
			if name != "order" {
				t.Fatalf("%q: took of %q", raw, name)
			}
		}
		if k.n+len(k.names) > 0 && !mayHaveToken.Match(raw) {
			t.Fatalf("%q: took %d without a token", raw, k.n)
		}
	})
}
