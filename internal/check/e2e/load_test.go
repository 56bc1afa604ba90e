package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/flaked/flaked/worker"
)

// refusal is a reply that begins with a minus sign.
type refusal string

func (r refusal) Error() string { return string(r) }

func isRefusal(err error) bool {
	var no refusal
	return errors.As(err, &no)
}

// client asks a node over one connection at a time. It connects for a request if it is not connected, and
// hangs up after an error that is no refusal.
type client struct {
	node    *node
	timeout time.Duration // of one request
	number  uint32        // of the connection, in the history
	conn    net.Conn      // nil while it is not connected
	in      *bufio.Reader
	ids     []worker.ID // of the last request
}

// callTimeout limits one request. A running node answers in less than a millisecond.
const callTimeout = 10 * time.Second

// dial returns a client that is connected.
func (n *node) dial() (*client, error) {
	c := &client{node: n, timeout: callTimeout}
	return c, c.dial()
}

func (c *client) dial() error {
	if c.conn != nil {
		return nil
	}
	network, addr, err := c.node.address()
	if err != nil {
		return err
	}
	conn, err := net.DialTimeout(network, addr, c.timeout)
	if err != nil {
		return err
	}
	c.conn, c.in, c.number = conn, bufio.NewReaderSize(conn, 1<<15), c.node.site.ids.conns.Add(1)
	return nil
}

func (c *client) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

func (c *client) send(text string) error {
	if err := c.dial(); err != nil {
		return err
	}
	if err := c.conn.SetDeadline(time.Now().Add(c.timeout)); err != nil {
		return err
	}
	_, err := io.WriteString(c.conn, text)
	if err != nil {
		c.close()
	}
	return err
}

// ask sends one line and returns the first line of the reply. A refusal is returned as an error.
func (c *client) ask(request string) (string, error) {
	if err := c.send(request + "\n"); err != nil {
		return "", err
	}
	return c.line()
}

var errPartial = errors.New("the connection ended within a line")

func (c *client) line() (string, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		c.close()
		if err == io.EOF && line != "" {
			err = fmt.Errorf("%w: %q", errPartial, line)
		}
		return "", err
	}
	line = strings.TrimRight(line, "\r\n")
	if strings.HasPrefix(line, "-") {
		return "", refusal(line)
	}
	return line, nil
}

// get asks for k IDs.
func (c *client) get(k int) ([]worker.ID, error) {
	if k == 1 {
		return c.request("GET\n", 1)
	}
	return c.request("GET "+strconv.Itoa(k)+"\n", k)
}

// request sends text, which asks for want IDs, and adds those of the reply to the history. Those of an
// incomplete reply too, because the node has issued them. The IDs are valid until the next request.
func (c *client) request(text string, want int) ([]worker.ID, error) {
	h := c.node.site.ids
	asked := h.now()
	pipelined := strings.Count(text, "\n") > 1
	c.ids = c.ids[:0]
	var refused error
	err := c.send(text)
	for left := want; err == nil && left > 0; left-- {
		var line []byte
		if line, err = c.in.ReadSlice('\n'); err != nil {
			break
		}
		if line[0] == '-' {
			refused = refusal(line[:len(line)-1])
			if !pipelined { // one refusal for the whole batch
				break
			}
			continue
		}
		var id int64
		if id, err = strconv.ParseInt(string(line[:len(line)-1]), 10, 64); err != nil {
			c.node.site.t.Errorf("%s: %.10q is answered with %q", c.node.name, text, line)
			break
		}
		c.ids = append(c.ids, worker.ID(id))
	}
	h.record(answer{node: uint16(c.node.id), conn: c.number, asked: asked, got: h.now()}, c.ids...)
	if err != nil {
		c.close()
		return c.ids, err
	}
	return c.ids, refused
}

// miss is a sequence of requests of one client that were not answered with IDs, all for the same reason.
type miss struct {
	node        int
	first, last int64 // when the first and the last were sent
	given       int64 // when the first was given up or refused
	count       int
	why         string
	text        string // the first refusal
}

// digits matches numbers, which differ between refusals with the same reason.
var digits = regexp.MustCompile(`[0-9]+`)

