package lineproto

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/worker"
)

// TestLongBackendCallDelaysNoOtherConnection: a connection whose Backend call takes long delays no other.
// It is answered in the end, in the order of its input.
func TestLongBackendCallDelaysNoOtherConnection(t *testing.T) {
	wires(t, func(t *testing.T, w wire) {
		b, reached, release := blocking()
		r := w.serve(t, Config{Backend: b})
		const n = 10
		var stuck [n]*client
		for i := range stuck {
			stuck[i] = r.dial(t)
			stuck[i].send("PING a\nGET\nPING b\nGET\n")
		}
		<-reached
		other := r.dial(t)
		for range 3 {
			other.send("PING\n")
			other.want("PONG")
		}
		for _, c := range stuck {
			c.send("PING c\n") // while it waits
		}
		gone := r.dial(t)
		gone.send("GET\n")
		gone.Close()
		other.send("READY\n")
		other.want("OK")
		close(release)
		for _, c := range stuck {
			c.want("a")
			c.line()
			c.want("b")
			c.line()
			c.want("c")
			c.send("PING again\nQUIT\n")
			c.want("again")
			c.wantEOF()
		}
	})
}

// TestDrainCutsStuckBackendCalls: connections whose Backend call does not return are cut too.
func TestDrainCutsStuckBackendCalls(t *testing.T) {
	wires(t, func(t *testing.T, w wire) {
		b, reached, _ := blocking()
		r := w.serve(t, Config{Backend: b, DrainTimeout: 50 * time.Millisecond})
		for range 5 {
			r.dial(t).send("GET\n")
		}
		<-reached
		c := r.dial(t)
		c.send("PING\n")
		c.want("PONG") // the loop has a new driver now
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		if c := r.Counters(); c.ConnsOpen != 0 {
			t.Fatalf("%+v", c)
		}
	})
}

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
	const idle = 200 * time.Millisecond
	wires(t, func(t *testing.T, w wire) {
		r := w.serve(t, Config{IdleTimeout: idle, FirstByteTimeout: 50 * time.Millisecond, WriteTimeout: 100 * time.Millisecond, MaxConns: 4})
		closed := func(what string, c *client, start time.Time, from time.Duration) {
			t.Helper()
			c.wantEOF()
			if d := time.Since(start); d < from {
				t.Fatalf("%s: closed after %v, want %v", what, d, from)
			}
		}
		start := time.Now()
		silent := r.dial(t)
		asked := r.dial(t)
		time.Sleep(idle / 2)
		again := time.Now()
		asked.send("PING\n")
		asked.want("PONG")
		closed("silent", silent, start, idle)
		closed("idle", asked, again, idle)
		if c := r.Counters(); c.ConnsIdle != 2 {
			t.Fatalf("%+v", c)
		}

		first, second := r.dial(t), r.dial(t)
		first.send("PING\n") // both are there
		first.want("PONG")
		second.send("PING\n")
		second.want("PONG")
		third := time.Now()
		closed("the third of four", r.dial(t), third, 50*time.Millisecond)

		slow := r.dial(t)
		slow.SetReadBuffer(4 << 10)
		start = time.Now()
		slow.send(strings.Repeat("GET 10000\n", 1000))
		until(t, "a client that does not read is closed", func() bool { return r.Counters().ConnsSlow > 0 })
		if d := time.Since(start); d < 100*time.Millisecond {
			t.Fatalf("slow: closed after %v", d)
		}
	})
}

// TestLargeRequestDelaysNoOtherClient: a client that asks for very many IDs at once, and reads them, delays
// nobody. Other clients have their turns between two flushes of its output.
func TestLargeRequestDelaysNoOtherClient(t *testing.T) {
	wires(t, func(t *testing.T, w wire) {
		r := w.serve(t, Config{MaxBatch: maxMaxBatch, Backend: &fakeBackend{maxRun: 4096}})
		greedy, other := r.dial(t), r.dial(t)
		const n = maxMaxBatch
		greedy.send(fmt.Sprintf("GET %d\n", n))
		other.send("PING\n")
		other.want("PONG")
		done := make(chan int64)
		go func() {
			read, _ := io.CopyN(io.Discard, greedy.r, int64(n)*5)
			done <- read
		}()
		for range 20 {
			other.send("PING\n")
			other.want("PONG")
		}
		if read := <-done; read != int64(n)*5 {
			t.Fatalf("read %d bytes", read)
		}
	})
}

