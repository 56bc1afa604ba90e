package e2e

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// link is the network between one node and ZooKeeper: it can be cut, and it
// can make the leader's clock look wrong, which for the node is the same as
// having a wrong clock itself.
type link struct {
	target string
	ln     net.Listener
	wg     sync.WaitGroup

	mu    sync.Mutex // guards what follows
	cut   bool
	ahead time.Duration
	conns map[net.Conn]struct{}
}

func newLink(t testing.TB, target string) *link {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{target: target, ln: ln, conns: map[net.Conn]struct{}{}}
	l.wg.Go(l.accept)
	t.Cleanup(func() {
		ln.Close()
		l.sever()
		l.wg.Wait()
	})
	return l
}

func (l *link) addr() string { return l.ln.Addr().String() }

// sever ends all connections, and hangs up on new ones.
func (l *link) sever() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for c := range l.conns {
		c.Close()
	}
}

func (l *link) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
}

// lie makes the leader's stamps later than they are, for connections made from
// now on.
func (l *link) lie(ahead time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ahead = ahead
}

// keep takes a connection in, unless the link is cut.
func (l *link) keep(conns ...net.Conn) (ahead time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return 0, false
	}
	for _, c := range conns {
		l.conns[c] = struct{}{}
	}
	return l.ahead, true
}

func (l *link) forget(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		delete(l.conns, c)
		c.Close()
	}
}

func (l *link) accept() {
	for {
		client, err := l.ln.Accept()
		if err != nil {
			return
		}
		l.wg.Go(func() { l.carry(client) })
	}
}

func (l *link) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", l.target)
	if err != nil {
		return
	}
	defer server.Close()
	ahead, ok := l.keep(client, server)
	if !ok {
		return
	}
	defer l.forget(client, server)
	x := &exchange{ahead: ahead.Milliseconds(), asked: map[int32]int32{}}
	var there sync.WaitGroup
	there.Go(func() {
		x.frames(server, client, x.request)
		server.Close()
	})
	x.frames(client, server, x.reply)
	client.Close()
	there.Wait()
}

// exchange is a connection's conversation in ZooKeeper's protocol, as far as
// it takes to find the stamps in it.
type exchange struct {
	ahead int64 // ms

	mu    sync.Mutex
	asked map[int32]int32 // which operation a request number is
}

// frames carries length-prefixed messages. The first one each way is the
// greeting, and has no header.
func (x *exchange) frames(to io.Writer, from io.Reader, look func([]byte)) {
	var length [4]byte
	for first := true; ; first = false {
		if _, err := io.ReadFull(from, length[:]); err != nil {
			return
		}
		n := binary.BigEndian.Uint32(length[:])
		if n > 4<<20 {
			return
		}
		message := make([]byte, n)
		if _, err := io.ReadFull(from, message); err != nil {
			return
		}
		if !first {
			look(message)
		}
		if _, err := to.Write(append(length[:], message...)); err != nil {
			return
		}
	}
}

const (
	opGetData = 4
	opSetData = 5
)

func (x *exchange) request(m []byte) {
	if len(m) < 8 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.asked[int32(binary.BigEndian.Uint32(m))] = int32(binary.BigEndian.Uint32(m[4:]))
}

// reply shifts ctime and mtime in the answers that carry a record's stat.
func (x *exchange) reply(m []byte) {
	const header = 4 + 8 + 4 // number, zxid, error
	if len(m) <= header || x.ahead == 0 {
		return
	}
	number := int32(binary.BigEndian.Uint32(m))
	x.mu.Lock()
	op := x.asked[number]
	delete(x.asked, number)
	x.mu.Unlock()
	stat := m[header:]
	switch op {
	case opGetData: // the data comes first
		n := int32(binary.BigEndian.Uint32(stat))
		stat = stat[4+max(0, n):]
	case opSetData:
	default:
		return
	}
	for _, at := range []int{16, 24} { // behind czxid and mzxid
		stamp := binary.BigEndian.Uint64(stat[at:])
		binary.BigEndian.PutUint64(stat[at:], stamp+uint64(x.ahead))
	}
}
