package faultnet

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience limits waits for events that should happen at once.
const patience = 20 * time.Second

// quiet is the time after which the tests conclude that nothing is on its way.
const quiet = 50 * time.Millisecond

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func says(t *testing.T, c net.Conn, what string) {
	t.Helper()
	if _, err := io.WriteString(c, what); err != nil {
		t.Fatal(err)
	}
}

func hears(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	_ = c.SetReadDeadline(time.Now().Add(patience))
	if n, err := io.ReadFull(c, got); string(got[:n]) != want {
		t.Fatalf("heard %q, %v, want %q", got[:n], err, want)
	}
}

// hearsOnly checks that a text comes if it passes, and that nothing comes if it is held.
func hearsOnly(t *testing.T, c net.Conn, passes bool, what string) {
	t.Helper()
	if passes {
		hears(t, c, what)
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(quiet))
	var b [100]byte
	if n, err := c.Read(b[:]); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("heard %q, %v, want nothing", b[:n], err)
	}
}

// Each fault lets the directions of its row pass, on old and new connections, and Heal delivers
// the rest.
func TestFaultsHoldAndHealDelivers(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name              string
		broken            func(*Link)
		requests, replies bool // they pass
		dials             bool // new connections reach the target
	}{
		{"black hole", (*Link).BlackHole, false, false, true},
		{"half open", (*Link).HalfOpen, false, false, false},
		{"requests", (*Link).DropRequests, false, true, true},
		{"replies", (*Link).DropReplies, true, false, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			link, err := New(listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { listener.Close(); link.Close() })
			made := func(c net.Conn, err error) net.Conn {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() })
				return c
			}
			accept := func(within time.Duration) (net.Conn, error) {
				_ = listener.(*net.TCPListener).SetDeadline(time.Now().Add(within))
				return listener.Accept()
			}
			client := made(net.Dial("tcp", link.Addr()))
			target := made(accept(patience))
			says(t, client, "hello")
			hears(t, target, "hello")

			row.broken(link)
			says(t, client, "ask")
			says(t, target, "answer")
			hearsOnly(t, target, row.requests, "ask")
			hearsOnly(t, client, row.replies, "answer")
			young := made(net.Dial("tcp", link.Addr()))
			says(t, young, "young")
			var there net.Conn
			if row.dials {
				there = made(accept(patience))
				hearsOnly(t, there, row.requests, "young")
			} else if c, err := accept(quiet); err == nil {
				c.Close()
				t.Error("the target has heard of a new connection")
			}

			link.Heal()
			if !row.dials {
				there = made(accept(patience))
			}
			if !row.requests {
				hears(t, target, "ask")
				hears(t, there, "young")
			}
			if !row.replies {
				hears(t, client, "answer")
			}
			says(t, there, "at last")
			hears(t, young, "at last")
		})
	}
}
