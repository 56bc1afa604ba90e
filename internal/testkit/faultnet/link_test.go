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

// ends is a link and the target behind it.
type ends struct {
	t      *testing.T
	link   *Link
	target net.Listener
}

func newEnds(t *testing.T) *ends {
	t.Helper()
	target, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	link, err := New(target.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		target.Close()
		link.Close()
	})
	return &ends{t, link, target}
}

func (e *ends) dial() *peer {
	e.t.Helper()
	c, err := net.Dial("tcp", e.link.Addr())
	if err != nil {
		e.t.Fatal(err)
	}
	return e.peer("client", c)
}

// accept returns the target's end of the next connection.
func (e *ends) accept() *peer {
	e.t.Helper()
	_ = e.target.(*net.TCPListener).SetDeadline(time.Now().Add(patience))
	c, err := e.target.Accept()
	if err != nil {
		e.t.Fatal(err)
	}
	return e.peer("target", c)
}

// hears reports whether a connection reaches the target within the quiet time.
func (e *ends) hears() bool {
	_ = e.target.(*net.TCPListener).SetDeadline(time.Now().Add(quiet))
	c, err := e.target.Accept()
	if err == nil {
		c.Close()
	}
	return err == nil
}

// connected returns both ends of a new connection, after each end has received data.
func (e *ends) connected() (client, target *peer) {
	e.t.Helper()
	client = e.dial()
	target = e.accept()
	client.says("hello")
	target.hears("hello")
	target.says("welcome")
	client.hears("welcome")
	return client, target
}

// peer is one end of a connection.
type peer struct {
	t    *testing.T
	name string
	net.Conn
}

func (e *ends) peer(name string, c net.Conn) *peer {
	e.t.Cleanup(func() { c.Close() })
	return &peer{e.t, name, c}
}

func (p *peer) says(what string) {
	p.t.Helper()
	if _, err := io.WriteString(p, what); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
}

func (p *peer) hears(want string) {
	p.t.Helper()
	got := make([]byte, len(want))
	_ = p.SetReadDeadline(time.Now().Add(patience))
	if n, err := io.ReadFull(p, got); string(got[:n]) != want {
		p.t.Fatalf("%s: heard %q, %v, want %q", p.name, got[:n], err, want)
	}
}

func (p *peer) hearsNothing() {
	p.t.Helper()
	_ = p.SetReadDeadline(time.Now().Add(quiet))
	var b [100]byte
	if n, err := p.Read(b[:]); !errors.Is(err, os.ErrDeadlineExceeded) {
		p.t.Fatalf("%s: heard %q, %v, want nothing", p.name, b[:n], err)
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
			e := newEnds(t)
			client, target := e.connected()
			row.broken(e.link)
			check := func(p *peer, passes bool, what string) (later string) {
				t.Helper()
				if passes {
					p.hears(what)
					return ""
				}
				p.hearsNothing()
				return what
			}
			client.says("ask")
			target.says("answer")
			asked, answered := check(target, row.requests, "ask"), check(client, row.replies, "answer")

			young := e.dial()
			young.says("young")
			var there *peer
			asks := "young"
			if row.dials {
				there = e.accept()
				asks = check(there, row.requests, "young")
			} else if e.hears() {
				t.Error("the target has heard of a new connection")
			}

			e.link.Heal()
			target.hears(asked)
			client.hears(answered)
			if !row.dials {
				there = e.accept()
			}
			there.hears(asks)
			there.says("at last")
			young.hears("at last")
		})
	}
}
