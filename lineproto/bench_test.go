package lineproto

import (
	"strings"
	"testing"
)

// BenchmarkAnswer measures the server's work without sockets: from the bytes read to
// the bytes to be written.
func BenchmarkAnswer(b *testing.B) {
	for _, bc := range []struct {
		name, request string
		ids           int
	}{
		{"GET", "GET\n", 1},
		{"GET-x100", strings.Repeat("GET\n", 100), 100},
		{"GET-10000", "GET 10000\n", 10000},
		{"PING", "PING\n", 0},
		{"RESP-GET", getArray, 1},
		{"RESP-GET-key-x25", strings.Repeat(request("GET", "key:000000000001"), 25), 25},
		{"NEXT", "NEXT order\n", 1},
		{"RESP-NEXT", request("NEXT", "order"), 1},
		{"NEXT-x90", strings.Repeat("NEXT order\n", 90), 90},
		{"RESP-INCR-x16", strings.Repeat(request("INCR", "order"), 16), 16},
		{"NEXT-limited", "NEXT order\n", 1},
		{"RESP-GET-10000", request("GET", "id", "COUNT", "10000"), 10000},
	} {
		b.Run(bc.name, func(b *testing.B) {
			backend := &fakeBackend{}
			backend.last.Store(1_234_567_890_123_000_000)
			sequences := newFakeSequences()
			sequences.list["order"] = &fakeSequence{start: 1_234_567_890_123_000_000, step: 1, most: 1 << 62}
			c := newConn(newListener(newTestServer(b, Config{Backend: backend, Sequences: sequences})), discardConn{})
			if strings.Contains(bc.name, "limited") {
				c.s.rights, _ = limited([]byte("some"))
			}
			b.ReportAllocs()
			for b.Loop() {
				c.r, c.w = 0, copy(c.in[:], bc.request)
				c.answer(b.Context(), false)
			}
			if bc.ids > 0 {
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*bc.ids), "ns/ID")
			}
		})
	}
}
