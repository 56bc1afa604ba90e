package lineproto

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// idArray returns the reply to a batch of n IDs.
func idArray(first, n int) string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = strconv.Itoa(first + i)
	}
	return bulks(ids...)
}

func pieces(s string, size int) (parts []string) {
	for len(s) > size {
		parts, s = append(parts, s[:size]), s[size:]
	}
	return append(parts, s)
}

// mget returns a request with n keys of a width.
func mget(n, width int) string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("k%0*d", width-1, i)
	}
	return request(append([]string{"MGET"}, keys...)...)
}

// TestLongArrays: requests of all lengths up to the limits are answered alike, wherever
// the input is cut and whatever requests are before and behind.
func TestLongArrays(t *testing.T) {
	const most = maxArray - len("*2\r\n$4\r\nPING\r\n$65509\r\n\r\n")
	x := func(n int) string { return strings.Repeat("x", n) }
	cases := []transcript{
		{"kept by the engine", request("PING", x(maxKept-30)), bulk(x(maxKept - 30)), false},
		{"held", request("PING", x(maxKept)), bulk(x(maxKept)), false},
		{"longest", request("PING", x(most)), bulk(x(most)), false},
		{"too long", request("PING", x(most+1)), longArray, true},
		{"too long together", "*3\r\n$4\r\nPING\r\n$60000\r\n" + x(60000) + "\r\n$5507\r\n" + x(5507) + "\r\n",
			longArray, true},
		{"most arguments", mget(maxArgs-1, 6), idArray(1001, maxArgs-1), false},
		{"most arguments, too long", mget(maxArgs-1, maxTag), longArray, true},
		{"too many arguments", mget(maxArgs, 4), manyArgs, true},
		{"malformed far in", "*2\r\n$4\r\nPING\r\n$40000\r\n" + x(40000) + "\r\r",
			"-ERR Protocol error: a string longer than announced\r\n", true},
		{"many", strings.Repeat(request("PING", x(700))+request("PING", x(3)), 40),
			strings.Repeat(bulk(x(700))+bulk(x(3)), 40), false},
	}
	// The limit falls into the header of the next string, at each of its bytes.
	for n := maxArray - 14; n <= maxArray; n++ {
		first := request("PING", x(n-len(request("PING", x(60000)))+60000))
		first = "*3" + first[2:]
		cases = append(cases,
			transcript{fmt.Sprintf("long header after %d", n), first + "$12345678\r\n", longArray, true},
			transcript{fmt.Sprintf("no header after %d", n), first + "$12345678x", badBulk, true},
			transcript{fmt.Sprintf("endless header after %d", n), first + "$123456789", badBulk, true})
		if n+len(bulk("")) > maxArray {
			cases = append(cases, transcript{fmt.Sprintf("one more after %d", n), first + bulk(""), longArray, true})
		}
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			in, out := "GET\n"+tc.in, "1000\n"+tc.out
			if !tc.closed {
				in, out = in+request("PING")+"PING\n", out+"+PONG\r\nPONG\n"
			}
			for _, size := range []int{len(in), 1, 7, 512, 513, 1024, 16 << 10} {
				got, closed := talk(newTestServer(t, Config{}), pieces(in, size)...)
				if got != out || closed != tc.closed {
					t.Fatalf("in pieces of %d: got %d bytes, %.300q, closed %v\nwant %d, %.300q, closed %v",
						size, len(got), got, closed, len(out), out, tc.closed)
				}
			}
			for _, goroutines := range []bool{false, true} {
				w := wire{network: "tcp", goroutines: goroutines}
				c := w.serve(t, Config{}).dial(t)
				c.send(in)
				c.CloseWrite()
				if got, err := io.ReadAll(c); string(got) != out || err != nil {
					t.Fatalf("over %s: got %.300q, %v", w, got, err)
				}
			}
		})
	}
}

// TestArrayByteByByteIsParsedOnce: a request that comes byte by byte is parsed on from where it
// stopped, and only the bytes that were sent are kept.
func TestArrayByteByByteIsParsedOnce(t *testing.T) {
	s := &session{srv: newTestServer(t, Config{})}
	in := request(append([]string{"MGET"}, slices.Repeat([]string{strings.Repeat("k", 50)}, maxArgs-1)...)...)
	in = in[:len(in)-2] // never whole
	var buf []byte
	for sent := range len(in) {
		buf = append(buf, in[sent])
		at := s.arrays.at
		used, then := s.consume(t.Context(), buf, false, maxSlice)
		buf = buf[used:]
		switch {
		case then != needInput || len(s.out) > 0:
			t.Fatalf("after %d bytes: %v, %q", sent, then, s.out)
		case len(buf) > maxKept || len(buf)+len(s.arrays.held) != sent+1:
			t.Fatalf("after %d bytes: %d are left, %d held", sent+1, len(buf), len(s.arrays.held))
		case cap(s.arrays.held) > 4*(sent+1):
			t.Fatalf("after %d bytes: memory for %d", sent+1, cap(s.arrays.held))
		case s.arrays.at < at || sent-s.arrays.at > 2*maxKept:
			t.Fatalf("after %d bytes: to be looked at again from %d on", sent, s.arrays.at)
		}
	}
	if cap(s.args) > 16 {
		t.Fatalf("%d arguments are kept", cap(s.args))
	}
	buf = append(buf, "\r\n"...)
	if used, _ := s.consume(t.Context(), buf, false, maxSlice); used != 2 || s.arrays.held != nil ||
		s.srv.Counters().IDs != maxArgs-1 {
		t.Fatalf("used %d; %d held, %d arguments kept, %d IDs", used, len(s.arrays.held), cap(s.args),
			s.srv.Counters().IDs)
	}
}

// TestIdleConnectionKeepsNoRequest: an idle connection keeps no memory of a long request.
func TestIdleConnectionKeepsNoRequest(t *testing.T) {
	s := &session{srv: newTestServer(t, Config{})}
	in := []byte(request("PING", strings.Repeat("x", 40000)))
	s.consume(t.Context(), in[:len(in)-2], false, maxSlice)
	freed := make(chan struct{})
	runtime.AddCleanup(&s.arrays.held[0], func(struct{}) { close(freed) }, struct{}{})
	if used, _ := s.consume(t.Context(), in[len(in)-2:], false, maxSlice); used != 2 || len(s.out) < 40000 {
		t.Fatalf("used %d, answered %d bytes", used, len(s.out))
	}
	for range 5 {
		runtime.GC()
	}
	select {
	case <-freed:
	case <-time.After(30 * time.Second):
		t.Fatal("what was held is still referred to")
	}
	runtime.KeepAlive(s)
}

// TestArraysShareReservations: a pipelined batch of GETs takes one reservation.
func TestArraysShareReservations(t *testing.T) {
	calls := 0
	b := &fakeBackend{reserve: func(context.Context, int) error { calls++; return nil }}
	out, _ := talk(newTestServer(t, Config{Backend: b}),
		strings.Repeat(getArray+request("GET", "key:000000000001"), 50))
	if n := strings.Count(out, "$4\r\n"); n != 100 || calls != 1 {
		t.Fatalf("%d IDs in %d reservations", n, calls)
	}
}
