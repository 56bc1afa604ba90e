package lineproto

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/race"
	"github.com/flaked/flaked/sequence"
	"github.com/flaked/flaked/worker"
)

// TestStress: many clients behave in all ways at once, while there are no IDs now and then
// and sequences wait at random. Each client gets its own replies whole and in order, and no
// connection or descriptor is left at the end.
func TestStress(t *testing.T) {
	wires(t, func(t *testing.T, w wire) {
		clients, rounds := 16, 2
		if race.Enabled { // as in `make test`
			rounds = 8
		}
		before := descriptors(t)
		b := &fakeBackend{maxRun: 100, tick: func(n int) (k int, p worker.Pause) {
			if rand.IntN(100) == 0 {
				p.For = time.Duration(rand.IntN(20)) * time.Millisecond
			}
			return n, p
		}}
		b.last.Store(1_234_567_890_123_000_000)
		f := newFakeSequences()
		f.pends = func(*sequence.Wait, []byte) bool { return rand.IntN(3) == 0 }
		var late sync.WaitGroup
		f.later = func(wake func()) {
			late.Add(1)
			time.AfterFunc(time.Duration(rand.IntN(3000))*time.Microsecond, func() { wake(); late.Done() })
		}
		r := w.serve(t, Config{Backend: b, Sequences: f, MaxConns: 1000})
		var wg sync.WaitGroup
		for seed := range uint64(clients) {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, 1))
				for round := range rounds {
					if err := stressOnce(r, rnd, fmt.Sprintf("c%d.%d", seed, round)); err != nil {
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
		late.Wait()
		if c := r.Counters(); c.ConnsOpen != 0 || c.ConnsTotal != int64(clients*rounds) {
			t.Fatalf("%+v", c)
		}
		if after := descriptors(t); after > before {
			t.Fatalf("%d descriptors, %d before", after, before)
		}
	})
}

// stressOnce runs one client, which does what rnd decides and uses a sequence of its own. It
// returns an error for wrong replies.
func stressOnce(r *running, rnd *rand.Rand, name string) error {
	nc, err := net.Dial(r.network, r.addr)
	if err != nil {
		return err
	}
	written := make(chan struct{})
	defer func() { nc.Close(); <-written }()
	nc.SetDeadline(time.Now().Add(time.Minute))

	in, want := randomPipeline(rnd, name)
	ends := rnd.IntN(3)
	if ends == 0 {
		in += "QUIT\n"
	}
	go func() {
		defer close(written)
		for left := in; left != ""; {
			n := min(1+rnd.IntN(1+rnd.IntN(3000)), len(left))
			if _, err := io.WriteString(nc, left[:n]); err != nil {
				return
			}
			left = left[n:]
		}
		if ends == 1 {
			nc.(stream).CloseWrite()
		}
	}()
	if ends == 2 { // the client vanishes
		io.CopyN(io.Discard, nc, int64(len(want)/2))
		return nil
	}
	out, err := io.ReadAll(nc)
	if err != nil {
		return err
	}
	got, last := "", ""
	for line := range strings.Lines(string(out)) {
		if id := strings.TrimSpace(line); len(id) == 19 && strings.Trim(id, "0123456789") == "" {
			if id <= last {
				return fmt.Errorf("%s after %s", id, last)
			}
			line, last = strings.Replace(line, id, "ID", 1), id
		}
		got += line
	}
	if got != want {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		return fmt.Errorf("replies differ at byte %d of %d: %.50q, want %.50q", i, len(want), got[i:], want[i:])
	}
	return nil
}

// randomPipeline returns random requests for IDs and for values of a sequence, in both framings,
// and the replies. ID stands for an ID in them.
func randomPipeline(rnd *rand.Rand, name string) (in, want string) {
	var asks, replies strings.Builder
	last := 0
	for i := range 1 + rnd.IntN(150) {
		n := 1 + rnd.IntN(1+rnd.IntN(300))
		few, count := 1+n/20, fmt.Sprint(n)
		switch rnd.IntN(11) {
		case 0:
			asks.WriteString(strings.Repeat("GET\n", few))
			replies.WriteString(strings.Repeat("ID\n", few))
		case 1:
			asks.WriteString("GET " + count + "\n")
			replies.WriteString(strings.Repeat("ID\n", n))
		case 2:
			asks.WriteString(request("GET", "k", "COUNT", count))
			replies.WriteString("*" + count + "\r\n" + strings.Repeat("$19\r\nID\r\n", n))
		case 3:
			asks.WriteString(strings.Repeat("NEXT "+name+"\n", few))
			replies.WriteString(idLines(int64(last)+1, few))
			last += few
		case 4:
			asks.WriteString(strings.Repeat(request("INCR", name), few))
			for range few {
				last++
				fmt.Fprintf(&replies, ":%d\r\n", last)
			}
		case 5:
			asks.WriteString("NEXT " + name + " " + count + "\n")
			replies.WriteString(idLines(int64(last)+1, n))
			last += n
		case 6:
			asks.WriteString(request("RANGE", name, count))
			replies.WriteString(bulks(fmt.Sprint(last+1), fmt.Sprint(last+n)))
			last += n
		case 7:
			asks.WriteString("INCRBY " + name + " " + count + "\r\n")
			last += n
			fmt.Fprintf(&replies, "%d\r\n", last)
		case 8:
			asks.WriteString(request("SEQ", name))
			replies.WriteString(bulk(fmt.Sprintf("name=%s taken=%d", name, last)))
		case 9:
			asks.WriteString("NEXT none\n")
			replies.WriteString("-ERR reason=no-sequence there is no sequence none\n")
		default:
			fmt.Fprintf(&asks, "PING p%d\n", i)
			fmt.Fprintf(&replies, "p%d\n", i)
		}
	}
	return asks.String(), replies.String()
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
