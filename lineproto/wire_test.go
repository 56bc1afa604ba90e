package lineproto

import (
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/worker"
)

// panicking panics when asked to decode.
type panicking struct{ fakeBackend }

func (*panicking) Decode(worker.ID) (string, error) { panic("decode") }

// TestPanicEndsOnlyItsConnection: a panic ends its connection and nothing else.
func TestPanicEndsOnlyItsConnection(t *testing.T) {
	wires(t, func(t *testing.T, w wire) {
		r := w.serve(t, Config{Backend: &panicking{}})
		other := r.dial(t)
		for range 3 {
			c := r.dial(t)
			c.send("DECODE 5\nGET\n")
			c.wantEOF()
			other.send("PING\n")
			other.want("PONG")
		}
		if c := r.Counters(); c.ConnsOpen != 1 {
			t.Fatalf("%+v", c)
		}
	})
}

// TestTimeouts: over real sockets every timeout closes its connection, and none too
// early.
func TestTimeouts(t *testing.T) {
	const idle, firstByte = 600 * time.Millisecond, 150 * time.Millisecond
	limitWires(t, func(t *testing.T, w wire) {
		r := w.serve(t, Config{IdleTimeout: idle, FirstByteTimeout: firstByte,
			WriteTimeout: 100 * time.Millisecond, MaxConns: 4})
		closed := func(what string, c *client, start time.Time, from time.Duration) {
			t.Helper()
			c.wantEOF()
			if d := time.Since(start); d < from {
				t.Fatalf("%s: closed after %v, want %v", what, d, from)
			}
		}
		start := time.Now()
		silent := r.dial(t)
		first, second := r.dial(t), r.dial(t)
		speak := func() {
			t.Helper()
			for _, c := range []*client{first, second} {
				c.send("PING\n")
				c.want("PONG")
			}
		}
		speak()
		time.Sleep(idle / 2) // an idle time is what the test measures, so the time itself must pass
		speak()
		closed("the longest idle of three of four", silent, start, idle)
		time.Sleep(2 * idle)
		speak() // with one less there is room, so nobody was closed meanwhile
		if c := r.Counters(); c.ConnsIdle != 1 {
			t.Fatalf("%+v", c)
		}

		for range 2 { // at each listener
			speak() // else one of them is idle for so long that it makes room for the third
			third := time.Now()
			closed("the third of four", r.dial(t), third, firstByte)
		}
		for i := range int64(2) {
			slow := r.dial(t)
			slow.SetReadBuffer(4 << 10)
			start = time.Now()
			slow.send(strings.Repeat("GET 10000\n", 1000))
			until(t, "a client that does not read is closed", func() bool { return r.Counters().ConnsSlow > i })
			if d := time.Since(start); d < 100*time.Millisecond {
				t.Fatalf("slow: closed after %v", d)
			}
		}
	})
}
