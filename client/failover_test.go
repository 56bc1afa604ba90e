package client

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/worker"
)

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

// logged counts the lines of a log.
type logged struct{ atomic.Int64 }

func (l *logged) Write(b []byte) (int, error) { l.Add(1); return len(b), nil }

// Two nodes take turns at failing. No call fails, and no ID or value comes twice.
func TestNoCallFailsWhileOneNodeWorks(t *testing.T) {
	servers, addrs := nodes(t, 2)
	for _, prefetch := range []int{0, 50} {
		t.Run(fmt.Sprint("prefetch ", prefetch), func(t *testing.T) {
			var log logged
			c := open(t, Config{Addrs: addrs, Prefetch: prefetch, Timeout: 100 * time.Millisecond,
				Logger: slog.New(slog.NewTextHandler(&log, nil))})
			order := c.Sequence(fmt.Sprint("order", prefetch))
			for i, s := range servers {
				s.SetNext(fmt.Sprint("order", prefetch), int64(i)<<40+1)
			}
			stop := make(chan struct{})
			var wg sync.WaitGroup
			var rounds atomic.Int64 // of three calls
			all, values := make([][]worker.ID, 16), make([][]worker.ID, 16)
			for i := range all {
				wg.Go(func() {
					for n := 0; ; n++ {
						select {
						case <-stop:
							return
						default:
						}
						ids, err := c.Take(by(t, long), 1+n%7)
						id, err2 := c.Next(by(t, long))
						v, err3 := order.Next(by(t, long))
						if err := errors.Join(err, err2, err3); err != nil {
							t.Errorf("call %d: %v", n, err)
							return
						}
						rounds.Add(1)
						all[i], values[i] = append(append(all[i], ids...), id), append(values[i], worker.ID(v))
						if len(all[i]) > 20_000 {
							return
						}
					}
				})
			}
			rng := rand.New(rand.NewPCG(1, 2))
			for i := range 30 {
				s := servers[i%2]
				switch rng.IntN(5) {
				case 0:
					s.Stop()
				case 1:
					s.Refuse(3, "NOTREADY", "")
				case 2:
					s.CutReplies(rng.IntN(100))
				case 3:
					s.Delay(time.Second)
				case 4:
					s.Refuse(20, "NOTREADY", "reason=confirming retry_after_ms=5000 wait")
				}
				enough := rounds.Load() + rng.Int64N(100)
				until(t, "calls go on during the fault", func() bool { return rounds.Load() >= enough })
				s.Serve()
				s.Start()
			}
			close(stop)
			wg.Wait()
			unique(t, all...)
			unique(t, values...)
			if log.Load() == 0 {
				t.Error("nothing went wrong: that was no test")
			}
		})
	}
}

// A handshake goes on after the call that needed it has failed, and serves a later call.
func TestHandshakeContinuesAfterItsCallFailed(t *testing.T) {
	failed := make(chan struct{})     // closed when calls have failed at both nodes
	var firstGET atomic.Pointer[bool] // whether its connection had begun before
	slow := func(nc net.Conn, begun bool) {
		defer nc.Close()
		in := bufio.NewReader(nc)
		for _, reply := range []string{"OK\n", "worker=0 cluster=a cluster_uuid=u\n", "7\n"} { // to AUTH, WORKER and GET
			request, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if reply == "OK\n" {
				<-failed
			}
			if request == "GET\n" {
				firstGET.CompareAndSwap(nil, &begun)
			}
			io.WriteString(nc, reply)
		}
	}
	var addrs []string
	var dialled atomic.Int32 // nodes
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addrs = append(addrs, l.Addr().String())
		var serving sync.WaitGroup
		serving.Go(func() {
			first := true
			for nc, err := l.Accept(); err == nil; nc, err = l.Accept() {
				begun := true // before the calls failed
				select {
				case <-failed:
					begun = false
				default:
				}
				serving.Go(func() { slow(nc, begun) })
				if first {
					first = false
					dialled.Add(1)
				}
			}
		})
		t.Cleanup(func() { l.Close(); serving.Wait() })
	}
	fail := sync.OnceFunc(func() { close(failed) })
	t.Cleanup(fail)
	c := open(t, Config{Addrs: addrs, Token: "secret", Timeout: long, Conns: 1})
	until(t, "both nodes are dialled", func() bool {
		if _, err := c.Next(by(t, 30*time.Millisecond)); err == nil {
			t.Fatal("an ID before the end of a handshake")
		}
		return dialled.Load() == 2
	})
	fail()
	until(t, "an ID", func() bool {
		_, err := c.Next(by(t, 30*time.Millisecond))
		return err == nil
	})
	if !*firstGET.Load() {
		t.Error("the client began a second handshake")
	}
}
