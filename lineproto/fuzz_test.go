package lineproto

import (
	"strings"
	"testing"
)

// FuzzParser: however the input is cut into reads the answer is the same, the
// server takes no more IDs than it answers, and every byte of input is done
// with by the end.
func FuzzParser(f *testing.F) {
	for _, tc := range transcripts {
		f.Add([]byte(tc.in), uint16(len(tc.in)/2))
	}
	f.Fuzz(func(t *testing.T, in []byte, at uint16) {
		b := &fakeBackend{}
		s := newFuzzServer(t, b)
		whole, closed := talk(s, string(in))
		ids := s.Counters().IDs
		if taken := max(b.last.Load(), 999) - 999; taken != ids {
			t.Fatalf("%d IDs taken, %d answered", taken, ids)
		}
		if n := int64(strings.Count(whole, "\n")); n < ids {
			t.Fatalf("%d IDs in %d lines", ids, n)
		}
		if whole != "" && !strings.HasSuffix(whole, "\n") {
			t.Fatalf("the output ends in the midst of a line: %q", whole)
		}
		i := min(int(at), len(in))
		for _, parts := range [][]string{{string(in[:i]), string(in[i:])}, bytewise(string(in))} {
			out, c := talk(newFuzzServer(t, &fakeBackend{}), parts...)
			if out != whole || c != closed {
				t.Fatalf("in one piece %q, closed %v; in %d pieces %q, closed %v", whole, closed, len(parts), out, c)
			}
		}
	})
}

func newFuzzServer(t *testing.T, b Backend) *Server {
	s, err := New(Config{Backend: b})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
