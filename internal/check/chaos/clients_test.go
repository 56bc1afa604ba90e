package chaos

import (
	"bufio"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/flaked/flaked/worker"
)

// clientTimeout is the time after which a client gives up a request and closes the connection.
const clientTimeout = 2 * time.Second

// miss is a sequence of requests of one client that were not answered with IDs, all for the
// same reason.
type miss struct {
	node        int
	first, last int64 // when the first and the last were sent
	given       int64 // when the first was given up or refused
	count       int
	why         string
	text        string // the first refusal
}

// clients are the clients of one node, and their results.
type clients struct {
	m  *machine
	wg sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	misses  []miss
	answers []Answer // once the clients have ended
	ids     int64
}

// load starts the three clients of a node. Two ask for one ID about a thousand times a second,
// and send a pipeline of fifty requests every hundredth time. The third asks for 800 IDs a
// hundred times a second, and every fiftieth time for 10,000, which is more than a tick has.
func (m *machine) load() *clients {
	l := &clients{m: m}
	for i, pace := range []time.Duration{time.Millisecond, 1100 * time.Microsecond, 10 * time.Millisecond} {
		c := &client{load: l, many: i == 2}
		l.wg.Go(func() { c.run(pace) })
	}
	return l
}

// client sends requests on one connection, and opens another one when the connection breaks.
type client struct {
	load    *clients
	many    bool
	conn    net.Conn
	number  uint32
	in      *bufio.Reader
	ids     []worker.ID
	answers []Answer
	miss    *miss
}

func (c *client) run(pace time.Duration) {
	defer func() {
		c.hangUp()
		c.handIn()
	}()
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for round := 0; ; round++ {
		select {
		case <-c.load.m.c.over:
			return
		case <-tick.C:
		}
		request, ids := "GET\n", 1
		switch {
		case c.many && round%50 == 0:
			request, ids = "GET 10000\n", 10_000
		case c.many:
			request, ids = "GET 800\n", 800
		case round%100 == 0:
			request, ids = strings.Repeat("GET\n", 50), 50
		}
		c.ask(request, ids)
		if c.conn == nil {
			pass(c.load.m.c.t.Context(), 5*time.Millisecond) // back off before dialling
		}
	}
}

// ask sends a request and records the result. want is the number of IDs that it asks for.
func (c *client) ask(request string, want int) {
	now := c.load.m.c.now
	asked := now()
	err := c.dial()
	refused := ""
	c.ids = c.ids[:0]
	if err == nil {
		_ = c.conn.SetDeadline(time.Now().Add(clientTimeout))
		_, err = io.WriteString(c.conn, request)
	}
	for left := want; err == nil && left > 0; left-- {
		var line []byte
		if line, err = c.in.ReadSlice('\n'); err != nil {
			break
		}
		if line[0] == '-' {
			refused = string(line[:len(line)-1])
			if want > 1 && !strings.Contains(request[:len(request)-1], "\n") {
				break // one refusal for the whole batch
			}
			continue
		}
		var id int64
		if id, err = strconv.ParseInt(string(line[:len(line)-1]), 10, 64); err != nil {
			c.load.m.c.violated(c.load.m.name(), "answers %q to %.10q", line, request)
			break
		}
		c.ids = append(c.ids, worker.ID(id))
	}
	got := now()
	// The IDs of an incomplete reply are recorded too, because the node has issued them.
	c.answers = record(c.answers, Answer{Node: uint16(c.load.m.id), Conn: c.number, Asked: asked, Got: got}, c.ids)
	if err != nil {
		c.hangUp()
	}
	c.note(asked, got, refused, err)
}

func (c *client) dial() error {
	if c.conn != nil {
		return nil
	}
	conn, err := net.DialTimeout("tcp", c.load.m.listen, clientTimeout)
	if err != nil {
		return err
	}
	c.conn, c.in, c.number = conn, bufio.NewReaderSize(conn, 1<<15), c.load.m.c.conns.Add(1)
	return nil
}

func (c *client) hangUp() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// digits matches numbers, which differ between refusals with the same reason.
var digits = regexp.MustCompile(`[0-9]+`)

// note adds a request without IDs to the current miss.
func (c *client) note(asked, got int64, refused string, err error) {
	l := c.load
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids += int64(len(c.ids))
	why := ""
	switch {
	case err != nil:
		if why = "no connection"; c.number != 0 {
			why = "the connection broke"
		}
		if e, ok := err.(net.Error); ok && e.Timeout() {
			why = "no answer"
		}
	case refused != "":
		why = digits.ReplaceAllString(refused, "N")
	}
	if c.miss != nil && c.miss.why != why {
		l.misses = append(l.misses, *c.miss)
		c.miss = nil
	}
	if why == "" {
		return
	}
	if c.miss == nil {
		c.miss = &miss{node: l.m.id, first: asked, given: got, why: why, text: refused}
	}
	c.miss.last = asked
	c.miss.count++
}

// handIn adds the client's answers and its current miss to the results of the node.
func (c *client) handIn() {
	c.load.mu.Lock()
	defer c.load.mu.Unlock()
	c.load.answers = append(c.load.answers, c.answers...)
	if c.miss != nil {
		c.load.misses = append(c.load.misses, *c.miss)
		c.miss = nil
	}
}
