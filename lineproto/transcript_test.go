package lineproto

import (
	"io"
	"slices"
	"strings"
	"testing"
)

const (
	usageGET = "-ERR usage: GET [n | tag]\n"
	noProxy  = "-ERR PROXY protocol is not supported. Turn it off at the proxy " +
		"(send-proxy, send-proxy-v2, proxy_protocol_v2.enabled)\n"
	onPlainPort = "-ERR this port does not use TLS. Connect without TLS, or give the node a certificate\n"
	badCount    = "-ERR a count must be 1 to 10000, digits only\n"
	badTag      = "-ERR a tag must be a letter, then letters, digits and _ . : -, at most 64 bytes\n"
	badID       = "-ERR an ID must be 1 to 9223372036854775807, digits only\n"
	badRange    = "-ERR a count must be 1 to 1000000, digits only\n"
	inDemo      = "worker=7 state=serving cluster=demo cluster_uuid=c0ffee\n"
	notInProd   = "-WRONGNODE reason=other-cluster cluster=demo cluster_uuid=c0ffee this node does not belong to " +
		"cluster prod. Correct the addresses\n"
	badCluster = "-ERR a cluster is a name or a UUID: letters, digits and . _ -, at most 64\n"
	usedUp     = "-EXHAUSTED the sequence is used up\n"
	tooLong    = "-ERR line longer than 512 bytes\n"
)

var x512 = strings.Repeat("x", 512)

// transcript is a whole conversation: the input that a client sends before it closes
// its side, and all output.
type transcript struct {
	name, in, out string
	closed        bool // by the server, before the end of input
}

// allTranscripts returns the transcripts of both framings. Names of those in RESP begin
// with it.
func allTranscripts() []transcript {
	all := slices.Clone(transcripts)
	for _, tc := range respTranscripts {
		tc.name = "RESP " + tc.name
		all = append(all, tc)
	}
	return all
}

