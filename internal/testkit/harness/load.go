//go:build unix

package harness

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

// Client asks a node over one connection at a time. It connects for a request if it is not connected, and
// hangs up after an error that is no refusal.
type Client struct {
	Node    *Node
	Timeout time.Duration // of one request
	number  uint32        // of the connection, in the history
	conn    net.Conn      // nil while it is not connected
	in      *bufio.Reader
	ids     []worker.ID // of the last request
}

// CallTimeout limits one request. A running node answers in less than a millisecond.
const CallTimeout = 10 * time.Second

// Dial returns a client that is connected.
func (n *Node) Dial() (*Client, error) {
	c := &Client{Node: n, Timeout: CallTimeout}
	return c, c.dial()
}

func (c *Client) dial() error {
	if c.conn != nil {
		return nil
	}
	network, addr, err := c.Node.Address()
	if err != nil {
		return err
	}
	conn, err := net.DialTimeout(network, addr, c.Timeout)
	if err != nil {
		return err
	}
	c.conn, c.in, c.number = conn, bufio.NewReaderSize(conn, 1<<15), c.Node.Site.IDs.conns.Add(1)
	return nil
}

func (c *Client) Close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

func (c *Client) send(text string) error {
	if err := c.dial(); err != nil {
		return err
	}
	if err := c.conn.SetDeadline(time.Now().Add(c.Timeout)); err != nil {
		return err
	}
	_, err := io.WriteString(c.conn, text)
	if err != nil {
		c.Close()
	}
	return err
}

// Ask sends one line and returns the first line of the reply. A refusal is returned as an error.
func (c *Client) Ask(request string) (string, error) {
	if err := c.send(request + "\n"); err != nil {
		return "", err
	}
	return c.Line()
}

var ErrPartial = errors.New("the connection ended within a line")

func (c *Client) Line() (string, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		c.Close()
		if err == io.EOF && line != "" {
			err = fmt.Errorf("%w: %q", ErrPartial, line)
		}
		return "", err
	}
	line = strings.TrimRight(line, "\r\n")
	if strings.HasPrefix(line, "-") {
		return "", refusal(line)
	}
	return line, nil
}

// Get asks for k IDs.
func (c *Client) Get(k int) ([]worker.ID, error) {
	if k == 1 {
		return c.request("GET\n", 1)
	}
	return c.request("GET "+strconv.Itoa(k)+"\n", k)
}

// request sends text, which asks for want IDs, and adds those of the reply to the history. Those of an
// incomplete reply too, because the node has issued them. The IDs are valid until the next request.
func (c *Client) request(text string, want int) ([]worker.ID, error) {
	h := c.Node.Site.IDs
	asked := h.Now()
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
			c.Node.Site.T.Errorf("%s: %.10q is answered with %q", c.Node.Name, text, line)
			break
		}
		c.ids = append(c.ids, worker.ID(id))
	}
	h.Record(Answer{Node: uint16(c.Node.ID), conn: c.number, Asked: asked, Got: h.Now()}, c.ids...)
	if err != nil {
		c.Close()
		return c.ids, err
	}
	return c.ids, refused
}

// Miss is a sequence of requests of one client that were not answered with IDs, all for the same reason.
type Miss struct {
	Node        int
	First, Last int64 // when the first and the last were sent
	Given       int64 // when the first was given up or refused
	Count       int
	Why         string
	Text        string // the first refusal
}

// Digits matches numbers, which differ between refusals with the same reason.
var Digits = regexp.MustCompile(`[0-9]+`)

// because returns the reason of an error, the same for all requests that fail likewise, and the text of a refusal.
func because(err error) (why, text string) {
	var slow net.Error
	switch {
	case isRefusal(err):
		return Digits.ReplaceAllString(err.Error(), "N"), err.Error()
	case errors.As(err, &slow) && slow.Timeout():
		return "no answer", ""
	case errors.Is(err, ErrPartial):
		return ErrPartial.Error(), ""
	}
	return broke, ""
}

const broke = "the connection broke"