// because returns the reason of an error, the same for all requests that fail likewise, and the text of a refusal.
func because(err error) (why, text string) {
	var slow net.Error
	switch {
	case isRefusal(err):
		return digits.ReplaceAllString(err.Error(), "N"), err.Error()
	case errors.As(err, &slow) && slow.Timeout():
		return "no answer", ""
	case errors.Is(err, errPartial):
		return errPartial.Error(), ""
	}
	return broke, ""
}

const broke = "the connection broke"

// load is a group of clients that ask a node for IDs until end is called, and the result. They continue
// after refusals and broken connections.
type load struct {
	node *node
	stop chan struct{}
	wg   sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	answered int64      // IDs
	misses   []miss
}

func (n *node) newLoad() *load { return &load{node: n, stop: make(chan struct{})} }

// clients starts a load. Each client asks every two milliseconds, and every tenth time for 20 IDs.
// That is often enough to notice a short interruption, and leaves time for other processes on two cores.
func (n *node) clients(count int) *load {
	l := n.newLoad()
	for i := range count {
		l.add(2*time.Millisecond, callTimeout, func(c *client, round int) (int, error) {
			if (round+i)%10 == 0 {
				return c.counted("GET 20\n", 20)
			}
			return c.counted("GET\n", 1)
		})
	}
	n.site.t.Cleanup(l.end)
	return l
}

// counted is request, and returns the number of IDs.
func (c *client) counted(text string, want int) (int, error) {
	ids, err := c.request(text, want)
	return len(ids), err
}

// add starts a client. ask makes the request of a round, and returns the number of IDs or values.
func (l *load) add(pace, timeout time.Duration, ask func(c *client, round int) (int, error)) {
	l.wg.Go(func() {
		c := &client{node: l.node, timeout: timeout}
		defer c.close()
		var failing miss // count is 0 while requests are answered
		defer func() { l.note(failing, 0) }()
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for round := 0; ; round++ {
			select {
			case <-l.stop:
				return
			case <-tick.C:
			}
			asked := l.node.site.ids.now()
			got, err := ask(c, round)
			l.note(l.continued(&failing, asked, err), got)
			if c.conn == nil {
				time.Sleep(5 * time.Millisecond) // back off before connecting
			}
		}
	})
}

// continued adds a request to the client's current miss, and returns the miss that has ended.
func (l *load) continued(current *miss, asked int64, err error) (over miss) {
	why, text := "", ""
	if err != nil {
		why, text = because(err)
	}
	if current.why != why {
		over = *current
		*current = miss{node: l.node.id, first: asked, given: l.node.site.ids.now(), why: why, text: text}
	}
	if why != "" {
		current.last = asked
		current.count++
	}
	return over
}

func (l *load) note(over miss, ids int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if over.count > 0 {
		l.misses = append(l.misses, over)
	}
	l.answered += int64(ids)
}

// answers returns the number of IDs so far.
func (l *load) answers() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answered
}

// end stops the clients.
func (l *load) end() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.wg.Wait()
}

// flawless ends the load and fails the test unless every request was answered with IDs.
func (l *load) flawless() {
	t := l.node.site.t
	t.Helper()
	l.end()
	for _, m := range l.misses {
		t.Errorf("%s: %d requests failed: %s", l.node.name, m.count, m.reason())
	}
	if l.answered == 0 {
		t.Errorf("%s: nothing was answered", l.node.name)
	}
}

// reason returns the first refusal, or why the connection failed.
func (m miss) reason() string {
	if m.text != "" {
		return m.text
	}
	return m.why
}

// progress waits until the load has received more than 20 further IDs.
func (l *load) progress() {
	l.node.site.t.Helper()
	before := l.answers()
	eventually(l.node.site.t, l.node.name+" hands out more IDs", func() bool { return l.answers() > before+20 })
}

func (m miss) String() string {
	return fmt.Sprintf("%d questions from %s to %s were not answered with IDs: %s", m.count, moment(m.first),
		moment(m.last), m.reason())
}

// moment formats a time of the run as minutes and seconds, "mm:ss.000".
func moment(at int64) string {
	d := time.Duration(at)
	return fmt.Sprintf("%02d:%06.3f", int(d.Minutes()), math.Mod(d.Seconds(), 60))
}
