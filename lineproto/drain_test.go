package lineproto

import (
	"errors"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flaked/flaked/worker"
)

// TestDrainIdle: idle connections end at once, and unfinished lines are not answered.
func TestDrainIdle(t *testing.T) {
	wires(t, func(t *testing.T, w wire) {
		r := w.serve(t, Config{DrainTimeout: 20 * time.Second})
		a, b := r.dial(t), r.dial(t)
		a.send("GET\nGET")
		a.want("1000")
		b.send("PING\n")
		b.want("PONG")
		start := time.Now()
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d > 10*time.Second {
			t.Fatalf("took %v", d)
		}
		a.wantEOF()
		b.wantEOF()
		if _, err := net.Dial(r.network, r.addr); err == nil {
			t.Fatal("still listening")
		}
		if c := r.Counters(); c.ConnsOpen != 0 || c.ConnsIdle != 0 {
			t.Fatalf("%+v", c)
		}
	})
}

// dry returns a fakeBackend that makes no IDs until release is called. reached gets a value when
// it was asked for one.
func dry() (b *fakeBackend, reached chan struct{}, release func()) {
	reached = make(chan struct{}, 1)
	var released atomic.Bool
	b = &fakeBackend{tick: func(n int) (k int, p worker.Pause) {
		select {
		case reached <- struct{}{}:
		default:
		}
		if !released.Load() {
			p.For = time.Millisecond
		}
		return n, p
	}}
	return b, reached, func() { released.Store(true) }
}

// TestDrainAnswers: requests that a server has received are answered, although it is
// told to end while they wait for IDs or for a sequence.
func TestDrainAnswers(t *testing.T) {
	wires(t, func(t *testing.T, w wire) {
		b, reached, release := dry()
		f := asleep()
		r := w.serve(t, Config{Backend: b, Sequences: f, DrainTimeout: 20 * time.Second})
		c, asks, idle := r.dial(t), r.dial(t), r.dial(t)
		asks.send("NEXT slow\nPING\nNEXT slow\n")
		until(t, "it waits", func() bool { return f.waiting() == 1 })
		idle.send("PING\n")
		idle.want("PONG")
		const n = 250 // fits one read
		c.send(strings.Repeat("GET\n", n))
		<-reached
		r.cancel()
		idle.wantEOF() // draining has reached the connections
		release()
		for i := range n {
			c.want(strconv.Itoa(1000 + i))
		}
		f.wakeAll()
		asks.want("1")
		asks.want("PONG")
		asks.want("2")
		for _, c := range []*client{c, asks} {
			c.wantEOF()
			c.Close() // else Serve waits for it
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestDrainTimeout: neither a Backend that makes no IDs nor a client that
// does not read keeps Serve from returning.
func TestDrainTimeout(t *testing.T) {
	limitWires(t, func(t *testing.T, w wire) {
		b, reached, _ := dry()
		r := w.serve(t, Config{Backend: b, DrainTimeout: 100 * time.Millisecond})
		for range 5 {
			r.dial(t).send("GET\n")
		}
		<-reached
		c := r.dial(t)
		c.send("PING\n")
		c.want("PONG")
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		if c := r.Counters(); c.ConnsOpen != 0 {
			t.Fatalf("%+v", c)
		}

		r = w.serve(t, Config{DrainTimeout: 100 * time.Millisecond})
		c = r.dial(t)
		c.send(strings.Repeat("GET 10000\n", 1000)) // and does not read
		for r.Counters().IDs == 0 {
			runtime.Gosched()
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		if c := r.Counters(); c.ConnsOpen != 0 {
			t.Fatalf("%+v", c)
		}
	})
}

// TestDrainUnderLoad: every client that keeps asking gets whole batches and then an
// orderly end, never a reset that takes replies with it. A client that this machine
// stops for as long as drainGrace counts as idle. It may find its connection gone when
// it goes on.
func TestDrainUnderLoad(t *testing.T) {
	wires(t, func(t *testing.T, w wire) {
		r := w.serve(t, Config{})
		const clients = 8
		errs, started := make(chan error, clients), make(chan struct{}, clients)
		for range clients {
			c := r.dial(t)
			go func() {
				defer c.Close()
				batch := strings.Repeat("GET\n", 10)
				ready := time.Now()
				for asked := 0; ; asked++ {
					_, err := c.Write([]byte(batch))
					stalled := time.Since(ready) >= drainGrace/2
					if err != nil && !stalled {
						errs <- err
						return
					}
					ready = time.Now()
					for i := range 10 {
						line, err := c.r.ReadString('\n')
						if err != nil {
							if line != "" || i != 0 {
								err = errors.New("a batch was answered in part")
							} else if stalled {
								err = io.EOF
							}
							errs <- err
							return
						}
					}
					if asked == 0 {
						started <- struct{}{}
					}
				}
			}()
		}
		for range clients {
			<-started
		}
		r.cancel()
		for range clients {
			if err := <-errs; err == nil || err.Error() != "EOF" {
				t.Errorf("got %v, want EOF", err)
			}
		}
		r.stop()
	})
}
