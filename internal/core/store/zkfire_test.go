package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"

	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// The client gives up a silent server after Notice.Answer, and finds another one within
// Notice.Redial, whatever the session timeout is.
func testZKSilentServer(t *testing.T) {
	ens := zktest.Shared(t)
	silent, other := newLink(t, ens.Addrs()[0], nil), newLink(t, ens.Addrs()[0], nil)
	other.Cut()
	z := newZK(t, ZKConfig{
		Connect: silent.Addr() + "," + other.Addr(), SessionTimeout: 30 * time.Second, CallTimeout: 20 * time.Second})
	if err := z.EnsureRoot(t.Context(), parents...); err != nil {
		t.Fatal(err)
	}
	old := z.SessionID()
	silent.BlackHole() // new connections to it are swallowed, too
	other.Heal()
	z.SetNotice(limits.Notice{Answer: 300 * time.Millisecond, Redial: 800 * time.Millisecond})
	asked := time.Now()
	_, _, err := z.Get(t.Context(), "/")
	took := time.Since(asked)
	if !errors.Is(err, ErrUnreachable) || took < 300*time.Millisecond || took > 2*time.Second {
		t.Errorf("the silent server was given up after %s: %v", took, err)
	}
	z.SetNotice(limits.Notice{Answer: 10 * time.Second, Redial: 800 * time.Millisecond})
	if err := z.EnsureRoot(t.Context(), parents...); err != nil {
		t.Error(err)
	}
	if took := time.Since(asked); took > 3*time.Second {
		t.Errorf("the other server was found after %s", took)
	}
	if id := z.SessionID(); id == 0 || id == old {
		t.Errorf("session %#x before, %#x after", old, id)
	}
}

// A server that is starting accepts connections before it answers. The client makes the
// next attempt without waiting for the one before to end.
func testZKStartingServer(t *testing.T) {
	var conns atomic.Int32
	addr := fakeServer(t, func(c conn) {
		if conns.Inc() > 2 {
			_ = readFrame(c)
			_, _ = c.Write(greet(7, 30000))
		}
		swallow(c)
	})
	z := newZK(t, ZKConfig{Connect: addr, SessionTimeout: 30 * time.Second, CallTimeout: 20 * time.Second})
	z.SetNotice(limits.Notice{Answer: 10 * time.Second, Redial: 400 * time.Millisecond})
	eventually(t, dialTimeout/2, func() error {
		if id := z.SessionID(); id != 7 {
			return fmt.Errorf("session %#x after %d connections", id, conns.Load())
		}
		return nil
	})
}

// A slow server is not a silent one: while it sends anything, a call keeps its full
// deadline.
func testZKSlowServer(t *testing.T) {
	answer := func(xid, code int32) []byte {
		head := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 16}, uint32(xid))
		return binary.BigEndian.AppendUint32(append(head, make([]byte, 8)...), uint32(code))
	}
	addr := fakeServer(t, func(c conn) {
		_ = readFrame(c)
		_, _ = c.Write(greet(1, 30000))
		_ = readFrame(c) // the first request has xid 1
		pings := time.NewTicker(100 * time.Millisecond)
		defer pings.Stop()
		for range 12 {
			<-pings.C
			_, _ = c.Write(answer(-2, 0))
		}
		_, _ = c.Write(answer(1, -101)) // no such record
		swallow(c)
	})
	z := newZK(t, ZKConfig{Connect: addr, SessionTimeout: 30 * time.Second, CallTimeout: 20 * time.Second})
	z.SetNotice(limits.Notice{Answer: 500 * time.Millisecond, Redial: 800 * time.Millisecond})
	if _, _, err := z.Get(t.Context(), "/"); !errors.Is(err, ErrNoNode) {
		t.Error(err)
	}
	if id := z.SessionID(); id != 1 {
		t.Errorf("session %#x", id)
	}
}

// testZKUnderFire runs many callers while the connection comes and goes, for the race
// detector and the leak check.
func testZKUnderFire(t *testing.T) {
	connect, err := ParseConnect(zktest.Chroot(t, zktest.Shared(t)))
	if err != nil {
		t.Fatal(err)
	}
	link := newLink(t, connect.Hosts[0], nil)
	z := newZK(t, ZKConfig{Connect: link.Addr() + connect.Chroot, SessionTimeout: time.Second, DigestAuth: "a:b"})
	eventually(t, 10*time.Second, works(t, z))
	if _, err := z.Create(t.Context(), "/x", nil, Persistent); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 24 {
		wg.Go(func() {
			for ctx.Err() == nil {
				call, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
				_, err := z.Set(call, "/x", nil, AnyVersion)
				cancel()
				if err != nil && !errors.Is(err, ErrUnreachable) {
					t.Error(err)
				}
				z.SessionID()
			}
		})
	}
	for range 3 {
		lost := z.Changed()
		link.Cut()
		<-lost
		link.Heal()
		eventually(t, 15*time.Second, works(t, z))
	}
	link.Cut()
	start := time.Now()
	if err := z.Close(); err != nil || time.Since(start) > closeBound {
		t.Errorf("Close took %v: %v", time.Since(start), err)
	}
	cancel()
	wg.Wait()
}
