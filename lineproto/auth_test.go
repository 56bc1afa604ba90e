package lineproto

import (
	"bytes"
	"strings"
	"testing"

	"github.com/flaked/flaked/sequence"
)

const (
	noAuth     = "-NOAUTH this node needs a token. Send AUTH [user] token\n"
	wrong      = "-WRONGPASS wrong token\n"
	noAuthCRLF = "-NOAUTH this node needs a token. Send AUTH [user] token\r\n"
	wrongCRLF  = "-WRONGPASS wrong token\r\n"
	lastWrong  = "-WRONGPASS wrong token, connection closed. Reconnect to try again\n"
)

func isGood(token []byte) (*sequence.Rights, bool) { return nil, bytes.Equal(token, []byte("good")) }

var authTranscripts = []struct {
	name, in, out string
	closed        bool
}{
	{"none", "GET\nGET\nPING\nGET 5\nGET x\nMGET a\nTIME\nREADY\nSTATS\nSTATUS\nWORKER\nVERSION\nDECODE 5\n",
		strings.Repeat(noAuth, 13), false},
	{"a stretch of GETs", strings.Repeat("GET\r\n", 300),
		strings.Repeat(strings.TrimSuffix(noAuth, "\n")+"\r\n", 300), false},
	{"good", "AUTH good\nGET\nGET 2\nPING\n", "OK\n1000\n1001\n1002\nPONG\n", false},
	{"with a user", "auth me good\r\nGET\n", "OK\r\n1000\n", false},
	{"in the midst of GETs", "GET\nAUTH good\nGET\n", noAuth + "OK\n1000\n", false},
	{"wrong", "AUTH bad\nGET\n", wrong + noAuth, false},
	{"the token as the user", "AUTH good bad\nGET\n", wrong + noAuth, false},
	{"case matters", "AUTH GOOD\n", wrong, false},
	{"wrong, then good", "AUTH bad\nAUTH worse\nAUTH good\nGET\n", wrong + wrong + "OK\n1000\n", false},
	{"three wrong", "AUTH a\nAUTH b\nAUTH c\nAUTH good\nGET\n", wrong + wrong + lastWrong, true},
	{"wrong after good", "AUTH good\nAUTH a\nGET\nAUTH b\nAUTH c\nGET\n",
		"OK\n" + wrong + "1000\n" + wrong + lastWrong, true},
	{"no token is no guess", strings.Repeat("AUTH\n", 4) + "AUTH good\n",
		strings.Repeat("-ERR usage: AUTH [user] token\n", 4) + "OK\n", false},
	{"what is wrong in any case", "FOO\nGET a b\n", strings.Repeat(noAuth, 2), false},
	{"quit", "QUIT\nGET\n", "", true},
	{"http", "GET / HTTP/1.1\r\n", http400, true},
	{"RESP none", getArray + request("GET", "a") + request("GET", "5") + request("PING") + request("INFO") +
		request("CLIENT", "ID") + request("HELLO", "3") + request("HELLO"),
		strings.Repeat(noAuthCRLF, 8), false},
	{"RESP good", request("AUTH", "good") + getArray + "GET\n", "+OK\r\n" + bulk1000 + "1001\n", false},
	{"RESP with a user", request("AUTH", "default", "good") + getArray, "+OK\r\n" + bulk1000, false},
	{"RESP wrong", request("AUTH", "bad") + request("AUTH", "good", "") + request("AUTH", "good") + getArray,
		wrongCRLF + wrongCRLF + "+OK\r\n" + bulk1000, false},
	{"RESP with HELLO", request("HELLO", "3", "AUTH", "default", "good", "SETNAME", "n") + getArray,
		hello3 + bulk1000, false},
	{"RESP with a bad HELLO", request("HELLO", "3", "AUTH", "default", "bad") +
		request("HELLO", "3", "AUTH", "default", "good", "SETNAME", " ") + getArray,
		wrongCRLF + badName + noAuthCRLF, false},
	{"RESP three wrong", request("HELLO", "3", "AUTH", "default", "a") + "AUTH b\r\n" + request("AUTH", "c") +
		getArray, wrongCRLF + wrongCRLF + strings.TrimSuffix(lastWrong, "\n") + "\r\n", true},
	{"RESP long", request("MGET", x512, x512) + request("AUTH", "good"), noAuthCRLF, true},
	{"RESP long after", request("AUTH", "good") + request("PING", x512+x512), "+OK\r\n" + bulk(x512+x512), false},
	{"NUL", "\x00", noAuth, true},
	{"TLS hello", "\x16\x03\x01\x00\xa5\x01", onPlainPort, true},
}

// TestAuth: a node that asks for a token answers requests without one with NOAUTH and
// takes no IDs for them.
func TestAuth(t *testing.T) {
	for _, tc := range authTranscripts {
		t.Run(tc.name, func(t *testing.T) {
			for _, parts := range [][]string{{tc.in}, bytewise(tc.in)} {
				b := &fakeBackend{}
				out, closed := talk(newTestServer(t, Config{Backend: b, AdminHint: hint, Authenticate: isGood}),
					parts...)
				if out != tc.out || closed != tc.closed {
					t.Fatalf("got %q, closed %v\nwant %q, closed %v", out, closed, tc.out, tc.closed)
				}
				if got, want := max(b.last.Load(), 999)-999, countIDs(out); got != want {
					t.Fatalf("%d IDs were taken, %d answered", got, want)
				}
			}
		})
	}
	out, _ := talk(newTestServer(t, Config{Authenticate: isGood}), "HELP\n")
	if !strings.Contains(out, "AUTH [user] token ") || !strings.HasSuffix(out, "END\n") {
		t.Errorf("HELP before AUTH gets %q", out)
	}
}

// FuzzAuth: no input takes an ID without a valid token, and a connection has three
// guesses.
func FuzzAuth(f *testing.F) {
	for _, tc := range allTranscripts() {
		f.Add([]byte(tc.in))
	}
	f.Add([]byte("AUTH a\nAUTH b c\r\nAUTH d\nGET\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		b := &fakeBackend{}
		s, err := New(Config{Backend: b, Authenticate: func([]byte) (*sequence.Rights, bool) { return nil, false }})
		if err != nil {
			t.Fatal(err)
		}
		out, _ := talk(s, string(in))
		if b.last.Load() != 0 || s.Counters().IDs != 0 {
			t.Fatalf("IDs were taken, and the answer is %q", out)
		}
		if n := strings.Count(out, "-WRONGPASS wrong token"); n > maxWrong {
			t.Fatalf("%d tokens were tried on one connection", n)
		}
	})
}