var transcripts = []transcript{
	{"get", "GET\n", "1000\n", false},
	{"get twice", "GET\nGET\n", "1000\n1001\n", false},
	{"case", "get\nGet\ngEt 1\n", "1000\n1001\n1002\n", false},
	{"crlf mirrored", "GET\r\n", "1000\r\n", false},
	{"endings line by line", "GET\r\nGET\nPING\r\nPING\nGET\r\nGET\r\nGET\n",
		"1000\r\n1001\nPONG\r\nPONG\n1002\r\n1003\r\n1004\n", false},
	{"blanks", " \tGET \t\n  GET\t2  \n", "1000\n1001\n1002\n", false},
	{"empty lines", "\n\r\n \t \nGET\n\n", "1000\n", false},
	{"nothing", "", "", false},
	{"unterminated", "GET", "1000\n", false},
	{"unterminated second", "PING\nGET 2", "PONG\n1000\n1001\n", false},
	{"unterminated CR", "GET\r", "1000\r\n", false},
	{"unterminated blank", "GET\n ", "1000\n", false},
	{"count", "GET 3\n", "1000\n1001\n1002\n", false},
	{"count crlf", "GET 2\r\n", "1000\r\n1001\r\n", false},
	{"count one", "GET 1\n", "1000\n", false},
	{"tag", "GET order\nGET a_b.C:d-9\n", "1000\n1001\n", false},
	{"tag of 64", "GET " + x512[:64] + "\n", "1000\n", false},
	{"mget", "MGET a b c\nmget a\n", "1000\n1001\n1002\n1003\n", false},
	{"decode", "DECODE 42\n", "id=42 worker=7\n", false},
	{"decode the greatest", "decode 9223372036854775807\n", "id=9223372036854775807 worker=7\n", false},
	{"decode refused", "DECODE 13\n", "-ERR the id is of no layout\n", false},
	{"time", "TIME\n", "1700000000 123\n", false},
	{"worker", "WORKER\n", inDemo, false},
	{"worker of the wanted cluster", "WORKER demo\nworker c0ffee\nGET\n", inDemo + inDemo + "1000\n", false},
	{"worker of another cluster", "WORKER prod\nGET\nNEXT order\n", notInProd, true},
	{"worker of a cluster whose name begins alike", "WORKER dem\nGET\n",
		strings.ReplaceAll(notInProd, "cluster prod", "cluster dem"), true},
	{"worker of no cluster", "WORKER a/b\nWORKER " + x512[:65] + "\nWORKER a b\n",
		badCluster + badCluster + "-ERR usage: WORKER [cluster]\n", false},
	{"stats", "STATS\n", "ids 1\nworker 7\nEND\n", false},
	{"status", "STATUS\n", `{"ready":true,"peers":false}` + "\n", false},
	{"status with peers", "STATUS Peers\n", `{"ready":true,"peers":true}` + "\n", false},
	{"status of another word", "STATUS x\n", "-ERR STATUS takes nothing, or the word peers\n", false},
	{"ready", "READY\r\n", "OK\r\n", false},
	{"ping", "PING\nPING a  b \nping GET / HTTP/1.1\n", "PONG\na  b\nGET / HTTP/1.1\n", false},
	{"version", "VERSION\n", "flaked 1.2.3\n", false},
	{"quit", "GET\nQUIT\nGET\n", "1000\n", true},
	{"quit crlf", "quit\r\n", "", true},
	{"quit with argument", "QUIT now\nGET\n", "-ERR usage: QUIT\n1000\n", false},

	{"unknown", "FOO bar\nGET\n", "-ERR unknown command \"FOO\", HELP lists them\n1000\n", false},
	{"unknown escaped", "\x01\x80\"" + x512[:100] + "\n", `-ERR unknown command "\x01\x80\"` + x512[:29] +
		"\", HELP lists them\n", false},
	{"get glued", "GETGET\nGET1\n", "-ERR unknown command \"GETGET\", HELP lists them\n" +
		"-ERR unknown command \"GET1\", HELP lists them\n", false},
	{"CR inside", "GET\rGET\n", "-ERR unknown command \"GET\\rGET\", HELP lists them\n", false},
	{"two CRs", "GET\r\r\n", "-ERR unknown command \"GET\\r\", HELP lists them\r\n", false},
	{"auth where no token is asked for", "AUTH secret\nauth me secret\r\nAUTH\nAUTH a b c\n",
		"OK\nOK\r\n-ERR usage: AUTH [user] token\n-ERR usage: AUTH [user] token\n", false},
	{"bad counts", "GET 0\nGET -1\nGET 10001\nGET 1.5\nGET 99999999999999999999\nGET 9223372036854775808\n",
		strings.Repeat(badCount, 6), false},
	{"bad counts, spelt oddly", "GET 007\nGET +5\nGET 1e3\nGET 0x10\nGET 5x\nGET ,\nGET \"5\"\n",
		strings.Repeat(badCount, 2) + strings.Repeat(badTag, 5), false},
	{"bad tags", "GET a/b\nGET a\xc3\xa9\nGET a,b\nMGET a 5\nGET " + x512[:65] + "\n", strings.Repeat(badTag, 5),
		false},
	{"arity", "GET 5 x\nGET a b\nTIME 1\r\nMGET\nDECODE\nDECODE 1 2\n",
		usageGET + usageGET + "-ERR usage: TIME\r\n-ERR usage: MGET tag ...\n-ERR usage: DECODE id\n" +
			"-ERR usage: DECODE id\n", false},
	{"bad ids", "DECODE 0\nDECODE -5\nDECODE +5\nDECODE 05\nDECODE x\nDECODE 9223372036854775808\nDECODE 1_000\n",
		strings.Repeat(badID, 7), false},

	{"next", "NEXT order\nnext order\nNEXT user\r\nNEXT order\n", "1\n2\n1\r\n3\n", false},
	{"next pipelined", strings.Repeat("NEXT order\n", 3) + strings.Repeat("NEXT order\r\n", 2) + "NEXT order",
		"1\n2\n3\n4\r\n5\r\n6\n", false},
	{"next with telnet bytes", "NE\xff\xf1XT order\nNENEXT order\n",
		"1\n-ERR unknown command \"NENEXT\", HELP lists them\n", false},
	{"next many", "NEXT order 3\nNEXT order 1\nGET\nNEXT order\n", "1\n2\n3\n4\n1000\n5\n", false},
	{"range", "RANGE order 10\nRANGE order 1\r\nRANGE order 1000000\n", "1 10\n11 11\r\n12 1000011\n", false},
	{"pass", passTo("order 10") + "pass order 1 demo id 0 -\r\nPASS order 1\n" + passTo("order 0", "none 1"),
		"1 10 o\n11 11 taker\r\n-ERR usage: PASS name n cluster id term owner\n" + badRange +
			"-ERR reason=no-sequence there is no sequence none\n", false},
	{"pass to another cluster", "PASS order 1 prod id 7 o\nPASS order 1 a/b id 7 o\nPASS order 1 demo id -7 o\n" +
		passTo("order 1"), notInProd + badCluster + "-ERR a term must be a number, digits only\n1 1 o\n", false},
	{"incr", "INCR order\nINCR order\nINCRBY order 5\nINCRBY order 1000000\n", "1\n2\n7\n1000007\n", false},
	{"steps", "NEXT by:10 2\nRANGE by:10 3\nINCRBY by:10 2\nINCR by:10\n", "0\n10\n20 40\n60\n70\n", false},
	{"seq", "NEXT order\nSEQ order\nSEQ user\r\n", "1\nname=order taken=1\nname=user taken=0\r\n", false},
	{"seqs", "SEQS\nNEXT order\nNEXT user\nSEQS\r\nSEQS us\nSEQS x\n",
		"END\n1\n1\nname=order taken=1\r\nname=user taken=1\r\nEND\r\nname=user taken=1\nEND\nEND\n", false},
	{"sequence used up", "NEXT three 2\nNEXT three 2\nNEXT three\nNEXT three\nPING\n",
		"1\n2\n" + usedUp + "3\n" + usedUp + "PONG\n", false},
	{"sequence used up within a pipeline", strings.Repeat("NEXT three\n", 5) + "PING\n",
		"1\n2\n3\n" + usedUp + usedUp + "PONG\n", false},
	{"sequence unknown", "NEXT none\nSEQ none\nRANGE none 5\n",
		strings.Repeat("-ERR reason=no-sequence there is no sequence none\n", 3), false},
	{"names of other systems", "NEXT {app}:order\nNEXT 2026:order\nNEXT _a 2\nSEQS 2\n",
		"1\n1\n1\n2\nname=2026:order taken=1\nEND\n", false},
	{"sequence fails", "NEXT broken\nSEQ broken\n", "-NOTREADY out of order\n-NOTREADY out of order\n", false},
	{"bad names", "NEXT 5\nINCR a*\nRANGE a,b 1\nSEQ :a\nSEQS a*\nNEXT a" + x512[:128] + "\n",
		"-ERR the name of a sequence must have more than digits: 5 is a count\n" +
			"-ERR the name of a sequence must not contain '*': use letters, digits and _ . : - { } /\n" +
			"-ERR the name of a sequence must not contain ',': use letters, digits and _ . : - { } /\n" +
			"-ERR the name of a sequence must begin with a letter, a digit, _ or {, not ':'\n" +
			"-ERR the name of a sequence must not contain '*': use letters, digits and _ . : - { } /\n" +
			"-ERR the name of a sequence has 129 bytes, at most 128 are allowed\n", false},
	{"bad counts of values", "NEXT a 0\nNEXT a 10001\nNEXT a 05\nRANGE a 0\nRANGE a 1000001\nINCRBY a -1\n" +
		"INCRBY a 1.5\nNEXT a\n", strings.Repeat(badCount, 3) + strings.Repeat(badRange, 4) + "1\n", false},
	{"bad keys", "NEXT a 4711x\nNEXT a -x\nNEXT a \xc3\xbc\nNEXT a\n",
		strings.Repeat("-ERR a count must be 1 to 10000, digits only, and a key a "+
			"letter, then letters, digits and _ . : -, at most 64 bytes\n", 3) + "1\n", false},
	{"arity of sequences", "NEXT\nNEXT a 1 2\nRANGE a\nINCR\nINCR a 5\nINCRBY a\nSEQ\nSEQS a b\n",
		"-ERR usage: NEXT name [n | key]\n-ERR usage: NEXT name [n | key]\n-ERR usage: RANGE name n\n" +
			"-ERR usage: INCR name\n-ERR usage: INCR name\n-ERR usage: INCRBY name n\n-ERR usage: SEQ name\n" +
			"-ERR usage: SEQS [prefix]\n", false},
	{"get of a sequence's name", "NEXT order\nGET order\nMGET order\nNEXT order\n", "1\n1000\n1001\n2\n", false},

	{"longest line", "PING " + x512[:507] + "\n", x512[:507] + "\n", false},
	{"longest line crlf", "PING " + x512[:507] + "\r\n", x512[:507] + "\r\n", false},
	{"longest line unterminated", "PING " + x512[:507], x512[:507] + "\n", false},
	{"line too long", "GET\nPING " + x512[:508] + "\nGET\n", "1000\n" + tooLong, true},
	{"line too long crlf", "PING " + x512[:508] + "\r\n", tooLong, true},
	{"line too long by a CR", "PING " + x512[:507] + "\r\r\n", tooLong, true},
	{"line too long, no end", x512 + "x", tooLong, true},
	{"NUL", "GET\nGE\x00T\nGET\n", "1000\n-ERR request contains a NUL byte\n", true},
	{"byte order mark", "\ufeffGET\nGET\n",
		"-ERR the request begins with a byte order mark. Send it without one\n1000\n", false},
	{"TLS hello", "\x16\x03\x01\x00\xa5\x01", onPlainPort, true},
	{"TLS hello with a line feed in it", "\x16\x03\x01\x02\n\x01\x00\x02\x06\x03\x03", onPlainPort, true},
	{"TLS hello with a telnet byte in it", "\x16\x03\x01\x01\xff\x01\x00\x01\xfb\x03\x03", onPlainPort, true},
	{"PROXY v2", "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\x7f\x00\x00\x01\x7f\x00\x00\x01\x00\x01\x00\x02GET\n",
		strings.ReplaceAll(noProxy, "\n", "\r\n"), true},
	{"PROXY v1", "PROXY TCP4 127.0.0.1 127.0.0.1 1 2\nGET\n", noProxy, true},

	{"http get", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", http400, true},
	{"http get old", "GET /\r\n", http400, true},
	{"http get of a url", "GET http://x/ HTTP/1.0\r\n", http400, true},
	{"http post", "POST /get HTTP/1.1\r\n\r\nGET\n", http400, true},
	{"http post bare", "post\n", http400, true},
	{"http header", "GET\nhost: x\nGET\n", "1000\n" + http400, true},
	{"http 2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", http400, true},
	{"http other", "PROPFIND /a HTTP/1.1\r\n", http400, true},
	{"http long", "GET /" + x512 + " HTTP/1.1\r\n", http400, true},

	{"telnet", "\xff\xfb\x01GE\xff\xfd\x03T\n", "1000\n", false},
	{"telnet option LF", "\xff\xfd\nGET\n", "1000\n", false},
	{"telnet option NUL", "GET\xff\xfc\x00\r\n", "1000\r\n", false},
	{"telnet subnegotiation", "\xff\xfa\x1f\x00\nGET\n\xff\xff\xff\xf0GET\xff\xf1\xff\xf0\n", "1000\n", false},
	{"telnet between", "GET\n\xff\xf4\xff\xfd\x06GET\n\xff\xf9", "1000\n\xff\xfb\x061001\n", false},
	{"telnet timing marks", "\xff\xfd\x06\xff\xfd\x06GET\nG\xff\xfd\x06ET\n\xff\xfd\x05\xff\xfb\x06",
		"\xff\xfb\x06\xff\xfb\x061000\n\xff\xfb\x061001\n", false},
	{"telnet escape", "G\xff\xffET\n", "1000\n", false},
	{"telnet does not lengthen", "PING " + strings.Repeat("\xff\xfb\x18", 300) + x512[:507] + "\n", x512[:507] + "\n",
		false},
	{"telnet unfinished", "GET\n\xff\xfa\x01 PING\nPING\nPING\n", "1000\n", false},
	{"telnet unfinished in a line", "GET\xff\xfa\x01\n\n", "1000\n", false},
}

const http400 = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n" +
	"Content-Length: 127\r\n\r\n" +
	"This port speaks flaked's line protocol, not HTTP: send GET and a line feed, read an ID.\n" +
	"the HTTP admin port is 127.0.0.1:7610\n"

const hint = "the HTTP admin port is 127.0.0.1:7610"

func TestTranscripts(t *testing.T) {
	for _, tc := range allTranscripts() {
		t.Run(tc.name, func(t *testing.T) {
			check := func(what string, allowed int, parts ...string) {
				t.Helper()
				b := &fakeBackend{}
				s := newTestServer(t, Config{Backend: b, AdminHint: hint, Sequences: newFakeSequences()})
				out, closed := talkInTurns(s, allowed, parts...)
				if out != tc.out || closed != tc.closed {
					t.Fatalf("%s: got %q, closed %v\nwant %q, closed %v", what, out, closed, tc.out, tc.closed)
				}
				if got, want := max(b.last.Load(), 999)-999, countIDs(out); got != want {
					t.Fatalf("%s: %d IDs were taken, %d answered", what, got, want)
				}
			}
			check("whole", maxSlice, tc.in)
			check("byte by byte", maxSlice, bytewise(tc.in)...)
			check("in small turns", 2, tc.in)
			check("in the smallest turns, byte by byte", 1, bytewise(tc.in)...)
			for i := range tc.in {
				check("split", maxSlice, tc.in[:i], tc.in[i:])
			}
		})
	}
}

// countIDs counts the lines of four digits.
func countIDs(out string) (n int64) {
	for line := range strings.Lines(out) {
		if id, ok := number([]byte(strings.TrimRight(strings.ReplaceAll(line, "\xff\xfb\x06", ""), "\r\n"))); ok &&
			id >= 1000 && id <= 9999 {
			n++
		}
	}
	return n
}

func bytewise(s string) []string {
	parts := make([]string, len(s))
	for i := range parts {
		parts[i] = s[i : i+1]
	}
	return parts
}

// TestTranscriptsOverSockets runs the transcripts through each engine: its buffers, reads and
// ends.
func TestTranscriptsOverSockets(t *testing.T) {
	t.Parallel()
	wires(t, func(t *testing.T, w wire) {
		t.Parallel()
		for _, tc := range allTranscripts() {
			t.Run(tc.name, func(t *testing.T) {
				run := func(parts ...string) {
					t.Helper()
					r := w.serve(t, Config{AdminHint: hint, Sequences: newFakeSequences()})
					c := r.dial(t)
					for _, p := range parts {
						if _, err := io.WriteString(c, p); err != nil && !tc.closed {
							t.Fatal(err)
						}
					}
					c.CloseWrite()
					out, err := io.ReadAll(c)
					if string(out) != tc.out || err != nil {
						t.Fatalf("got %q, %v\nwant %q", out, err, tc.out)
					}
					r.stop()
				}
				run(tc.in)
				run(bytewise(tc.in)...)
			})
		}
	})
}
