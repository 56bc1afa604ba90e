package clients

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// fakeConn is a connection of a fake node. One goroutine reads requests and another one answers them in order, so that
// a request can arrive while an earlier one has no answer.
type fakeConn struct {
	n       *fake
	nc      net.Conn
	todo    chan func() (goOn bool)
	gone    chan struct{} // closed when no more requests can arrive
	authed  bool          // used by the reader
	foreign bool          // the client wants another cluster. Used by the reader
	used    bool          // by a request that asks for more than the cluster. Used by the reader
	mu      sync.Mutex    // guards waiting
	waiting int           // requests without an answer
	more    *sync.Cond    // waiting has grown, or the connection is gone
	ended   bool
}

func newFakeConn(n *fake, nc net.Conn) *fakeConn {
	c := &fakeConn{n: n, nc: nc, todo: make(chan func() bool, 100_000), gone: make(chan struct{}),
		authed: n.spec.Token == ""}
	c.more = sync.NewCond(&c.mu)
	return c
}

func (c *fakeConn) serve() {
	go func() {
		for act := range c.todo {
			if !act() {
				_ = c.nc.Close()
				return
			}
			c.count(-1)
		}
		_ = c.nc.Close()
	}()
	in := bufio.NewReader(c.nc)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			break
		}
		c.count(1)
		c.todo <- c.request(strings.TrimSuffix(line, "\n"))
	}
	close(c.todo)
	close(c.gone)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.more.Broadcast()
}

func (c *fakeConn) count(by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting += by
	c.more.Broadcast()
}

// await blocks until so many requests wait for an answer. It returns false if the client has closed the connection.
func (c *fakeConn) await(requests int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.waiting < requests && !c.ended {
		c.more.Wait()
	}
	return c.waiting >= requests
}

// request returns the function that answers a request.
func (c *fakeConn) request(line string) func() bool {
	words := strings.Split(line, " ")
	switch {
	case c.foreign: // the connection ends before this
		return func() bool { return false }
	case words[0] == "AUTH" && len(words) == 2:
		c.authed = c.authed || words[1] == c.n.spec.Token
		text := "OK"
		if !c.authed {
			c.use()
			text = "-WRONGPASS wrong token"
		}
		return func() bool { return (c.n.spec.Auth != "late" || c.await(2)) && c.say(text+"\n") }
	case !c.authed:
		c.use()
		return func() bool { return c.say("-NOAUTH send AUTH token first\n") }
	case words[0] == "WORKER" && len(words) <= 2:
		text, ours := c.n.who(strings.Join(words[1:], ""))
		c.foreign = !ours
		return func() bool { return c.say(text+"\n") && ours }
	}
	c.use()
	switch {
	case line == "READY":
		text := c.n.readiness()
		return func() bool { return c.say(text + "\n") }
	case line == "PING":
		return func() bool { return c.say("PONG\n") }
	case words[0] == "SEQ" && len(words) == 2:
		return func() bool { return c.say("name=" + words[1] + " mode=segment\n") }
	}
	serve := c.serving(words)
	if serve == nil {
		c.n.t.Errorf("node %s: no client sends the line %q: see the rules in main_test.go", c.n.letter, line)
		return func() bool { return c.say("-ERR not a line that a client sends\n") }
	}
	r := c.n.step(words[0] != "GET")
	return func() bool { return c.follow(r, serve) }
}

// use counts the connection, unless it only asks for the cluster.
func (c *fakeConn) use() {
	if !c.used {
		c.used = true
		c.n.used()
	}
}

// serving returns a function that makes the reply to a request for IDs or values, or nil if it is not such a request.
func (c *fakeConn) serving(words []string) func() string {
	last := words[len(words)-1]
	n, err := strconv.Atoi(last)
	counts := err == nil && strconv.Itoa(n) == last && n >= 1 && n <= 1_000_000
	many := counts && n >= 2 && n <= 10_000
	switch at := words[0] + strconv.Itoa(len(words)); {
	case at == "GET1" || at == "NEXT2" && last != "":
		return func() string { return c.numbers(1) }
	case (at == "GET2" || at == "NEXT3") && many:
		return func() string { return c.numbers(n) }
	case at == "NEXT3" && last != "" && (last[0] < '0' || last[0] > '9'):
		return func() string { return fmt.Sprintf("%d\n", c.n.takeKeyed(words[1], last)) }
	case at == "RANGE3" && counts:
		return func() string {
			first := c.n.take(n)
			return fmt.Sprintf("%d %d\n", first, first+int64(n)-1)
		}
	}
	return nil
}

func (c *fakeConn) numbers(n int) string {
	var text strings.Builder
	first := c.n.take(n)
	for i := range n {
		fmt.Fprintf(&text, "%d\n", first+int64(i))
	}
	return text.String()
}

// follow does a step of a script, and reports whether the connection stays open.
func (c *fakeConn) follow(r reply, serve func() string) bool {
	if r.AfterMs > 0 {
		select {
		case <-time.After(time.Duration(r.AfterMs) * time.Millisecond):
		case <-c.gone:
		}
	}
	switch {
	case r.Hang:
		<-c.gone
		return false
	case r.Close == "before" || !c.await(r.Waiting):
		return false
	}
	var text string
	switch {
	case r.Raw != nil:
		text = *r.Raw
	case r.Digits > 0:
		text = strings.Repeat("7", r.Digits)
	case r.Reply != nil:
		text = *r.Reply + "\n"
	default:
		text = serve()
	}
	if r.Cut != nil {
		c.say(text[:min(len(text), int(*r.Cut))])
		return false
	}
	return c.say(text) && r.Close != "after"
}

// say sends a text. An error means that the client has closed the connection, which is its right.
func (c *fakeConn) say(text string) bool {
	_, err := c.nc.Write([]byte(text))
	return err == nil
}