// Load is a group of clients that ask a node for IDs until end is called, and the result. They continue
// after refusals and broken connections.
type Load struct {
	Node *Node
	stop chan struct{}
	wg   sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	Answered int64      // IDs
	Misses   []Miss
}

func (n *Node) NewLoad() *Load { return &Load{Node: n, stop: make(chan struct{})} }

// Clients starts a load. Each client asks every two milliseconds, and every tenth time for 20 IDs.
// That is often enough to notice a short interruption, and leaves time for other processes on two cores.
func (n *Node) Clients(count int) *Load {
	l := n.NewLoad()
	for i := range count {
		l.Add(2*time.Millisecond, CallTimeout, func(c *Client, round int) (int, error) {
			if (round+i)%10 == 0 {
				return c.Counted("GET 20\n", 20)
			}
			return c.Counted("GET\n", 1)
		})
	}
	n.Site.T.Cleanup(l.End)
	return l
}

// Counted is request, and returns the number of IDs.
func (c *Client) Counted(text string, want int) (int, error) {
	ids, err := c.request(text, want)
	return len(ids), err
}

// Add starts a client. ask makes the request of a round, and returns the number of IDs or values.
func (l *Load) Add(pace, timeout time.Duration, ask func(c *Client, round int) (int, error)) {
	l.wg.Go(func() {
		c := &Client{Node: l.Node, Timeout: timeout}
		defer c.Close()
		var failing Miss // count is 0 while requests are answered
		defer func() { l.note(failing, 0) }()
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for round := 0; ; round++ {
			select {
			case <-l.stop:
				return
			case <-tick.C:
			}
			asked := l.Node.Site.IDs.Now()
			got, err := ask(c, round)
			l.note(l.continued(&failing, asked, err), got)
			if c.conn == nil {
				time.Sleep(5 * time.Millisecond) // back off before connecting
			}
		}
	})
}

// continued adds a request to the client's current miss, and returns the miss that has ended.
func (l *Load) continued(current *Miss, asked int64, err error) (over Miss) {
	why, text := "", ""
	if err != nil {
		why, text = because(err)
	}
	if current.Why != why {
		over = *current
		*current = Miss{Node: l.Node.ID, First: asked, Given: l.Node.Site.IDs.Now(), Why: why, Text: text}
	}
	if why != "" {
		current.Last = asked
		current.Count++
	}
	return over
}

func (l *Load) note(over Miss, ids int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if over.Count > 0 {
		l.Misses = append(l.Misses, over)
	}
	l.Answered += int64(ids)
}

// Answers returns the number of IDs so far.
func (l *Load) Answers() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Answered
}

// End stops the clients.
func (l *Load) End() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.wg.Wait()
}

// Flawless ends the load and fails the test unless every request was answered with IDs.
func (l *Load) Flawless() {
	t := l.Node.Site.T
	t.Helper()
	l.End()
	for _, m := range l.Misses {
		t.Errorf("%s: %d requests failed: %s", l.Node.Name, m.Count, m.Reason())
	}
	if l.Answered == 0 {
		t.Errorf("%s: nothing was answered", l.Node.Name)
	}
}

// Reason returns the first refusal, or why the connection failed.
func (m Miss) Reason() string {
	if m.Text != "" {
		return m.Text
	}
	return m.Why
}

// Progress waits until the load has received more than 20 further IDs.
func (l *Load) Progress() {
	l.Node.Site.T.Helper()
	before := l.Answers()
	Eventually(l.Node.Site.T, l.Node.Name+" hands out more IDs", func() bool { return l.Answers() > before+20 })
}

func (m Miss) String() string {
	return fmt.Sprintf("%d questions from %s to %s were not answered with IDs: %s", m.Count, Moment(m.First),
		Moment(m.Last), m.Reason())
}

// Moment formats a time of the run as minutes and seconds, "mm:ss.000".
func Moment(at int64) string {
	d := time.Duration(at)
	return fmt.Sprintf("%02d:%06.3f", int(d.Minutes()), math.Mod(d.Seconds(), 60))
}
