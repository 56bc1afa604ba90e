package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/atomic"

	"github.com/flaked/flaked/internal/core/limits"
)

// ZK is a Store in a real ZooKeeper.
//
// Run keeps the connection. Calls wait for a connection until their deadline, even before
// Run has begun. Each connection has its own session. After a reconnect, ZooKeeper deletes
// the ephemeral records of the old session when that session's timeout is over. Their
// holders must create them again.
//
// A call never outlives its connection: no request is sent again on the next one. A server
// may still apply a write a moment after the write has returned ErrUnreachable.
type ZK struct {
	cfg     ZKConfig
	connect Connect
	root    string
	acl     []zk.ACL
	secret  []zk.ACL // of records that others must not read
	notice  atomic.Pointer[limits.Notice]
	done    chan struct{}  // closed when Run has returned
	ending  sync.WaitGroup // clients that are ending
	// oldServer: a server knew no multi-read.
	oldServer atomic.Bool

	mu              sync.Mutex // guards what follows
	stop            context.CancelFunc
	closed          bool
	endErr          error     // of Run
	client          *zkClient // the present one, nil while there is no session
	connectedBefore bool      // there was a session before
	why             error     // why there is no connection
	denied          error     // why the credentials were refused
	changed         chan struct{}
}

var _ Store = (*ZK)(nil)

// WithZK calls f with a connection to ZooKeeper, and closes the connection when f returns. It returns the error of f,
// or else that of the connection.
func WithZK(ctx context.Context, cfg ZKConfig, f func(*ZK) error) error {
	z, err := NewZK(cfg)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	// Run must not end with ctx, so that an interrupted caller still closes its session.
	go func() { ended <- z.Run(context.WithoutCancel(ctx)) }()
	err = f(z)
	closed := z.Close()
	return cmp.Or(err, <-ended, closed)
}

// NewZK checks the configuration. Nothing is dialled before Run.
func NewZK(cfg ZKConfig) (*ZK, error) {
	cfg, connect, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	z := &ZK{
		cfg:     cfg,
		connect: connect,
		root:    connect.Chroot + "/flaked/" + cfg.Cluster,
		acl:     cfg.acl(cfg.WorldReadable),
		secret:  cfg.acl(false),
		done:    make(chan struct{}),
		changed: make(chan struct{}),
	}
	z.SetNotice(limits.Default())
	return z, nil
}

// Root returns the path of the cluster's records in ZooKeeper.
func (z *ZK) Root() string { return z.root }

// Identity returns the servers, sorted, and the chroot. It does not depend on the order of
// the servers in the connect string.
func (z *ZK) Identity() string { return z.connect.Identity() }

func (z *ZK) SessionID() int64 {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.client == nil {
		return 0
	}
	return z.client.session()
}

// Connected reports whether there is a session that calls can use now. A server that has
// fallen silent still counts as connected until go-zookeeper's read deadline passes, or
// until a call waits for its answer and ZK finds another server.
func (z *ZK) Connected() bool { return z.SessionID() != 0 }

// Changed returns a channel that is closed at the next change: the connection is made or
// lost, the credentials are refused, or the ZK is closed.
func (z *ZK) Changed() <-chan struct{} {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.changed
}

func (z *ZK) SetNotice(n limits.Notice) { z.notice.Store(&n) }

// Run keeps the connection until ctx is done or Close is called, and then ends the session.
// It returns when its goroutines have ended. It returns an error if a client has not ended
// within closeBound, or if Run is called twice.
func (z *ZK) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	z.mu.Lock()
	switch {
	case z.stop != nil:
		z.mu.Unlock()
		return errors.New("ZK.Run called twice")
	case z.closed:
		z.mu.Unlock()
		return nil
	}
	z.stop = cancel
	z.mu.Unlock()
	defer close(z.done)

	z.supervise(ctx)
	z.mu.Lock()
	z.closed = true
	z.wakeWaiters()
	z.mu.Unlock()
	z.ending.Wait()
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.endErr
}

// shortLived is the least time that a connection must last to be replaced without a pause.
// The pause prevents a tight loop of dialling when a server accepts connections and hangs
// up.
const shortLived = time.Second

// supervise makes one connection after the other until ctx is done.
func (z *ZK) supervise(ctx context.Context) {
	hosts := newHosts(z.connect.Hosts)
	for ctx.Err() == nil {
		c := z.findServer(ctx, hosts)
		began := time.Now()
		for c != nil {
			next := z.serve(ctx, c, hosts)
			z.lose(c, ctx.Err() != nil)
			c = next
		}
		if time.Since(began) > shortLived {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(z.notice.Load().Pause()):
		}
	}
}

