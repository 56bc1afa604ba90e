package lineproto

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// asleep returns sequences of which only slow makes requests wait: until wakeAll is called.
func asleep() *fakeSequences {
	f := newFakeSequences()
	f.pends = func(_ *sequence.Wait, name []byte) bool { return string(name) == "slow" }
	return f
}

func TestNodeWithoutSequences(t *testing.T) {
	const want = "-ERR reason=no-sequence this node serves no sequences"
	s := newTestServer(t, Config{})
	for _, words := range []string{"NEXT a", "NEXT a 5", "RANGE a 5", passTo("a 5"), "INCR a", "INCRBY a 5", "SEQ a",
		"SEQS", "SEQS a"} {
		if out, closed := talk(s, strings.TrimSpace(words)+"\nPING\n"); out != want+"\nPONG\n" || closed {
			t.Errorf("%s gets %q", words, out)
		}
		if out, _ := talk(s, request(strings.Fields(words)...)); out != want+"\r\n" {
			t.Errorf("%s gets %q in RESP", words, out)
		}
	}
}

func TestRequestsAreCounted(t *testing.T) {
	s := newTestServer(t, Config{Sequences: newFakeSequences()})
	talk(s, "NEXT a\nNEXT a\nNEXT a\nNEXT a 5\nRANGE a 5\nINCR a\nINCRBY a 5\nSEQ a\nSEQS\nNEXT three\nNEXT three\n"+
		"NEXT three\nNEXT three\nNEXT none\nNEXT 5\nSET a\nGET\nGET\nGET 5\nget x\nPING\nGET 0\nMGET a b\nGET 5\nGET\n"+
		"GET / HTTP/1.1\n")
	c := s.Counters()
	var got []string
	c.Each(func(name string, n int64) {
		if n != 0 {
			got = append(got, fmt.Sprint(name, "=", n))
		}
	})
	want := "ids=16 requests_get_ok=6 requests_get_err=1 requests_mget_ok=1 requests_next_ok=7 requests_next_err=2 " +
		"requests_next_exhausted=1 requests_range_ok=1 requests_incr_ok=1 requests_incrby_ok=1 " +
		"requests_seq_ok=1 requests_seqs_ok=1 requests_ping_ok=1 requests_other_err=2"
	if strings.Join(got, " ") != want {
		t.Fatalf("got %v, want %s", got, want)
	}
	if len(c.Requests) != len(s.table)+4 {
		t.Errorf("%d rows, want one OK for each command and four errors", len(c.Requests))
	}
	if want := []int64{4, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0}; !slices.Equal(c.Sizes.N, want) || c.Sizes.Sum != 16 {
		t.Errorf("sizes %v, sum %v, want %v and 16", c.Sizes.N, c.Sizes.Sum, want)
	}
}

// Requests for one value of the same sequence that are received together cost one call. A
// strict sequence then needs one commit for them.
func TestPipelinedRequestsShareACall(t *testing.T) {
	for _, row := range []struct {
		in    string
		calls int
	}{
		{strings.Repeat("NEXT order\n", 100), 1},
		{strings.Repeat("NEXT order\n", maxBare+1), 2},
		{strings.Repeat("NEXT order\r\n", 5) + strings.Repeat("NEXT order\n", 5), 2},
		{strings.Repeat(request("NEXT", "order"), 100), 1},
		{strings.Repeat(request("INCR", "order"), 100), 1},
		{strings.Repeat("NEXT a\nNEXT b\n", 5), 10},
		{strings.Repeat("NEXT order 2\n", 5), 5},
		{strings.Repeat("RANGE order 2\n", 5), 5},
		{strings.Repeat("NEXT three\n", 5), 6}, // the shared call fails
	} {
		f := newFakeSequences()
		out, _ := talk(newTestServer(t, Config{Sequences: f}), row.in)
		if f.calls != row.calls {
			t.Errorf("%.30q costs %d calls, want %d", row.in, f.calls, row.calls)
		}
		alone, _ := talk(newTestServer(t, Config{Sequences: newFakeSequences()}), bytewise(row.in)...)
		if out != alone {
			t.Errorf("%.30q together gets %q, alone %q", row.in, out, alone)
		}
	}
}

// A pipeline that waits is answered in order, and its calls share one Wait.
func TestWaitIsPassedAgain(t *testing.T) {
	f := newFakeSequences()
	var seen []int64
	f.pends = func(w *sequence.Wait, _ []byte) bool {
		seen = append(seen, w.Since)
		return w.Since < 2
	}
	f.later = func(wake func()) { go wake() }
	s := newTestServer(t, Config{Sequences: f})
	out, _ := talk(s, "PING\nNEXT a\nNEXT a\nGET\nSEQ a\nRANGE a 3\nPING end\n")
	if want := "PONG\n1\n2\n1000\nname=a taken=2\n3 5\nend\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	if got := fmt.Sprint(seen); got != "[0 1 2 0 1 2 0 1 2]" {
		t.Errorf("the calls had %s", got)
	}
}

