package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/worker"
)

func TestFailoverByCode(t *testing.T) {
	for _, code := range []ids.Code{ids.NOTREADY, ids.CLOCK, ids.FENCED, ids.BUSY, ids.EXHAUSTED, ids.NOAUTH} {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			servers, addrs := nodes(t, 2)
			c := open(t, Config{Addrs: addrs})
			servers[0].Refuse(code, "for a test")
			for range 3 {
				if id, err := c.Next(by(t, long)); err != nil || of(id) != 1 {
					t.Fatalf("%d, %v", id, err)
				}
			}
			if n := servers[0].Requests(); n != 1 {
				t.Errorf("it was asked %d times", n)
			}
		})
	}
}

func TestBadRequestIsNotRetried(t *testing.T) {
	servers, addrs := nodes(t, 2)
	servers[0].Refuse("ERR", "a count must be 1 to 7, digits only")
	c := open(t, Config{Addrs: addrs})
	_, err := c.Next(by(t, long))
	var reply *ids.ReplyError
	if !errors.As(err, &reply) || reply.Code != "ERR" || reply.Addr != addrs[0] || errors.Is(err, ids.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if a, b := servers[0].Requests(), servers[1].Requests(); a != 1 || b != 0 {
		t.Errorf("%d and %d requests", a, b)
	}
	servers[0].Serve()
	if id, err := c.Next(by(t, long)); err != nil || of(id) != 0 {
		t.Errorf("afterwards: %d, %v", id, err)
	}
}

// A node that answers CLOCK is not asked for as long as it says, and is asked again then.
func TestClientWaitsAsLongAsClockRefusalSays(t *testing.T) {
	servers, addrs := nodes(t, 2)
	c := open(t, Config{Addrs: addrs})
	const alone = 300 * time.Millisecond
	servers[0].RefuseNext(1, "CLOCK", fmt.Sprintf("clock went back behind_ms=%d retry_after_ms=%d", alone/1e6,
		alone/1e6))
	began := time.Now()
	for {
		id, err := c.Next(by(t, long))
		if err != nil {
			t.Fatal(err)
		}
		if of(id) == 0 {
			break
		}
	}
	if took := time.Since(began); took < alone {
		t.Errorf("it was asked again after %v", took)
	}

	// Without another node the same holds. A call that cannot be answered before its
	// deadline fails at once.
	alone2 := open(t, Config{Addrs: addrs[:1]})
	servers[0].RefuseNext(1, "CLOCK", "retry_after_ms=3600000")
	began = time.Now()
	_, err := alone2.Next(by(t, time.Second))
	if took := time.Since(began); !errors.Is(err, ids.ErrUnavailable) || code(err) != "CLOCK" ||
		took > 900*time.Millisecond {
		t.Errorf("%v after %v", err, took)
	}
	before := servers[0].Requests()
	if _, err := alone2.Next(by(t, time.Second)); !errors.Is(err, ids.ErrUnavailable) || code(err) != "CLOCK" ||
		servers[0].Requests() != before {
		t.Errorf("%v", err)
	}
}

// A reply is cut after any number of bytes. The retry is answered, and no ID comes twice.
func TestCutReplyIsRetriedWithoutDuplicates(t *testing.T) {
	for n := range 12 {
		servers, addrs := nodes(t, 2)
		servers[0].SetLast(1000) // IDs of four digits
		c := open(t, Config{Addrs: addrs})
		first, err := c.Take(by(t, long), 2)
		if err != nil {
			t.Fatal(err)
		}
		servers[0].CutReplies(n)
		second, err := c.Take(by(t, long), 3)
		if err != nil {
			t.Fatalf("cut after %d bytes: %v", n, err)
		}
		if of(second[0]) != 1 {
			t.Errorf("cut after %d bytes, %v is what the second node has", n, second)
		}
		unique(t, first, second)
		c.Close()
	}
}

func TestReconnects(t *testing.T) {
	servers, addrs := nodes(t, 1)
	c := open(t, Config{Addrs: addrs})
	var all []worker.ID
	for range 3 {
		id, err := c.Next(by(t, long))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, id)
		servers[0].Stop()
		if _, err := c.Next(by(t, 100*time.Millisecond)); !errors.Is(err, ids.ErrUnavailable) ||
			!strings.Contains(err.Error(), "connection refused by "+addrs[0]) {
			t.Fatalf("with no node: %v", err)
		}
		waiting := make(chan error)
		go func() {
			id, err := c.Next(by(t, long))
			all = append(all, id)
			waiting <- err
		}()
		servers[0].Start()
		if err := <-waiting; err != nil {
			t.Fatal(err)
		}
		// The node restarts while the client is idle. The next call does not fail.
		servers[0].Stop()
		servers[0].Start()
	}
	unique(t, all)
	if !slices.IsSorted(all) {
		t.Errorf("%v", all)
	}
}

