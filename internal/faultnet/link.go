package faultnet

import (
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Link carries connections to a target, and breaks. Its methods may be called
// by several goroutines, and count when they return for all that is sent from
// then on.
type Link struct {
	target string
	ln     net.Listener
	wg     sync.WaitGroup

	mu       sync.Mutex // guards what follows
	state    state
	changed  chan struct{} // closed, and replaced, at every change of the state
	delay    time.Duration
	jitter   time.Duration
	conns    map[*conn]struct{}
	greeting []byte // see ExpireSession
	rewrite  func() (requests, replies Rewriter)
}

// Rewriter is given what has come one way, in pieces as they came, and returns
// what is to go on. It may keep something back for the next time.
type Rewriter func([]byte) []byte

// state is what a link does. The zero state carries.
type state struct {
	hangUp     bool // on new connections
	holdDials  bool // new connections wait, and the target is not dialled
	holdToward [2]bool
}

// direction is which way bytes go.
type direction int

const (
	toTarget direction = iota
	toClient
)

// New listens on a loopback port of its own and carries what connects there to
// the target, "host:port".
func New(target string) (*Link, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return Serve(ln, target), nil
}

// Serve is New on a listener of the caller's, of TCP or of TLS over it. Close
// closes it.
func Serve(ln net.Listener, target string) *Link {
	l := &Link{target: target, ln: ln, changed: make(chan struct{}), conns: map[*conn]struct{}{}}
	l.wg.Go(l.accept)
	return l
}

// Addr is where the link listens.
func (l *Link) Addr() string { return l.ln.Addr().String() }

// Close ends everything and waits for it.
func (l *Link) Close() {
	_ = l.ln.Close()
	l.Cut()
	l.wg.Wait()
}

// Heal carries again. Connections that were held up go on, with what was held
// first; those that HalfOpen kept from the target are carried to it now.
func (l *Link) Heal() { l.become(state{}) }

// Cut ends all connections and hangs up on new ones.
func (l *Link) Cut() { l.become(state{hangUp: true}, (*conn).close) }

// Reset resets all connections there are, on both sides, and carries new ones.
func (l *Link) Reset() { l.become(state{}, (*conn).reset) }

// BlackHole lets nothing pass either way, on old connections and new ones, and
// nobody is told. New connections do reach the target.
func (l *Link) BlackHole() { l.become(state{holdToward: [2]bool{true, true}}) }

// HalfOpen is BlackHole, and the target does not hear of new connections: they
// are accepted, and that is all.
func (l *Link) HalfOpen() {
	l.become(state{holdDials: true, holdToward: [2]bool{true, true}})
}

// DropRequests lets nothing pass to the target: what the client asks is not
// done before the link heals, and it is left waiting.
func (l *Link) DropRequests() { l.become(state{holdToward: [2]bool{toTarget: true}}) }

// DropReplies lets nothing pass to the client: what it asks is done, and it
// does not hear of it. Heal delivers the replies late, Reset loses them.
func (l *Link) DropReplies() { l.become(state{holdToward: [2]bool{toClient: true}}) }

// Delay has whatever arrives from now on, either way, wait for d and up to
// jitter more, and keeps the order. 0 is none. It goes on until it is changed,
// Heal included.
func (l *Link) Delay(d, jitter time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay, l.jitter = d, jitter
}

// Rewrite has what passes over connections made from now on go through a pair
// of functions, which make returns for each connection; nil ends that.
func (l *Link) Rewrite(make func() (requests, replies Rewriter)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rewrite = make
}

// become changes the state, and does something to all connections of before.
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

// look is the state, and what tells when it changes.
func (l *Link) look() (state, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state, l.changed
}

// due is when a chunk that arrives now is to go on.
func (l *Link) due() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.delay <= 0 && l.jitter <= 0 {
		return time.Time{}
	}
	return time.Now().Add(l.delay + rand.N(l.jitter+1))
}

// acceptAgain is the pause after a failed accept: without descriptors a link
// that gave up would look like a cut for ever.
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

// carry is a connection's life.
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

// keep takes a connection in, unless the link is cut.
func (l *Link) keep(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.hangUp {
		return false
	}
	if l.rewrite != nil {
		c.rewrite[toTarget], c.rewrite[toClient] = l.rewrite()
	}
	l.conns[c] = struct{}{}
	return true
}

func (l *Link) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}
