package lineproto

import (
	"strings"
	"testing"

	"github.com/flaked/flaked/sequence"
)

// FuzzParser: the answer does not depend on how the input is cut into reads. It ends
// with a whole line, and has exactly the IDs that the server has taken.
func FuzzParser(f *testing.F) {
	for _, tc := range allTranscripts() {
		f.Add([]byte(tc.in), uint16(len(tc.in)/2))
	}
	f.Add([]byte("GET 3000\r\nMGET a b\nquit\nGET\n"), uint16(12))
	f.Add([]byte("GET\r\xff\xfd\n\nGET\xff\xff\r\n\xff\xfa\xff\xff\xff\xf0get\n"), uint16(4))
	f.Add([]byte("\x00 HTTP/"), uint16(1))
	f.Add([]byte("NEXT by: 2"), uint16(94))
	f.Add([]byte("\xff\xfd\x06"), uint16(1)) // telnet, at Ctrl-C
	f.Fuzz(func(t *testing.T, in []byte, at uint16) {
		b := &fakeBackend{}
		s := newFuzzServer(Config{Backend: b})
		whole, closed := talk(s, string(in))
		ids := s.Counters().IDs
		if taken := max(b.last.Load(), 999) - 999; taken != ids {
			t.Fatalf("%d IDs taken, %d answered", taken, ids)
		}
		if n := int64(strings.Count(whole, "\n")); n < ids {
			t.Fatalf("%d IDs in %d lines", ids, n)
		}
		if lines := strings.ReplaceAll(whole, "\xff\xfb\x06", ""); lines != "" && !strings.HasSuffix(lines, "\n") {
			t.Fatalf("the output ends in the midst of a line: %q", whole)
		}
		i := min(int(at), len(in))
		for _, parts := range [][]string{{string(in[:i]), string(in[i:])}, bytewise(string(in))} {
			out, c := talk(newFuzzServer(Config{Backend: &fakeBackend{}}), parts...)
			if out != whole || c != closed {
				t.Fatalf("in one piece %q, closed %v; in %d pieces %q, closed %v", whole, closed, len(parts), out, c)
			}
		}
	})
}

func newFuzzServer(cfg Config) *Server {
	if cfg.Backend == nil {
		cfg.Backend = &fakeBackend{}
	}
	f := newFakeSequences() // each request waits once
	f.pends = func(w *sequence.Wait, _ []byte) bool { return w.Since == 0 }
	f.later = func(wake func()) { go wake() }
	cfg.Sequences = f
	s, err := New(cfg)
	if err != nil {
		panic(err)
	}
	return s
}
