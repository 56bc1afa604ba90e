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
		if whole != "" && !strings.HasSuffix(whole, "\n") {
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

// FuzzArrays: the same for arrays. They are made from the fuzzer's input so that most
// are well formed and some are long.
func FuzzArrays(f *testing.F) {
	f.Add("GET|GET a|GET 3|PING x|HELLO 3|MGET a b", uint16(40), uint16(3))
	f.Add("GET|*x|GET", uint16(9), uint16(1))
	f.Add("INCR a|INCR a|INCR a|NEXT a 3|RANGE a 5|NEXT three|NEXT three|NEXT three|NEXT three|SEQ a|SEQS", uint16(30),
		uint16(7))
	f.Add("PING "+x512+x512+"|GET k", uint16(700), uint16(500))
	f.Fuzz(func(t *testing.T, script string, at, size uint16) {
		var in strings.Builder
		for line := range strings.SplitSeq(script, "|") {
			if strings.HasPrefix(line, "*") {
				in.WriteString(line + "\r\n")
			} else {
				in.WriteString(request(strings.Split(line, " ")...))
			}
		}
		whole, closed := talk(newFuzzServer(Config{}), in.String())
		i := min(int(at), in.Len())
		for _, parts := range [][]string{{in.String()[:i], in.String()[i:]}, pieces(in.String(), int(size)+1)} {
			out, c := talk(newFuzzServer(Config{}), parts...)
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
