package client

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/ids"
)

func TestSequence(t *testing.T) {
	servers, addrs := nodes(t, 1)
	servers[0].SetNext("zero", 0)
	c := open(t, Config{Addrs: addrs, MaxBatch: 10})
	ctx := by(t, long)
	order := c.Sequence("order")
	for want := int64(1); want <= 3; want++ {
		if v, err := order.Next(ctx); v != want || err != nil {
			t.Fatalf("Next: %d %v, not %d", v, err, want)
		}
	}
	if all, err := order.Take(ctx, 25); err != nil || len(all) != 25 || all[0] != 4 || all[24] != 28 {
		t.Errorf("Take: %v %v", all, err)
	}
	if first, last, err := order.Range(ctx, 1000); err != nil || first != 29 || last != 1028 {
		t.Errorf("Range: %d %d %v", first, last, err)
	}
	if v, err := c.Sequence("zero").Next(ctx); v != 0 || err != nil {
		t.Errorf("a value of 0: %d %v", v, err)
	}
	one, err := order.NextKeyed(ctx, "a")
	again, errAgain := order.NextKeyed(ctx, "a")
	other, errOther := order.NextKeyed(ctx, "b")
	if one != 1029 || again != one || other != 1030 || err != nil || errAgain != nil || errOther != nil {
		t.Errorf("keys: %d %d %d %v %v %v", one, again, other, err, errAgain, errOther)
	}
	if id, err := c.Next(ctx); id != 1 || err != nil {
		t.Errorf("an ID: %d %v", id, err)
	}
}

