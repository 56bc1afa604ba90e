package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/flaked/flaked/internal/credentials"
	"github.com/flaked/flaked/zkstore"
)

// server is the state of one ZooKeeper server as it describes itself. mode and version are
// empty if it does not disclose them.
type server struct {
	addr, mode, version string
	took                time.Duration
	err                 error
}

// checkServers asks every server that --zk names.
func checkServers(ctx context.Context, cfg Config) []Finding {
	connect, err := zkstore.ParseConnect(cfg.ZK.Connect)
	if err != nil {
		return []Finding{{Check: "zookeeper", Level: Fail, Text: err.Error(), Advice: "Correct --zk"}}
	}
	servers := make([]server, len(connect.Hosts))
	var wg sync.WaitGroup
	for i, addr := range connect.Hosts {
		wg.Go(func() { servers[i] = askServer(ctx, cfg.ZK, addr) })
	}
	wg.Wait()
	return judgeServers(servers)
}

func askServer(ctx context.Context, cfg zkstore.ZKConfig, addr string) server {
	s := server{addr: addr}
	begin := time.Now()
	var reply string
	if reply, s.err = fourLetterWord(ctx, cfg.TLS, addr, "srvr"); s.err != nil {
		return s
	}
	s.took = time.Since(begin)
	if s.mode, s.version, s.err = parseServer(reply); !errors.Is(s.err, errNotTold) {
		return s
	}
	// The server has disabled four-letter words. A session with this server alone
	// shows that it serves.
	cfg.Connect = addr
	begin = time.Now()
	s.err = withStore(ctx, cfg, func(ctx context.Context, z *zkstore.ZK) error {
		_, _, err := z.Get(ctx, "/cluster")
		if errors.Is(err, zkstore.ErrNoNode) || errors.Is(err, zkstore.ErrDenied) {
			return nil
		}
		return err
	})
	s.took = time.Since(begin)
	return s
}

var (
	errNotTold    = errors.New("four-letter words are disabled")
	errNotServing = errors.New("it runs but has no quorum")
)

// parseServer parses a server's answer to srvr.
func parseServer(reply string) (mode, version string, err error) {
	if strings.Contains(reply, "not currently serving requests") {
		return "", "", errNotServing
	}
	for line := range strings.Lines(reply) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Zookeeper version":
			// 3.8.0-5a02a05eddb59aee6ac762f7ea82e92a68eb9c0f, built on ...
			version, _, _ = strings.Cut(value, ",")
			version, _, _ = strings.Cut(version, "-")
		case "Mode":
			mode = value
		}
	}
	if mode == "" {
		return "", "", errNotTold
	}
	return mode, version, nil
}

// fourLetterWord sends word and returns the answer. The answer is empty if the server closes
// the connection without one.
func fourLetterWord(ctx context.Context, config *tls.Config, addr, word string) (string, error) {
	conn, err := credentials.Client{TLS: config}.Dial(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if by, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(by)
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	reply, err := io.ReadAll(io.LimitReader(conn, 64<<10))
	if len(reply) == 0 && errorIsTimeout(err) {
		return "", err
	}
	return string(reply), nil
}

func errorIsTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

const slowServer = 100 * time.Millisecond

// judgeServers returns a line for each server. A server that does not serve is a failure if no
// other does, else a warning.
func judgeServers(servers []server) []Finding {
	up := 0
	for _, s := range servers {
		if s.err == nil {
			up++
		}
	}
	var found []Finding
	for _, s := range servers {
		f := Finding{Check: "zookeeper"}
		switch {
		case s.err == nil:
			what := "serves"
			if s.mode != "" {
				what = s.mode + ", version " + s.version
			}
			f.Level, f.Text = OK, fmt.Sprintf("%s: %s, answers in %s", s.addr, what, round(s.took))
			if s.took > slowServer {
				f.Level, f.Advice = Warn, "Check the network to it, and its disk"
			}
		case errors.Is(s.err, errNotServing):
			f.Level, f.Text, f.Advice = Warn, s.addr+": "+s.err.Error(), "Start the other servers, and check its log"
		case errors.Is(s.err, errSlow), errorIsTimeout(s.err), errors.Is(s.err, context.DeadlineExceeded):
			f.Level, f.Text, f.Advice = Warn, s.addr+": no answer in time", "Check --zk, firewalls, and whether the process hangs"
		default:
			f.Level, f.Text, f.Advice = Warn, s.addr+": "+reason(s.err), "Start it, or correct --zk"
		}
		if f.Level == Warn && s.err != nil && up == 0 {
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

// withStore calls f with a connection to ZooKeeper, and closes the connection when f returns.
func withStore(ctx context.Context, cfg zkstore.ZKConfig, f func(context.Context, *zkstore.ZK) error) error {
	z, err := zkstore.NewZK(cfg)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- z.Run(context.WithoutCancel(ctx)) }()
	err = f(ctx, z)
	_ = z.Close()
	<-ended
	return err
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
