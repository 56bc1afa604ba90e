package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/dialog"
)

// server is the result of asking one ZooKeeper server.
type server struct {
	addr string
	took time.Duration
	err  error // a noSession if it accepted a connection
	full bool  // it closes connections at once
}

// noSession is the error of a server that accepts connections.
type noSession struct{ error }

// checkServers asks every server that --zk names.
func checkServers(ctx context.Context, cfg Config) []Finding {
	connect, err := store.ParseConnect(cfg.ZK.Connect)
	if err != nil {
		return []Finding{{Check: "zookeeper", Level: Fail, Text: err.Error(), Advice: "Correct --zk"}}
	}
	servers := make([]server, len(connect.Hosts))
	var wg sync.WaitGroup
	for i, addr := range connect.Hosts {
		wg.Go(func() {
			servers[i] = askServer(ctx, cfg.ZK, addr)
			servers[i].full = servers[i].err != nil && closesAtOnce(addr)
		})
	}
	wg.Wait()
	return judgeServers(servers)
}

// askServer opens a session with this server alone.
func askServer(ctx context.Context, cfg store.ZKConfig, addr string) server {
	s := server{addr: addr}
	var conn net.Conn
	if conn, s.err = (dialog.Client{TLS: cfg.TLS}).Dial(ctx, addr); s.err != nil {
		return s
	}
	_ = conn.Close()
	cfg.Connect = addr
	begin := time.Now()
	err := store.WithZK(ctx, cfg, func(z *store.ZK) error {
		_, _, err := z.Get(ctx, "/cluster")
		return err
	})
	s.took = time.Since(begin)
	if err != nil && !errors.Is(err, store.ErrNoNode) && !errors.Is(err, store.ErrDenied) {
		s.err = noSession{err}
	}
	return s
}

// closesAtOnce reports whether a server closes a connection on which nothing was sent. ZooKeeper does so if it has as
// many as it may have. A server without a quorum waits for a request.
func closesAtOnce(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return errors.Is(err, syscall.ECONNRESET) // it was faster
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	_, err = conn.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

const slowServer = 100 * time.Millisecond

// judgeServers returns a line for each server. A server that does not serve is a failure if no
// other does, else a warning.
func judgeServers(servers []server) (found []Finding) {
	up := slices.ContainsFunc(servers, func(s server) bool { return s.err == nil })
	for _, s := range servers {
		f := Finding{Check: "zookeeper", Level: OK}
		var timeout net.Error
		switch {
		case s.err == nil:
			f.Text = fmt.Sprintf("%s serves, and answers in %s", s.addr, round(s.took))
			if s.took > slowServer {
				f.Level, f.Advice = Warn, "Check the network to it, and its disk"
			}
		case s.full:
			f.Level, f.Text, f.Advice = Warn, s.addr+" closes connections at once: it has as many as "+
				"maxClientCnxns or maxCnxns allow, or it is a proxy without a server behind it",
				"Raise maxClientCnxns in its zoo.cfg. Each node needs one connection, a command one more"
		case errors.As(s.err, new(noSession)):
			f.Level, f.Text, f.Advice = Warn, s.addr+" accepts connections and gives no session in time",
				"Check whether it hangs, and whether a majority of the servers runs. See its log"
		case errors.As(s.err, &timeout) && timeout.Timeout(), errors.Is(s.err, context.DeadlineExceeded):
			f.Level, f.Text, f.Advice = Warn, s.addr+": no answer in time", "Check --zk, firewalls, and whether the "+
				"process hangs"
		default:
			f.Level, f.Text, f.Advice = Warn, s.addr+": "+reason(s.err), "Start it, or correct --zk"
		}
		if s.err != nil && !up {
			f.Level, f.unreachable = Fail, true
		}
		found = append(found, f)
	}
	return found
}

// reason returns a network error's text without the operation and the address, which
// the line already has.
func reason(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		err = call.Err
	}
	return err.Error()
}

// round rounds d for display: to the millisecond, and finer below 10 ms.
func round(d time.Duration) time.Duration {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond)
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}