// passTo returns a PASS to the owner o of a sequence with the ID id for each name and count.
func passTo(words ...string) (lines string) {
	for _, w := range words {
		lines += "PASS " + w + " c0ffee id 7 o\n"
	}
	return lines
}

// A node that asks another one pipelines what it passes on, and the requests must not be passed on again.
func TestPassedRequestsKeepTheirMark(t *testing.T) {
	f := newFakeSequences()
	var seen []string
	f.pends = func(w *sequence.Wait, name []byte) bool {
		seen = append(seen, fmt.Sprint(string(name), w.Passed != nil))
		return w.Since == 0 && string(name) == "slow"
	}
	f.later = func(wake func()) { go wake() }
	s := newTestServer(t, Config{Sequences: f})
	out, _ := talk(s, passTo("slow 2", "a 3", "a 3")+"RANGE a 1\n")
	if want := "1 2 o\n1 3 o\n4 6 o\n7 7\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	if got := fmt.Sprint(seen); got != "[slowtrue atrue atrue slowtrue afalse]" {
		t.Errorf("the calls were %s", got)
	}
}

// badSequences returns runs, whatever is asked for.
type badSequences struct {
	fakeSequences
	runs []worker.Run
}

func (b *badSequences) Take(*sequence.Wait, []byte, int, bool, func(), []worker.Run) ([]worker.Run, error) {
	return b.runs, nil
}

func TestWrongValuesAreAnError(t *testing.T) {
	for _, row := range []struct {
		runs  []worker.Run
		next  bool // a NEXT of 3 may have them
		whole bool // a RANGE of 3 may have them
	}{
		{nil, false, false},
		{[]worker.Run{{First: 5, Step: 1, Len: 2}}, false, false},
		{[]worker.Run{{First: 5, Step: 1, Len: 4}}, false, false},
		{[]worker.Run{{First: 5, Step: 1, Len: 3}, {First: 8, Step: 1, Len: 0}}, false, false},
		{[]worker.Run{{First: 5, Step: 1, Len: 4}, {First: 8, Step: 1, Len: -1}}, false, false},
		{[]worker.Run{{First: 5, Step: 1, Len: 1}, {First: 7, Step: 1, Len: 2}}, true, false},
		{[]worker.Run{{First: 5, Step: 2, Len: 2}, {First: 9, Step: 1, Len: 1}}, true, false},
		{[]worker.Run{{First: 5, Step: 2, Len: 2}, {First: 9, Step: 2, Len: 1}}, true, true},
		{[]worker.Run{{First: 5, Step: 1, Len: 3}}, true, true},
	} {
		s := newTestServer(t, Config{Sequences: &badSequences{runs: row.runs}})
		for request, good := range map[string]bool{"NEXT a 3\n": row.next, "RANGE a 3\n": row.whole,
			"INCRBY a 3\n": row.whole} {
			const wrong = "-NOTREADY internal error: a sequence did not return 3 values. Try another node\n"
			if out, _ := talk(s, request); (out == wrong) == good || strings.HasPrefix(out, "-") == good {
				t.Errorf("%q of %v gets %q", request, row.runs, out)
			}
		}
	}
}

// No request makes a step write much more than outBound.
func TestOutputIsBounded(t *testing.T) {
	f := newFakeSequences()
	for i := range 10_000 {
		f.list[fmt.Sprintf("order:%05d", i)] = &fakeSequence{taken: int64(i), step: 1}
	}
	for _, row := range []struct{ in, begin, end string }{
		{"SEQS order\nPING\n", "name=order:00000 taken=0\n", "name=order:09999 taken=9999\nEND\nPONG\n"},
		{request("SEQS") + "PING\n", "*10000\r\n$24\r\nname=order:00000 taken=0\r\n", "taken=9999\r\nPONG\n"},
		{strings.Repeat("GET 10000\n", 30) + strings.Repeat("GET\n", 3000) + "PING\n", "1000\n", "303999\nPONG\n"},
	} {
		a := asking(t, newTestServer(t, Config{Sequences: f}), row.in)
		a.waker = make(wakeSignal, 1)
		var all strings.Builder
		for len(a.in) > 0 || a.order.n > 0 || len(a.unsent.runs) > 0 || a.task != taskNone {
			out := a.turn(maxSlice)
			if len(out) > outBound+maxBare*idLine {
				t.Fatalf("a step has %d bytes", len(out))
			}
			all.WriteString(out)
		}
		if out := all.String(); !strings.HasPrefix(out, row.begin) || !strings.HasSuffix(out, row.end) || cap(a.runs) > 64 {
			t.Errorf("%.40q gets %.80q ... %q, %d runs are kept", row.in, out, out[len(out)-80:], cap(a.runs))
		}
	}
}

