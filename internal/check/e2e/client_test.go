package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/flaked/flaked/worker"
)

// refusal is a reply that begins with a minus sign.
type refusal string

func (r refusal) Error() string { return string(r) }

// client is one connection to a node.
type client struct {
	node *node
	conn net.Conn
	in   *bufio.Reader
	last worker.ID
}

// callTimeout limits one request. A running node answers in less than a millisecond.
const callTimeout = 10 * time.Second

func (n *node) dial() (*client, error) {
	network, addr, err := n.address()
	if err != nil {
		return nil, err
	}
	conn, err := net.DialTimeout(network, addr, callTimeout)
	if err != nil {
		return nil, err
	}
	return &client{node: n, conn: conn, in: bufio.NewReader(conn)}, nil
}

func (c *client) close() { _ = c.conn.Close() }

// ask sends one line and returns the first line of the reply. A refusal is returned as an error.
func (c *client) ask(request string) (string, error) {
	if err := c.conn.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c.conn, request+"\n"); err != nil {
		return "", err
	}
	return c.line()
}

var errPartial = errors.New("the connection ended within a line")

func (c *client) line() (string, error) {
	line, err := c.in.ReadString('\n')
	switch {
	case err == io.EOF && line != "":
		return "", fmt.Errorf("%w: %q", errPartial, line)
	case err != nil:
		return "", err
	case strings.HasPrefix(line, "-"):
		return "", refusal(strings.TrimSuffix(line, "\n"))
	}
	return strings.TrimSuffix(line, "\n"), nil
}

// get asks for k IDs and records them. It fails the test unless they are above all earlier IDs of
// this connection.
func (c *client) get(k int) ([]worker.ID, error) {
	ids := make([]worker.ID, 0, k)
	asked := c.node.site.ids.now()
	request := "GET"
	if k > 1 {
		request = "GET " + strconv.Itoa(k)
	}
	line, err := c.ask(request)
	for {
		if err != nil {
			break
		}
		var id int64
		if id, err = strconv.ParseInt(line, 10, 64); err != nil {
			break
		}
		ids = append(ids, worker.ID(id))
		if len(ids) == k {
			break
		}
		line, err = c.line()
	}
	// The IDs of an incomplete reply are recorded too, because the node has issued them.
	c.node.site.ids.record(asked, c.node.site.ids.now(), ids...)
	for _, id := range ids {
		if id <= c.last {
			c.node.site.t.Errorf("%s: %s after %s on one connection", c.node.name, c.node.site.ids.describe(id), c.node.site.ids.describe(c.last))
		}
		c.last = id
	}
	return ids, err
}

// load is a group of clients that ask a node for IDs until end is called. They continue after
// refusals, and connect again when a connection breaks.
type load struct {
	node *node
	stop chan struct{}
	wg   sync.WaitGroup

	mu    sync.Mutex // guards tally
	tally tally
}

// tally is the result of a load.
type tally struct {
	answered int
	failed   []string // refusals, broken connections and invalid replies
}

// clients starts a load. Each client asks every two milliseconds, and every tenth time for 20 IDs.
// That is often enough to notice a short interruption, and leaves time for other processes on two
// cores.
func (n *node) clients(count int) *load {
	l := &load{node: n, stop: make(chan struct{})}
	for i := range count {
		l.wg.Go(func() { l.run(i) })
	}
	n.site.t.Cleanup(func() { l.end() })
	return l
}

func (l *load) run(i int) {
	var c *client
	defer func() {
		if c != nil {
			c.close()
		}
	}()
	pace := time.NewTicker(2 * time.Millisecond)
	defer pace.Stop()
	for round := i; ; round++ {
		select {
		case <-l.stop:
			return
		case <-pace.C:
		}
		k := 1
		if round%10 == 0 {
			k = 20
		}
		var err error
		if c == nil {
			if c, err = l.node.dial(); err != nil {
				c = nil
			}
		}
		var ids []worker.ID
		if err == nil {
			ids, err = c.get(k)
		}
		l.mu.Lock()
		l.tally.answered += len(ids)
		if err != nil {
			l.tally.failed = append(l.tally.failed, err.Error())
		}
		l.mu.Unlock()
		var no refusal
		if err != nil && c != nil && !errors.As(err, &no) {
			c.close()
			c = nil
		}
	}
}

// answers returns the number of IDs so far.
func (l *load) answers() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tally.answered
}

// end stops the clients and returns the result.
func (l *load) end() tally {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.wg.Wait()
	return l.tally
}

// flawless ends the load and fails the test unless every request was answered with IDs.
func (l *load) flawless() {
	t := l.node.site.t
	t.Helper()
	tally := l.end()
	if len(tally.failed) > 0 {
		t.Errorf("%s: %d of the questions failed, the first: %s", l.node.name, len(tally.failed), tally.failed[0])
	}
	if tally.answered == 0 {
		t.Errorf("%s: nothing was answered", l.node.name)
	}
	t.Logf("%s: %d IDs", l.node.name, tally.answered)
}

// progress waits until the load has received more than 20 further IDs.
func (l *load) progress() {
	l.node.site.t.Helper()
	before := l.answers()
	eventually(l.node.site.t, l.node.name+" hands out more IDs", func() bool { return l.answers() > before+20 })
}