// serve lets calls use a client until its connection ends, ctx is done, or another server
// answers faster. In the last case it returns the other server's client, otherwise nil.
func (z *ZK) serve(ctx context.Context, c *zkClient, hosts *zkHosts) *zkClient {
	if err := z.authenticate(ctx, c); err != nil {
		_ = c.socket.fail(err)
		return nil
	}
	z.use(c)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.socket.gone:
			return nil
		case <-c.silent:
			if next := z.outrun(ctx, c, hosts); next != nil {
				_ = c.socket.fail(errSilent)
				return next
			}
		}
	}
}

// outrun looks for another server while the present one is silent, and returns its client.
// It returns nil as soon as the present server sends anything, because a slow server is
// better than none. It also returns nil when ctx is done.
func (z *ZK) outrun(ctx context.Context, c *zkClient, hosts *zkHosts) *zkClient {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked := time.Now()
	found := make(chan *zkClient)
	go func() { found <- z.findServer(ctx, hosts) }()
	look := time.NewTicker(z.notice.Load().Answer / 10)
	defer look.Stop()
	for {
		select {
		case next := <-found:
			return next
		case <-c.socket.gone: // nothing left to fall back on
			return <-found
		case <-look.C:
			if c.socket.quietSince(asked) < time.Since(asked) {
				cancel()
				if next := <-found; next != nil {
					z.retire(next)
				}
				z.clearFailure()
				return nil
			}
		}
	}
}

// authenticate sends the credentials to the server, if DigestAuth is configured.
func (z *ZK) authenticate(ctx context.Context, c *zkClient) error {
	if z.cfg.DigestAuth == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, z.cfg.CallTimeout)
	defer cancel()
	result := make(chan error, 1)
	c.calls.Go(func() {
		var err error
		for _, pair := range z.cfg.users() {
			err = errors.Join(err, c.conn.AddAuth("digest", []byte(pair)))
		}
		result <- err
	})
	select {
	case err := <-result:
		return mapErr("authenticate", "as "+z.user(), err)
	case <-ctx.Done():
		return mapErr("authenticate", "as "+z.user(), ctx.Err())
	}
}

// use makes c the client that serves calls.
func (z *ZK) use(c *zkClient) {
	z.mu.Lock()
	again := z.connectedBefore
	z.client, z.connectedBefore, z.why, z.denied = c, true, nil, nil
	z.wakeWaiters()
	z.mu.Unlock()
	id := fmt.Sprintf("%#x", uint64(c.conn.SessionID()))
	if again {
		z.cfg.Logger.Info("reconnected to ZooKeeper", "session", id)
	} else {
		z.cfg.Logger.Info("connected to ZooKeeper", "servers", z.connect.String(), "session", id)
	}
}

// lose stops calls from using c, and ends c.
func (z *ZK) lose(c *zkClient, closing bool) {
	why := c.socket.failure()
	z.mu.Lock()
	used := z.client == c
	z.client = nil
	if closing {
		z.closed = true
	}
	if used {
		z.wakeWaiters()
	}
	z.mu.Unlock()
	z.noteFailure(why)
	if used && !closing {
		z.cfg.Logger.Warn("connection to ZooKeeper lost", "reason", reason(why))
	}
	z.retire(c)
}

// noteFailure records why there is no connection.
func (z *ZK) noteFailure(why error) {
	if why == nil {
		return
	}
	z.mu.Lock()
	z.why = why
	news := errors.Is(why, ErrDenied) && z.denied == nil
	if errors.Is(why, ErrDenied) {
		z.denied = why
	}
	if news {
		z.wakeWaiters()
	}
	z.mu.Unlock()
	if news {
		z.cfg.Logger.Error("ZooKeeper denied the credentials", "error", why)
	}
}

func (z *ZK) clearFailure() {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.why = nil
}

// wakeWaiters wakes the goroutines that wait for a change. mu is held.
func (z *ZK) wakeWaiters() {
	close(z.changed)
	z.changed = make(chan struct{})
}

// retire ends an unused client in the background, because a silent server must not delay
// the next connection.
func (z *ZK) retire(c *zkClient) {
	z.ending.Go(func() {
		if err := c.close(); err != nil {
			z.mu.Lock()
			z.endErr = err
			z.mu.Unlock()
			z.cfg.Logger.Warn("ZooKeeper client did not end in time", "error", err)
		}
	})
}

// Close ends the session, makes Run return and waits for it. From then on calls fail with
// ErrUnreachable.
func (z *ZK) Close() error {
	z.mu.Lock()
	stop := z.stop
	if !z.closed {
		z.closed = true
		z.wakeWaiters()
	}
	z.mu.Unlock()
	if stop == nil {
		return nil
	}
	stop()
	<-z.done
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.endErr
}