// TestWaitForASequenceDelaysNoOtherConnection: a request that waits holds up the later
// requests of its connection and nothing else.
func TestWaitForASequenceDelaysNoOtherConnection(t *testing.T) {
	wires(t, func(t *testing.T, w wire) {
		f := asleep()
		r := w.serve(t, Config{Sequences: f})
		const n = 10
		var stuck [n]*client
		for i := range stuck {
			stuck[i] = r.dial(t)
			stuck[i].send("PING a\nRANGE slow 5\nPING b\nNEXT slow 1\n")
			stuck[i].want("a")
		}
		until(t, "all wait", func() bool { return f.waiting() == n })
		other := r.dial(t)
		for i := range 3 {
			other.send("PING\nNEXT order\nGET\n")
			other.want("PONG")
			other.want(fmt.Sprint(1 + i))
			other.line()
		}
		for _, c := range stuck {
			c.send("PING c\n") // while it waits
		}
		f.wakeAll()
		for _, c := range stuck {
			c.line()
			c.want("b")
			c.line()
			c.want("c")
			c.send("INCR slow\nQUIT\n")
			c.line()
			c.wantEOF()
		}
		other.send("SEQ slow\n")
		other.want(fmt.Sprintf("name=slow taken=%d", n*7))
	})
}

// TestClientLeavesWhileItWaits: connections end whose clients leave while a request waits,
// and late wakes do no harm.
func TestClientLeavesWhileItWaits(t *testing.T) {
	wires(t, func(t *testing.T, w wire) {
		f := asleep()
		r := w.serve(t, Config{Sequences: f})
		const n = 12
		for i := range n {
			c := r.dial(t)
			c.send("NEXT slow\nNEXT slow\nPING\n")
			until(t, "it waits", func() bool { return f.waiting() == i+1 })
			switch i % 3 {
			case 0:
				defer c.Close()
			case 1:
				c.vanish()
			case 2:
				c.Close()
			}
		}
		f.wakeAll()
		until(t, "those that left are gone", func() bool { return r.Counters().ConnsOpen == n/3 })
		c := r.dial(t)
		c.send("NEXT slow\n")
		c.line()
	})
}

// TestDrainEndsWaits: a request that ZooKeeper does not answer gets NOTREADY before the
// server cuts its connections. The sequence keeps the Wait of such a request, and may still put
// an answer into it, so no later request may have it. Later wakes do no harm.
func TestDrainEndsWaits(t *testing.T) {
	wires(t, func(t *testing.T, w wire) {
		t.Parallel()
		f, used := asleep(), make(map[*sequence.Wait]bool)
		pends := f.pends
		f.pends = func(w *sequence.Wait, name []byte) bool {
			if used[w] {
				t.Errorf("the request for %s has the Wait of an earlier one", name)
			}
			used[w] = pends(w, name)
			return used[w]
		}
		r := w.serve(t, Config{Sequences: f, DrainTimeout: 2 * time.Second})
		for range 3 {
			c := r.dial(t)
			c.send("PING\nNEXT slow\nNEXT slow\nGET\nINCRBY slow 3\nNEXT order\n")
			c.want("PONG")
			defer func() {
				c.want("-NOTREADY stopping")
				c.want("-NOTREADY stopping")
				c.line()
				c.want("-NOTREADY stopping")
				c.line()
				c.wantEOF()
				c.Close()
			}()
		}
		ahead := r.dial(t)
		ahead.send(passTo("slow 1", "order 1", "slow 2")) // the last waits before its turn
		defer func() {
			ahead.want("-NOTREADY stopping")
			ahead.line()
			ahead.want("-NOTREADY stopping")
			ahead.Close()
		}()
		until(t, "all wait", func() bool { return f.waiting() == 5 })
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		if c := r.Counters(); c.ConnsOpen != 0 {
			t.Fatalf("%+v", c)
		}
		f.wakeAll()
	})
}

// A request with a key is one call, because equal ones must get the same value.
func TestKeyOfARequest(t *testing.T) {
	for _, row := range []struct{ in, keys, out string }{
		{"NEXT a k-1\nNEXT a k-1\nNEXT a\n", "k-1 k-1 -", "1\n2\n3\n"},
		{request("NEXT", "a", "k:1") + request("NEXT", "a"), "k:1 -", "$1\r\n1\r\n$1\r\n2\r\n"},
		{"NEXT a -k\n", "", ""}, {"NEXT a 0k\n", "", ""}, {"NEXT a " + strings.Repeat("k", maxTag+1) + "\n", "", ""},
	} {
		f := newFakeSequences()
		var keys []string
		f.pends = func(w *sequence.Wait, _ []byte) bool {
			keys = append(keys, cmp.Or(w.Key, "-"))
			return false
		}
		out, _ := talk(newTestServer(t, Config{Sequences: f}), row.in)
		if strings.Join(keys, " ") != row.keys || row.out != "" && out != row.out || row.out == "" &&
			!strings.HasPrefix(out, "-ERR a count must be") {
			t.Errorf("%.40q: keys %v, answered %q", row.in, keys, out)
		}
	}
}
