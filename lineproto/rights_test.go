package lineproto

import (
	"strings"
	"testing"

	"github.com/flaked/flaked/sequence"
)

// limited lets in three tokens: all may use every sequence, some the ones named order and user:*,
// and none no sequence.
func limited(token []byte) (*sequence.Rights, bool) {
	switch string(token) {
	case "all":
		return nil, true
	case "some", "none":
		list := map[string]string{"some": "order,user:*", "none": "none"}[string(token)]
		rights, err := sequence.ParseRights(list)
		return rights, err == nil
	}
	return nil, false
}

func noPerm(name string) string {
	return "-NOPERM reason=no-right this token may not use sequence " + name
}

// A request for a sequence that the token does not include is refused alone, before the node
// looks whether the sequence exists.
func TestRightsOfTokens(t *testing.T) {
	no, noCRLF := noPerm("x")+"\n", noPerm("x")+"\r\n"
	auth := func(token string) string { return request("AUTH", token) }
	for _, row := range []struct{ name, in, out string }{
		{"each command", "AUTH some\nNEXT x\nNEXT x 3\nRANGE x 3\nINCR x\nINCRBY x 3\n" + passTo("x 3") + "SEQ x\r\n",
			"OK\n" + strings.Repeat(no, 6) + noCRLF},
		{"those permitted", "AUTH some\nNEXT order\nNEXT user:1 2\nRANGE order 3\nINCR order\nINCRBY order 3\n" +
			"SEQ order\n", "OK\n1\n1\n2\n2 4\n5\n8\nname=order taken=8\n"},
		{"IDs", "AUTH none\nGET\nGET 2\nGET x\nMGET a b\nNEXT x\n", "OK\n1000\n1001\n1002\n1003\n1004\n1005\n" + no},
		{"neighbours of the entries", "AUTH some\nNEXT orders\nNEXT orde\nNEXT order:1\nNEXT user\nNEXT ORDER\n" +
			"NEXT user:\n", "OK\n" +
			noPerm("orders") + "\n" + noPerm("orde") + "\n" + noPerm("order:1") + "\n" + noPerm("user") + "\n" +
			noPerm("ORDER") + "\n1\n"},
		{"what does not exist", "AUTH some\nNEXT none\nSEQ none\nNEXT broken\nNEXT three 5\n", "OK\n" +
			noPerm("none") + "\n" + noPerm("none") + "\n" + noPerm("broken") + "\n" + noPerm("three") + "\n"},
		{"bad requests", "AUTH none\nNEXT 5\nNEXT x 0\nNEXT\n",
			"OK\n-ERR the name of a sequence must have more than digits: 5 is a count\n" + badCount +
				"-ERR usage: NEXT name [n | key]\n"},
		{"in the midst of a pipeline", "AUTH some\n" + strings.Repeat("NEXT order\n", 3) + "NEXT x\nNEXT x\n" +
			strings.Repeat("NEXT order\n", 3) + "NEXT x\nPING\n",
			"OK\n1\n2\n3\n" + no + no + "4\n5\n6\n" + no + "PONG\n"},
		{"at the start of a pipeline", "AUTH some\nNEXT x\nNEXT x\nNEXT order\nNEXT order\n",
			"OK\n" + no + no + "1\n2\n"},
		{"RESP in the midst of a pipeline", auth("some") + strings.Repeat(request("INCR", "order"), 3) +
			request("INCR", "x") + strings.Repeat(request("INCR", "order"), 2),
			"+OK\r\n:1\r\n:2\r\n:3\r\n" + noCRLF + ":4\r\n:5\r\n"},
		{"RESP", auth("some") + request("NEXT", "x") + request("NEXT", "x", "3") + request("RANGE", "x", "3") +
			request("INCRBY", "x", "3") + request("SEQ", "x") + request("NEXT", "order"),
			"+OK\r\n" + strings.Repeat(noCRLF, 5) + bulk("1")},
		{"HELLO", request("HELLO", "3", "AUTH", "me", "none", "SETNAME", "n") + request("NEXT", "x"), hello3 + noCRLF},
		{"another token", "AUTH some\nNEXT x\nAUTH all\nNEXT x\nNEXT x\nAUTH none\nNEXT x\nNEXT order\n",
			"OK\n" + no + "OK\n1\n2\nOK\n" + no + noPerm("order") + "\n"},
		{"a wrong token changes nothing", "AUTH some\nAUTH bad\nNEXT x\nNEXT order\n", "OK\n" + wrong + no + "1\n"},
		{"list", "AUTH all\nNEXT x\nNEXT order\nNEXT user:1\nAUTH some\nSEQS\nSEQS u\nSEQS x\nAUTH none\nSEQS\n",
			"OK\n1\n1\n1\nOK\nname=order taken=1\nname=user:1 taken=1\nEND\nname=user:1 taken=1\nEND\nEND\nOK\nEND\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, parts := range [][]string{{row.in}, bytewise(row.in)} {
				f, asked := newFakeSequences(), map[string]bool{}
				f.pends = func(_ *sequence.Wait, name []byte) bool { asked[string(name)] = true; return false }
				if out, _ := talk(newTestServer(t, Config{Sequences: f, Authenticate: limited}),
					parts...); out != row.out {
					t.Fatalf("got %q\nwant %q", out, row.out)
				}
				if !strings.Contains(row.in, "AUTH all") && !onlyPermitted(asked) {
					t.Errorf("the node was asked for %v", asked)
				}
			}
		})
	}
}

func onlyPermitted(asked map[string]bool) bool {
	for name := range asked {
		if name != "order" && !strings.HasPrefix(name, "user:") {
			return false
		}
	}
	return true
}

// A connection keeps the rights that its token had when it was sent.
func TestConnectionKeepsItsRights(t *testing.T) {
	calls := 0
	check := func([]byte) (*sequence.Rights, bool) {
		calls++
		return limited([]byte([]string{"some", "none"}[calls-1]))
	}
	s := newTestServer(t, Config{Sequences: newFakeSequences(), Authenticate: check})
	ss := &session{srv: s, waker: make(wakeSignal, 1)}
	ss.consume(t.Context(), []byte("AUTH t\nNEXT order\n"), false, maxSlice)
	other := &session{srv: s, waker: make(wakeSignal, 1)}
	other.consume(t.Context(), []byte("AUTH t\nNEXT order\n"), false, maxSlice)
	ss.consume(t.Context(), []byte("NEXT order\n"), false, maxSlice)
	if want := "OK\n1\n2\n"; string(ss.out) != want || string(other.out) != "OK\n"+noPerm("order")+"\n" {
		t.Errorf("got %q, another connection %q", ss.out, other.out)
	}
}
