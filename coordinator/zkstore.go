package coordinator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// ZK is the Store in a real ZooKeeper.
//
// Run keeps the connection: it connects, reconnects, and starts a new client
// when the present one has had no connection for one session timeout, as one
// that has seen later data than a wiped or restored ZooKeeper holds is turned
// away for ever. Calls wait for the connection until their deadline, also
// before Run has begun. The session changes with each new client and after
// an expiry; ephemeral records are then gone and their makers' to make again.
//
// A write that ended in ErrUnreachable may be applied as late as one session
// timeout after the call has returned.
type ZK struct {
	cfg     ZKConfig
	connect Connect
	root    string
	acl     []zk.ACL
	done    chan struct{} // closed when Run has returned

	mu      sync.Mutex // guards what follows
	stop    context.CancelFunc
	closed  bool
	endErr  error     // of Run
	client  *zkClient // the latest
	sid     int64     // the session calls may use, 0 for none
	lastSID int64     // the session there was last
	denied  error     // why the credentials were refused
	changed chan struct{}
}

var _ Store = (*ZK)(nil)

// NewZK checks the configuration. Nothing is dialled before Run.
func NewZK(cfg ZKConfig) (*ZK, error) {
	cfg, connect, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &ZK{
		cfg:     cfg,
		connect: connect,
		root:    connect.Chroot + "/flaked/" + cfg.Cluster,
		acl:     cfg.acl(),
		done:    make(chan struct{}),
		changed: make(chan struct{}),
	}, nil
}

// Root is the path of the cluster's records in ZooKeeper.
func (z *ZK) Root() string { return z.root }

// SessionID is part of Store.
func (z *ZK) SessionID() int64 {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.sid == 0 {
		return 0
	}
	return z.client.session() // the truth; sid is as old as the last look at it
}

// Connected tells whether there is a session that calls can use now. A server
// that has fallen silent is noticed after two thirds of the session timeout.
func (z *ZK) Connected() bool { return z.SessionID() != 0 }

// Changed returns a channel that is closed when the connection is next lost
// or made, or the session replaced.
func (z *ZK) Changed() <-chan struct{} {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.changed
}

// Run keeps the connection until ctx is done or Close is called, then ends the
// session. It returns when all it started has ended; an error means that
// something has not within some seconds. Run can be called once.
func (z *ZK) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	z.mu.Lock()
	switch {
	case z.stop != nil:
		z.mu.Unlock()
		return errors.New("coordinator: ZK.Run called twice")
	case z.closed:
		z.mu.Unlock()
		return nil
	}
	z.stop = cancel
	z.mu.Unlock()
	defer close(z.done)

	err := z.supervise(ctx)
	z.mu.Lock()
	defer z.mu.Unlock()
	z.closed, z.endErr = true, err
	return err
}

func (z *ZK) supervise(ctx context.Context) error {
	var why error // the connection was lost with the client before
	for {
		c, err := newZKClient(&z.cfg, z.connect.Hosts, why)
		if err != nil {
			return err
		}
		z.mu.Lock()
		z.client = c
		z.mu.Unlock()
		z.watch(ctx, c)
		z.publish(0, nil, ctx.Err() != nil)
		why = c.lastError()
		err = c.close()
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			z.cfg.Logger.Warn("an old ZooKeeper client lingers", "error", err)
		}
	}
}

// watch follows one client and returns when ctx is done or the client is to be
// replaced.
func (z *ZK) watch(ctx context.Context, c *zkClient) {
	tick := time.NewTicker(min(max(z.cfg.SessionTimeout/10, 20*time.Millisecond), 500*time.Millisecond))
	defer tick.Stop()
	down := time.NewTimer(z.cfg.SessionTimeout)
	defer down.Stop()
	up, authenticated := false, z.cfg.DigestAuth == ""
	var denied error
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.ended: // does not happen
			return
		case <-down.C:
			z.cfg.Logger.Debug("no connection to ZooKeeper for one session timeout, starting a new client")
			return
		case <-c.poke:
		case <-tick.C:
		}
		sid := c.session()
		switch {
		case sid != 0 && !up:
			down.Stop()
		case sid == 0 && up:
			down.Reset(z.cfg.SessionTimeout)
		}
		up = sid != 0
		if up && !authenticated {
			err := z.authenticate(ctx, c)
			authenticated = err == nil // go-zookeeper sends it again after a reconnect
			if err != nil {
				sid = 0
			}
			denied = nil
			if errors.Is(err, ErrDenied) {
				denied = err
			}
		}
		z.publish(sid, denied, false)
	}
}

// authenticate is not sent by the library itself before the first success.
func (z *ZK) authenticate(ctx context.Context, c *zkClient) error {
	ctx, cancel := context.WithTimeout(ctx, z.cfg.CallTimeout)
	defer cancel()
	result := make(chan error, 1)
	c.calls.Go(func() { result <- c.conn.AddAuth("digest", []byte(z.cfg.DigestAuth)) })
	select {
	case err := <-result:
		return mapErr("authenticate", "as "+z.user(), err)
	case <-ctx.Done():
		return mapErr("authenticate", "as "+z.user(), ctx.Err())
	}
}

// publish makes a change of state known: to those who wait, and to the log.
func (z *ZK) publish(sid int64, denied error, closing bool) {
	z.mu.Lock()
	before, last := z.sid, z.lastSID
	newlyDenied := denied != nil && z.denied == nil
	news := sid != before || closing || newlyDenied
	if sid != 0 {
		z.lastSID = sid
	}
	z.sid, z.denied, z.closed = sid, denied, z.closed || closing
	if news {
		close(z.changed)
		z.changed = make(chan struct{})
	}
	client := z.client
	z.mu.Unlock()

	log, id := z.cfg.Logger, fmt.Sprintf("%#x", uint64(sid))
	switch {
	case newlyDenied:
		log.Error("ZooKeeper denied the credentials", "error", denied)
	case closing, sid == before:
	case sid == 0:
		log.Warn("connection to ZooKeeper lost", "session", fmt.Sprintf("%#x", uint64(before)), "error", client.lastError())
	case sid == last:
		log.Info("connection to ZooKeeper restored, same session", "session", id)
	case last == 0:
		log.Info("connected to ZooKeeper", "servers", z.connect.String(), "session", id)
	default:
		log.Info("connected to ZooKeeper, new session", "session", id, "old", fmt.Sprintf("%#x", uint64(last)))
	}
}

// Close ends the session and makes Run return, then waits for it. Calls fail
// from then on.
func (z *ZK) Close() error {
	z.mu.Lock()
	stop := z.stop
	if !z.closed {
		z.closed = true
		close(z.changed)
		z.changed = make(chan struct{})
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
