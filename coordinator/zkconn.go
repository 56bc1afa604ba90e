package coordinator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"
)

// zkClient is one go-zookeeper connection with what it takes to end it: the
// library dials, waits and retries without a context, and its Close returns
// before its loop has.
type zkClient struct {
	conn   *zk.Conn
	ctx    context.Context // done: dial no more
	cancel context.CancelFunc
	ended  chan struct{}  // closed when the library's loop has ended
	poke   chan struct{}  // a hint, of capacity 1, that the state has changed
	calls  sync.WaitGroup // calls running inside the library; Add under ZK.mu

	mu     sync.Mutex // guards what follows
	socket net.Conn   // the latest, so that it can be cut
	cut    bool
	err    error // why there is no connection; nil while there is one
}

// closeBound is how long ending a client may take. The library's Close takes
// up to 3 s when the server is silent.
const closeBound = 5 * time.Second

// newZKClient starts a client; it dials in the background. Until it knows
// better, why is its reason for not being connected.
func newZKClient(cfg *ZKConfig, names []string, why error) (*zkClient, error) {
	ctx, cancel := context.WithCancel(context.Background())
	c := &zkClient{
		ctx:    ctx,
		cancel: cancel,
		ended:  make(chan struct{}),
		poke:   make(chan struct{}, 1),
		err:    why,
	}
	// One server's share of the time in which another has to be found.
	attempt := min(max(cfg.SessionTimeout/3, 500*time.Millisecond), 5*time.Second)
	hosts := &zkHosts{
		ctx:     ctx,
		names:   names,
		lookup:  net.DefaultResolver.LookupHost,
		timeout: attempt,
		known:   make(map[string][]string),
	}
	dial := func(network, _ string, _ time.Duration) (net.Conn, error) {
		conn, err := c.dial(network, hosts.current, cfg.TLS, attempt)
		if err != nil {
			c.report(err)
			return nil, err
		}
		return conn, nil
	}
	conn, events, err := zk.Connect(names, cfg.SessionTimeout,
		zk.WithHostProvider(hosts),
		zk.WithDialer(dial),
		zk.WithLogger(debugLogger{cfg.Logger}),
		zk.WithMaxBufferSize(maxReply))
	if err != nil {
		cancel()
		return nil, fmt.Errorf("coordinator: start ZooKeeper client: %w", err)
	}
	c.conn = conn
	go func() {
		// Six events fit the channel and the rest is dropped, so what they
		// say does not count: look at State. That it is closed does.
		for range events {
			select {
			case c.poke <- struct{}{}:
			default:
			}
		}
		close(c.ended)
	}()
	return c, nil
}

// dial opens the connection, TLS included, and gives the greeting what is
// left of the attempt's time.
func (c *zkClient) dial(network string, to zkTarget, config *tls.Config, attempt time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(c.ctx, attempt)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if to.err != nil {
		return nil, to.err
	}
	socket, err := new(net.Dialer).DialContext(ctx, network, to.addr)
	if err != nil {
		return nil, err
	}
	if config != nil {
		if config.ServerName == "" {
			config = config.Clone()
			config.ServerName, _, _ = net.SplitHostPort(to.name)
		}
		secured := tls.Client(socket, config)
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = socket.Close()
			return nil, fmt.Errorf("TLS with %s: %w", to.label(), err)
		}
		socket = secured
	}
	by, _ := ctx.Deadline()
	conn := &wireConn{Conn: socket, by: by, report: func(err error) {
		if err != nil {
			err = fmt.Errorf("%s: %w", to.label(), err)
		}
		c.report(err)
	}}

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		_ = socket.Close()
		return nil, net.ErrClosed
	}
	c.socket = conn
	return conn, nil
}

// report keeps why there is no connection, unless we cut it; nil says that there
// is one. Only the dialer and the connection report: the library's state and its
// answers arrive later, when the connection may already have given its reason.
func (c *zkClient) report(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.cut {
		c.err = err
	}
}

func (c *zkClient) lastError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// session is the id of the present session, 0 while there is no connection.
func (c *zkClient) session() int64 {
	if c.conn.State() != zk.StateHasSession {
		return 0
	}
	return c.conn.SessionID()
}

// sever ends the present connection and keeps the library from making another.
func (c *zkClient) sever() {
	c.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	if c.socket != nil {
		_ = c.socket.Close()
	}
}

// close ends the session, where there is one, and returns when the library's
// goroutines and the calls inside it have ended, or closeBound is over. No
// call may be added meanwhile.
func (c *zkClient) close() error {
	timer := time.NewTimer(closeBound)
	defer timer.Stop()
	if c.session() == 0 {
		c.sever() // nobody to take leave of
	}
	quiet := make(chan struct{})
	go func() {
		c.conn.Close() // also fails the calls inside
		c.sever()
		<-c.ended
		c.calls.Wait()
		close(quiet)
	}()
	select {
	case <-quiet:
		return nil
	case <-timer.C:
		return errors.New("coordinator: the ZooKeeper client has not ended within " + closeBound.String())
	}
}

// debugLogger takes go-zookeeper's log, which has a line for every dial.
type debugLogger struct{ log hclog.Logger }

func (l debugLogger) Printf(format string, args ...any) {
	if l.log.IsDebug() {
		l.log.Debug(fmt.Sprintf(format, args...))
	}
}
