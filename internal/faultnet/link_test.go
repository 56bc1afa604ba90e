package faultnet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience bounds waits for what should happen at once.
const patience = 20 * time.Second

// quiet is how long nothing has to come for nothing to be coming.
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

// accept is the target's end of the next connection.
func (e *ends) accept() *peer {
	e.t.Helper()
	_ = e.target.(*net.TCPListener).SetDeadline(time.Now().Add(patience))
	c, err := e.target.Accept()
	if err != nil {
		e.t.Fatal(err)
	}
	return e.peer("target", c)
}

// hears tells whether the target hears of a connection.
func (e *ends) hears() bool {
	_ = e.target.(*net.TCPListener).SetDeadline(time.Now().Add(quiet))
	c, err := e.target.Accept()
	if err == nil {
		c.Close()
	}
	return err == nil
}

// connected is both ends of a connection over which something has passed.
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

// peer is one end.
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

// ends waits for the connection's end, which must be an error, nil for EOF.
func (p *peer) ends(want error) {
	p.t.Helper()
	_ = p.SetReadDeadline(time.Now().Add(patience))
	if rest, err := io.ReadAll(p); len(rest) > 0 || !errors.Is(err, want) {
		p.t.Fatalf("%s: heard %q, %v, want %v", p.name, rest, err, want)
	}
}

func TestCarries(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	client, target := e.connected()
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	echoed := make(chan error, 1)
	go func() {
		_, err := io.Copy(target, target.Conn)
		echoed <- errors.Join(err, target.Conn.(*net.TCPConn).CloseWrite())
	}()
	go func() {
		_, _ = client.Write(sent) // what is missing will be missed
		_ = client.Conn.(*net.TCPConn).CloseWrite()
	}()
	_ = client.SetReadDeadline(time.Now().Add(patience))
	got, err := io.ReadAll(client)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("of %d bytes %d came back: %v", len(sent), len(got), err)
	}
	if err := <-echoed; err != nil {
		t.Error(err)
	}
}

// What each state lets through, on connections of before and of after, and
// that Heal delivers the rest.
func TestHolds(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name              string
		broken            func(*Link)
		requests, replies bool // pass
		dials             bool
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

// The end of a stream is held as its bytes are, and comes after them.
func TestHoldsEnds(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	polite, left := e.connected()
	rude, deserted := e.connected()
	e.link.BlackHole()
	polite.says("bye")
	polite.Close()
	_ = rude.Conn.(*net.TCPConn).SetLinger(0)
	rude.Close()
	left.hearsNothing()
	deserted.hearsNothing()
	e.link.Heal()
	left.hears("bye")
	left.ends(nil)
	deserted.ends(syscall.ECONNRESET)
}

// One end of two is no end: the other stream goes on.
func TestHalfClosed(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	client, target := e.connected()
	_ = client.Conn.(*net.TCPConn).CloseWrite()
	target.ends(nil)
	target.says("still here")
	client.hears("still here")
	target.Close()
	client.ends(nil)
}

func TestCut(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	client, target := e.connected()
	e.link.Cut()
	client.ends(nil)
	target.ends(nil)
	e.dial().ends(nil)
	if e.hears() {
		t.Error("the target has heard of a connection over a link that is cut")
	}
	e.link.Heal()
	e.connected()
}

func TestReset(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	client, target := e.connected()
	e.link.DropReplies()
	target.says("never to arrive")
	client.hearsNothing()
	e.link.Reset()
	client.ends(syscall.ECONNRESET)
	target.ends(syscall.ECONNRESET)
	e.connected()
}

// A target that is not there is told as a reset, and in a black hole not at all.
func TestTargetGone(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	e.target.Close()
	c, err := net.Dial("tcp", e.link.Addr())
	if err == nil {
		e.peer("client", c).ends(syscall.ECONNRESET)
	} else if !errors.Is(err, syscall.ECONNRESET) { // at once
		t.Error(err)
	}
	e.link.BlackHole()
	client := e.dial()
	client.hearsNothing()
	e.link.Heal()
	client.ends(syscall.ECONNRESET)
}

// A delay delays each chunk, and keeps them in order.
func TestDelay(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	client, target := e.connected()
	const d = 100 * time.Millisecond
	e.link.Delay(d, d/2)
	began := time.Now()
	var all string
	for i := range 50 {
		one := fmt.Sprintf("%d.", i)
		all += one
		client.says(one)
	}
	target.hears(all)
	target.says("pong")
	client.hears("pong")
	if took := time.Since(began); took < 2*d {
		t.Errorf("there and back took %s, each way is to take %s", took, d)
	}
	e.link.Delay(time.Hour, 0)
	e.link.Delay(0, 0)
	client.says("ping")
	target.hears("ping")
}

// Each connection has a pair of rewriters of its own, each way one, and they may
// keep something back.
func TestRewrite(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	before, there := e.connected()
	e.link.Rewrite(func() (requests, replies Rewriter) {
		var kept []byte
		return bytes.ToUpper, func(b []byte) []byte {
			kept = append(kept, b...)
			if !bytes.HasSuffix(kept, []byte(".")) {
				return nil
			}
			return kept
		}
	})
	for range 2 {
		client := e.dial()
		target := e.accept()
		client.says("ask")
		target.hears("ASK")
		target.says("ans")
		client.hearsNothing()
		target.says("wer.")
		client.hears("answer.")
	}
	before.says("ask")
	there.hears("ask")
	e.link.Rewrite(nil)
	e.connected()
}

// Close ends what is held up in any way, writes that nobody reads included.
func TestClosesInAnyState(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]func(*Link){
		"carrying": (*Link).Heal, "black hole": (*Link).BlackHole, "half open": (*Link).HalfOpen,
		"late": func(l *Link) { l.Delay(time.Hour, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnds(t)
			client, _ := e.connected()
			broken(e.link)
			e.dial()
			stuck := make(chan struct{})
			go func() {
				defer close(stuck)
				for {
					if _, err := client.Write(make([]byte, 1<<20)); err != nil {
						return
					}
				}
			}()
			// Some megabytes fit into what lies between; then it is stuck, or soon is.
			select {
			case <-stuck:
				t.Error("a write failed")
			case <-time.After(quiet):
			}
			e.link.Close()
			<-stuck
			e.link.Close()
		})
	}
}
