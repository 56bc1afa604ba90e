package faultnet

import (
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Link carries connections to a target, and breaks on demand. Its methods may be called by
// several goroutines. When a method returns, its effect applies to everything sent from then
// on.
type Link struct {
	target string
	ln     net.Listener
	wg     sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	state    state
	changed  chan struct{} // closed and replaced when state changes
	delay    time.Duration
	jitter   time.Duration
	conns    map[*conn]struct{}
	made     int    // number of connections so far
	greeting []byte // of the last session; see ExpireSession
	greeted  int    // number of the connection that greeting is of
}

// state is the fault that a link has. The zero state carries.
type state struct {
	hangUp     bool    // close new connections at once
	holdDials  bool    // accept new connections, and do not dial the target
	holdToward [2]bool // by direction: hold the data
}

// direction is one of the two directions of a connection.
type direction int

const (
	toTarget direction = iota
	toClient
)

// New listens on a free loopback port and carries connections from there to target, which has
// the form "host:port".
func New(target string) (*Link, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return Serve(ln, target), nil
}

// Serve is New on a given listener, of TCP or of TLS over TCP. Close closes the listener.
func Serve(ln net.Listener, target string) *Link {
	l := &Link{target: target, ln: ln, changed: make(chan struct{}), conns: map[*conn]struct{}{}}
	l.wg.Go(l.accept)
	return l
}

// Addr returns the address on which the link listens, "host:port".
func (l *Link) Addr() string { return l.ln.Addr().String() }

// Close closes the listener and all connections, and waits until its goroutines have ended.
func (l *Link) Close() {
	_ = l.ln.Close()
	l.Cut()
	l.wg.Wait()
}

// Heal ends the fault. Connections continue, and data that was held is delivered first.
// Connections that HalfOpen kept from the target are now carried to it.
func (l *Link) Heal() { l.become(state{}) }

// Cut closes all connections, and closes new ones at once.
func (l *Link) Cut() { l.become(state{hangUp: true}, (*conn).close) }

// Reset resets both sides of all present connections. New connections are carried.
func (l *Link) Reset() { l.become(state{}, (*conn).reset) }

// BlackHole holds the data of both directions, on old and new connections. Neither side is
// notified. New connections still reach the target.
func (l *Link) BlackHole() { l.become(state{holdToward: [2]bool{true, true}}) }

// HalfOpen is BlackHole, except that new connections do not reach the target either. The link
// accepts them and does nothing more.
func (l *Link) HalfOpen() {
	l.become(state{holdDials: true, holdToward: [2]bool{true, true}})
}

// DropRequests holds the data toward the target. The target executes no request of the client
// before the link heals, and the client waits.
func (l *Link) DropRequests() { l.become(state{holdToward: [2]bool{toTarget: true}}) }

// DropReplies holds the data toward the client. The target executes the client's requests, and
// the client receives no reply. Heal delivers the replies late, Reset loses them.
func (l *Link) DropReplies() { l.become(state{holdToward: [2]bool{toClient: true}}) }

// Delay delays data that arrives from now on, in both directions, by d plus a random time up to
// jitter. The order is kept. Delay(0, 0) ends the delay. Heal does not.
func (l *Link) Delay(d, jitter time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay, l.jitter = d, jitter
}

// become changes the state, and calls do for each present connection.
func (l *Link) become(s state, do ...func(*conn)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = s
	close(l.changed)
	l.changed = make(chan struct{})
	for c := range l.conns {
		for _, f := range do {
			f(c)
		}
	}
}

// look returns the state, and a channel that is closed when the state changes.
func (l *Link) look() (state, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state, l.changed
}

// due returns the time before which a chunk that arrives now must not be delivered: now plus
// the delay, or zero if there is no delay.
func (l *Link) due() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.delay <= 0 && l.jitter <= 0 {
		return time.Time{}
	}
	return time.Now().Add(l.delay + rand.N(l.jitter+1))
}

// acceptAgain is the pause after a failed accept. Accept fails while the process has no free
// descriptor. If the link gave up then, it would look like a link that was cut for good.
const acceptAgain = 10 * time.Millisecond

func (l *Link) accept() {
	for {
		client, err := l.ln.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(acceptAgain)
		default:
			l.wg.Go(func() { l.carry(client) })
		}
	}
}

// carry serves a connection of a client until it is over.
func (l *Link) carry(client net.Conn) {
	c := newConn(l, client)
	defer c.close()
	if !l.keep(c) {
		return
	}
	defer l.forget(c)
	if !c.connect() {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { c.pump(toTarget, c.target, client) })
	both.Go(func() { c.pump(toClient, client, c.target) })
	both.Wait()
}

// keep adds a connection to the link. It returns false if the link is cut.
func (l *Link) keep(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.hangUp {
		return false
	}
	l.conns[c] = struct{}{}
	l.made++
	c.number = l.made
	return true
}

func (l *Link) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}
