package lineproto

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/flaked/flaked/sequence"
)

// waitingFor returns sequences of which those with these names make requests wait, until wakeAll is called.
func waitingFor(names string) *fakeSequences {
	f := newFakeSequences()
	f.pends = func(_ *sequence.Wait, name []byte) bool { return strings.Contains(names, string(name)) }
	return f
}

// Requests that are pipelined wait at the same time, and are answered in order.
func TestPipelinedRequestsWaitTogether(t *testing.T) {
	for _, row := range []struct {
		name, in, out  string
		waiting, taken int // requests, before wakeAll
	}{
		{"of another node", passTo("a 2") + "PASS b 1 c0ffee id 7 o\r\npass a 1 demo id 7 -\n" +
			passTo("x 1", "none 1", "c 9") + "PING\n", "1 2 o\n1 1 o\r\n3 3 taker\n1 1 o\n-ERR reason=no-sequence there is no sequence none\n1 9 o\nPONG\n", 4, 2},
		{"of a client", "NEXT a\nNEXT b\nnext x\nNEXT c\nPING\n", "1\n1\n1\n1\nPONG\n", 3, 1},
		{"values of a name do not overtake", "NEXT a\nNEXT x\nNEXT x\nNEXT b\n", "1\n1\n2\n1\n", 1, 1},
		{"nor those of the first", "NEXT a\nNEXT b\nNEXT a\n", "1\n1\n2\n", 2, 0},
		{"up to another request", "NEXT a\nNEXT x\nRANGE x 2\nNEXT b\n", "1\n1\n2 3\n1\n", 1, 1},
		{"up to a wrong request", passTo("a 1", "b 0", "c 1"), "1 1 o\n" + badRange + "1 1 o\n", 1, 0},
		{"up to another cluster", passTo("a 1") + "PASS b 1 prod id 7 o\n" + passTo("c 1"),
			"1 1 o\n" + notInProd + "1 1 o\n", 1, 0},
		{"up to a wrong name", passTo("a 1", "b* 1"),
			"1 1 o\n-ERR the name of a sequence must not contain '*': use letters, digits and _ . : - { } /\n", 1, 0},
		{"RESP", request("INCR", "a") + request("NEXT", "x") + request("PASS", "b", "2", "demo", "id", "7", "o") +
			request("INCR", "c") + request("PING"), ":1\r\n" + bulk("1") + bulks("1", "2", "o") + ":1\r\n+PONG\r\n", 3, 1},
		{"both framings", passTo("a 1") + request("NEXT", "b") + "INCR c\n", "1 1 o\n" + bulk("1") + "1\n", 3, 0},
		{"up to a transaction", "NEXT a\n" + request("MULTI") + request("NEXT", "b") + request("EXEC") + "NEXT c\n",
			"1\n+OK\r\n+QUEUED\r\n*1\r\n" + bulk("1") + "1\n", 1, 0},
		{"none within a transaction", request("MULTI") + request("NEXT", "a") + request("NEXT", "b") + request("EXEC") +
			"NEXT c\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n" + bulk("1") + bulk("1") + "1\n", 1, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := waitingFor("abc")
			a := asking(t, newTestServer(t, Config{Sequences: f}), row.in)
			a.waker = make(wakeSignal, 1)
			out := a.turn(maxSlice)
			if n := f.waiting(); n != row.waiting || f.calls-n != row.taken {
				t.Errorf("%d requests wait and %d got values meanwhile, want %d and %d", n, f.calls-n, row.waiting, row.taken)
			}
			f.wakeAll()
			if out += a.all(); out != row.out {
				t.Errorf("got %q, want %q", out, row.out)
			}
		})
	}
}

func TestRequestsMadeBeforeTheirTurnObeyRights(t *testing.T) {
	f := waitingFor("order")
	f.later = func(wake func()) { f.pends = nil; go wake() }
	cfg := Config{Sequences: f, Authenticate: limited}
	out, _ := talk(newTestServer(t, cfg), "AUTH some\n"+passTo("order 1", "user:1 1", "x 1"))
	if want := "OK\n1 1 o\n1 1 o\n" + noPerm("x") + "\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

// A pipeline gets the same replies in one piece, where requests are made before their turn, as byte by byte.
func TestPipelineGetsTheSameReplies(t *testing.T) {
	words := []string{"NEXT a", "NEXT b", "INCR a", "INCR c", "NEXT a 2", "RANGE b 2", strings.TrimSpace(passTo("p 1")), strings.TrimSpace(passTo("q 3")), "SEQ a",
		"NEXT none", "NEXT three", "INCR three", "PASS q 0 c id 7 o", "NEXT", "PING", "GET", "NEXT broken", "SELECT 0"}
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var in strings.Builder
		for range 1 + rng.IntN(30) {
			line := words[rng.IntN(len(words))]
			if rng.IntN(2) == 0 {
				in.WriteString(request(strings.Fields(line)...))
			} else {
				in.WriteString(line + []string{"\n", "\r\n"}[rng.IntN(2)])
			}
		}
		whole, _ := talk(newFuzzServer(Config{}), in.String())
		alone, _ := talk(newFuzzServer(Config{}), bytewise(in.String())...)
		if whole != alone {
			t.Fatalf("seed %d: %q gets %q, byte by byte %q", seed, in.String(), whole, alone)
		}
	}
}