func TestSilentNodeFailsOverBeforeTheDeadline(t *testing.T) {
	servers, addrs := nodes(t, 2)
	servers[0].Delay(time.Hour)
	c := open(t, Config{Addrs: addrs})
	// The deadline is shorter than Timeout. The silent node must not use all of it.
	if id, err := c.Next(by(t, 400*time.Millisecond)); err != nil || of(id) != 1 {
		t.Errorf("%d, %v", id, err)
	}

	servers[1].Delay(time.Hour)
	impatient := open(t, Config{Addrs: addrs, Patience: 100 * time.Millisecond})
	if _, err := impatient.Next(t.Context()); !errors.Is(err, ids.ErrUnavailable) {
		t.Errorf("without a deadline: %v", err)
	}
	began := time.Now()
	_, err := c.Next(by(t, 200*time.Millisecond))
	if took := time.Since(began); !errors.Is(err, ids.ErrUnavailable) || took > 5*time.Second {
		t.Errorf("%v after %v", err, took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := c.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := c.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
}

// Calls with short deadlines do not make a node count as failed that is only slow, like a
// busy machine.
func TestShortDeadlinesDoNotFailASlowNode(t *testing.T) {
	for n := range 3 {
		servers, addrs := nodes(t, n+1)
		c := open(t, Config{Addrs: addrs})
		for _, s := range servers {
			s.Delay(100 * time.Millisecond)
		}
		for range 3 {
			if _, err := c.Next(by(t, 10*time.Millisecond)); !errors.Is(err, ids.ErrUnavailable) {
				t.Errorf("%d nodes: %v", n+1, err)
			}
		}
		for _, s := range servers {
			s.Serve()
		}
		if _, err := c.Next(by(t, 5*time.Second)); err != nil {
			t.Errorf("%d nodes: %v", n+1, err)
		}
	}
}

// lines counts the lines of a log.
type lines struct{ atomic.Int64 }

func (l *lines) Write(b []byte) (int, error) { l.Add(1); return len(b), nil }

// Two nodes take turns at failing. No call fails, and no ID comes twice.
func TestNoCallFailsWhileOneNodeWorks(t *testing.T) {
	servers, addrs := nodes(t, 2)
	for _, prefetch := range []int{0, 50} {
		t.Run(fmt.Sprint("prefetch ", prefetch), func(t *testing.T) {
			var log lines
			c := open(t, Config{Addrs: addrs, Prefetch: prefetch, Timeout: 100 * time.Millisecond,
				Logger: slog.New(slog.NewTextHandler(&log, nil))})
			stop := make(chan struct{})
			var wg sync.WaitGroup
			all := make([][]worker.ID, 16)
			for i := range all {
				wg.Go(func() {
					for n := 0; ; n++ {
						select {
						case <-stop:
							return
						default:
						}
						ids, err := c.Take(by(t, long), 1+n%7)
						if n%2 == 0 {
							var id worker.ID
							id, err = c.Next(by(t, long))
							ids = append(ids, id)
						}
						if err != nil {
							t.Errorf("call %d: %v", n, err)
							return
						}
						all[i] = append(all[i], ids...)
						if len(all[i]) > 20_000 {
							return
						}
					}
				})
			}
			rng := rand.New(rand.NewPCG(1, 2))
			for i := range 30 {
				s := servers[i%2]
				switch rng.IntN(4) {
				case 0:
					s.Stop()
				case 1:
					s.RefuseNext(3, "NOTREADY", "")
				case 2:
					s.CutReplies(rng.IntN(100))
				case 3:
					s.Delay(time.Second)
				}
				time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
				s.Serve()
				s.Start()
			}
			close(stop)
			wg.Wait()
			unique(t, all...)
			if log.Load() == 0 {
				t.Error("nothing went wrong: that was no test")
			}
		})
	}
}