// TestStress: many clients behave in all ways at once. Each gets its own replies whole
// and in order, and no connection or descriptor is left at the end.
func TestStress(t *testing.T) {
	wires(t, func(t *testing.T, w wire) {
		before := descriptors(t)
		r := w.serve(t, Config{Backend: &fakeBackend{maxRun: 100}, MaxConns: 1000})
		var wg sync.WaitGroup
		for seed := range uint64(24) {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, 1))
				for range 15 {
					if err := stressOnce(r, rnd); err != nil {
						t.Errorf("client %d: %v", seed, err)
						return
					}
				}
			})
		}
		wg.Wait()
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		if c := r.Counters(); c.ConnsOpen != 0 || c.ConnsTotal != 24*15 {
			t.Fatalf("%+v", c)
		}
		if after := descriptors(t); after > before {
			t.Fatalf("%d descriptors, %d before", after, before)
		}
	})
}

// stressOnce runs one client, which does what rnd decides. It returns an error for
// wrong replies.
func stressOnce(r *running, rnd *rand.Rand) error {
	nc, err := net.Dial(r.network, r.addr)
	if err != nil {
		return err
	}
	written := make(chan struct{})
	defer func() { nc.Close(); <-written }()
	nc.SetDeadline(time.Now().Add(time.Minute))

	// in holds the requests. marks has a letter for each line of the replies: i for an
	// ID, p for PING's text.
	var in, marks strings.Builder
	for i := range 1 + rnd.IntN(300) {
		switch n := rnd.IntN(12); {
		case n < 7:
			in.WriteString("GET\n")
			marks.WriteString("i")
		case n < 8:
			k := 1 + rnd.IntN(2000)
			fmt.Fprintf(&in, "GET %d\n", k)
			marks.WriteString(strings.Repeat("i", k))
		default:
			fmt.Fprintf(&in, "PING p%d\n", i)
			marks.WriteString("p")
		}
	}
	ends := rnd.IntN(4)
	if ends == 1 {
		in.WriteString("QUIT\n")
	}
	go func() {
		defer close(written)
		for left := in.String(); left != ""; {
			n := min(1+rnd.IntN(1+rnd.IntN(3000)), len(left))
			if _, err := io.WriteString(nc, left[:n]); err != nil {
				return
			}
			left = left[n:]
		}
		if ends == 2 {
			nc.(stream).CloseWrite()
		}
	}()
	want := marks.String()
	if ends == 3 { // the client vanishes
		io.CopyN(io.Discard, nc, int64(len(want)))
		return nil
	}
	var got []byte
	var last int64
	buf := make([]byte, 4096)
	var line []byte
	for len(got) < len(want) || ends != 0 {
		n, err := nc.Read(buf)
		for _, c := range buf[:n] {
			if c != '\n' {
				line = append(line, c)
				continue
			}
			if id, err := strconv.ParseInt(string(line), 10, 64); err != nil {
				got = append(got, line[0])
			} else if got = append(got, 'i'); id <= last {
				return fmt.Errorf("%d after %d", id, last)
			} else {
				last = id
			}
			line = line[:0]
		}
		if err == io.EOF && ends != 0 {
			break
		}
		if err != nil {
			return fmt.Errorf("%w after %d of %d lines", err, len(got), len(want))
		}
	}
	if string(got) != want {
		return fmt.Errorf("%d replies, want %d, or in another order", len(got), len(want))
	}
	return nil
}

// descriptors returns how many descriptors this process has open, 0 if it cannot see
// them.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// TestRepliesStayInOrderWhenDriversChange: replies stay whole and in order while Backend calls take long now
// and then. Each long call gives its loop another driver.
func TestRepliesStayInOrderWhenDriversChange(t *testing.T) {
	wires(t, func(t *testing.T, w wire) {
		b := &fakeBackend{maxRun: 50, reserve: func(ctx context.Context, n int) error {
			if rand.IntN(50) == 0 {
				time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
			}
			return nil
		}}
		r := w.serve(t, Config{Backend: b})
		var wg sync.WaitGroup
		for seed := range uint64(8) {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, 2))
				for range 5 {
					if err := stressOnce(r, rnd); err != nil {
						t.Errorf("client %d: %v", seed, err)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}