func TestSequenceRefusesBadInput(t *testing.T) {
	_, addrs := nodes(t, 1)
	c := open(t, Config{Addrs: addrs})
	ctx := by(t, long)
	with := func(cfg SequenceConfig) ids.Sequence { return c.SequenceWith("a", cfg) }
	for name, call := range map[string]func() error{
		"a name":        func() error { _, err := c.Sequence("9").Next(ctx); return err },
		"a line in it":  func() error { _, err := c.Sequence("a\nGET").Next(ctx); return err },
		"an empty name": func() error { _, _, err := c.Sequence("").Range(ctx, 1); return err },
		"a prefetch":    func() error { _, err := with(SequenceConfig{Prefetch: -1}).Next(ctx); return err },
		"an age":        func() error { _, err := with(SequenceConfig{MaxAge: 5}).Next(ctx); return err },
		"no values":     func() error { _, err := c.Sequence("a").Take(ctx, 0); return err },
		"too many":      func() error { _, _, err := c.Sequence("a").Range(ctx, ids.MaxTake+1); return err },
		"a key":         func() error { _, err := c.Sequence("a").NextKeyed(ctx, "5"); return err },
		"a key of two":  func() error { _, err := c.Sequence("a").NextKeyed(ctx, "a b"); return err },
		"a long key":    func() error { _, err := c.Sequence("a").NextKeyed(ctx, strings.Repeat("k", 65)); return err },
		"an ended call": func() error {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			_, err := c.Sequence("a").Next(ended)
			return err
		},
	} {
		if call() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	c.Close()
	if _, err := c.Sequence("a").Next(ctx); !errors.Is(err, ids.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// Many goroutines ask three nodes, of which one is down and another refuses for a while. None gets a value twice, and
// none an error.
func TestSequenceGoesOverToOtherNodes(t *testing.T) {
	servers, addrs := nodes(t, 3)
	for i, s := range servers {
		s.SetNext("order", int64(i)<<40+1)
	}
	servers[0].Stop()
	servers[1].RefuseNext(20, "NOTREADY", "reason=confirming retry_after_ms=5000 wait")
	c := open(t, Config{Addrs: addrs})
	order := c.Sequence("order")
	var mu sync.Mutex
	seen := map[int64]bool{}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 200 {
				v, err := order.Next(by(t, long))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if seen[v] {
					t.Errorf("%d comes twice", v)
				}
				seen[v] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(seen) != 4000 {
		t.Errorf("%d values", len(seen))
	}
}

// A refusal that is about the sequence is not held against the node, nor against calls for other sequences.
func TestRefusalOfASequence(t *testing.T) {
	for text, want := range map[string]string{
		"NOTREADY reason=ceiling retry_after_ms=60000 wait": "ceiling",
		"EXHAUSTED reason=exhausted the end":                "exhausted",
		"ERR reason=no-sequence there is none":              "no-sequence",
		"ERR reason=frozen ask somebody":                    "frozen",
	} {
		t.Run(want, func(t *testing.T) {
			servers, addrs := nodes(t, 2)
			c := open(t, Config{Addrs: addrs})
			code, reason, _ := strings.Cut(text, " ")
			for _, s := range servers {
				s.Refuse(ids.Code(code), reason)
			}
			_, err := c.Sequence("order").Next(by(t, 900*time.Millisecond)) // less than a retry takes
			var reply *ids.ReplyError
			if !errors.As(err, &reply) || reply.Reason() != want {
				t.Fatalf("%v", err)
			}
			for _, s := range servers {
				s.Serve()
			}
			if v, err := c.Sequence("other").Next(by(t, long)); v != 1 || err != nil {
				t.Errorf("%d %v", v, err)
			}
		})
	}
}

// While one node is down and the other refuses for a moment, a call goes on trying the one that is up.
func TestSequenceWaitsForTheNodeThatIsUp(t *testing.T) {
	servers, addrs := nodes(t, 2)
	servers[1].Stop()
	servers[0].RefuseNext(3, "NOTREADY", "reason=no-block retry_after_ms=1 wait")
	c := open(t, Config{Addrs: addrs})
	if v, err := c.Sequence("order").Next(by(t, long)); v != 1 || err != nil {
		t.Errorf("%d %v", v, err)
	}
}

// No prefetched value comes twice, and they are thrown away when they are too old.
func TestPrefetchedValues(t *testing.T) {
	servers, addrs := nodes(t, 1)
	c := open(t, Config{Addrs: addrs})
	order := c.SequenceWith("order", SequenceConfig{Prefetch: 100, MaxAge: 50 * time.Millisecond})
	seen := map[int64]bool{}
	for range 1000 {
		v, err := order.Next(by(t, long))
		if err != nil || seen[v] {
			t.Fatalf("%d, twice: %v, %v", v, seen[v], err)
		}
		seen[v] = true
	}
	servers[0].SetNext("order", 1_000_000)
	until(t, "the old values are thrown away", func() bool {
		time.Sleep(60 * time.Millisecond)
		v, err := order.Next(by(t, long))
		return err == nil && v >= 1_000_000
	})
}

// A reply that is none of flaked ends the connection, and is never a value.
func TestMalformedRepliesToSequences(t *testing.T) {
	for _, reply := range []string{"x\n", "\n", "1 2\n", "-1\n", "01\n", "9223372036854775808\n", "1.5\n",
		strings.Repeat("1", 5000) + "\n", "1"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go answerAll(l, reply)
		c := open(t, Config{Addrs: []string{l.Addr().String()}, Timeout: 50 * time.Millisecond})
		if v, err := c.Sequence("a").Next(by(t, 100*time.Millisecond)); err == nil {
			t.Errorf("%.20q: %d", reply, v)
		}
		if reply == "1 2\n" {
			reply = "2 1\n"
		}
		if first, last, err := c.Sequence("a").Range(by(t, 100*time.Millisecond), 2); err == nil {
			t.Errorf("range %.20q: %d %d", reply, first, last)
		}
		c.Close()
		l.Close()
	}
}

// answerAll answers every line with reply, and ranges of "1 2" with the numbers the other way round.
func answerAll(l net.Listener, reply string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			in := bufio.NewScanner(conn)
			for in.Scan() {
				text := reply
				if strings.HasPrefix(in.Text(), "RANGE") && reply == "1 2\n" {
					text = "2 1\n"
				}
				if _, err := io.WriteString(conn, text); err != nil {
					return
				}
			}
		}()
	}
}
