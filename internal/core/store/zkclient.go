package store

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"
)

// zkClient is one go-zookeeper client on one connection, with the state needed to end it.
//
// The library could reconnect by itself, but then it pauses for a second between rounds and
// sends requests that were queued before. A ZooKeeper whose data are older than the client
// has seen refuses the client for ever. So a zkClient and all its calls end with its
// connection. The next connection has a new client and a new session.
type zkClient struct {
	conn   *zk.Conn
	socket *wireConn
	ended  chan struct{}  // closed when the library's loop has ended
	wake   chan struct{}  // capacity 1: the library's state has changed
	silent chan struct{}  // capacity 1: a call has had no answer for a while
	calls  sync.WaitGroup // calls running inside the library; Add under ZK.mu
}

// closeBound bounds the time that ending a client may take. The library's Close takes up to
// 3 s when the server is silent.
const closeBound = 5 * time.Second

// newZKClient starts a client on an open connection. The client has a session from the
// server's greeting until socket.gone is closed.
func newZKClient(cfg *ZKConfig, socket *wireConn, label string) (*zkClient, error) {
	c := &zkClient{
		socket: socket, ended: make(chan struct{}), wake: make(chan struct{}, 1), silent: make(chan struct{}, 1),
	}
	conn, events, err := zk.Connect([]string{label}, cfg.SessionTimeout,
		zk.WithHostProvider(&oneHost{label: label}),
		zk.WithDialer(c.dialOnce()),
		zk.WithEventCallback(func(zk.Event) { signal(c.wake) }),
		zk.WithLogger(debugLogger{cfg.Logger}),
		zk.WithMaxBufferSize(maxReply))
	if err != nil {
		_ = socket.Close()
		return nil, fmt.Errorf("start ZooKeeper client: %w", err)
	}
	c.conn = conn
	go func() {
		for range events { // the callback handled them
		}
		close(c.ended)
	}()
	return c, nil
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// dialOnce returns a dialer that hands the connection to the library once. Every later dial
// fails.
func (c *zkClient) dialOnce() zk.Dialer {
	used := false
	return func(string, string, time.Duration) (net.Conn, error) {
		if used {
			return nil, net.ErrClosed
		}
		used = true
		return c.socket, nil
	}
}

// oneHost is a zk.HostProvider for one connection. From the second time on, Next returns
// true. The library then fails its queued requests and pauses, and during the pause it
// notices Close.
type oneHost struct {
	label string
	used  bool
}

func (h *oneHost) Init([]string) error { return nil }
func (h *oneHost) Len() int            { return 1 }
func (h *oneHost) Connected()          {}
func (h *oneHost) Next() (string, bool) {
	again := h.used
	h.used = true
	return h.label, again
}

// session returns the id of the session, 0 before the greeting and after the connection is
// lost.
func (c *zkClient) session() int64 {
	select {
	case <-c.socket.gone:
		return 0
	default:
	}
	if c.conn.State() != zk.StateHasSession {
		return 0
	}
	return c.conn.SessionID()
}

// close ends the session, if there is one. It returns nil when the library's goroutines and
// the calls inside it have ended, and an error if that takes longer than closeBound. No
// call may be added meanwhile.
func (c *zkClient) close() error {
	timer := time.NewTimer(closeBound)
	defer timer.Stop()
	if c.session() == 0 {
		_ = c.socket.Close() // there is no session to end
	}
	quiet := make(chan struct{})
	go func() {
		c.conn.Close() // also fails the calls inside
		_ = c.socket.Close()
		<-c.ended
		c.calls.Wait()
		close(quiet)
	}()
	select {
	case <-quiet:
		return nil
	case <-timer.C:
		return errors.New("the ZooKeeper client did not end within " + closeBound.String())
	}
}

// debugLogger logs go-zookeeper's messages at debug level, because the library logs every
// dial.
type debugLogger struct{ log hclog.Logger }

func (l debugLogger) Printf(format string, args ...any) {
	if l.log.IsDebug() {
		l.log.Debug(fmt.Sprintf(format, args...))
	}
}
