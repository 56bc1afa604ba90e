package e2e

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// sequenceKind is a named sequence of the campaign. Its increment is the same in all its lives.
type sequenceKind struct {
	name             string
	start, increment int64
	ceiling          int64 // values a second
	strict           bool
}

// sequenceKinds: clients ask for more of "slow" than its ceiling allows. Operators raise the next value of
// "life", delete it, and create it again. After a loss of data, they say where "invoices" goes on.
var sequenceKinds = [...]sequenceKind{
	{name: "orders", start: 1, increment: 1, ceiling: 1_000_000},
	{name: "tickets", start: 100, increment: 3, ceiling: 1_000_000},
	{name: "slow", start: 1, increment: 1, ceiling: 2000},
	{name: "life", start: 1, increment: 2, ceiling: 1_000_000},
	{name: "invoices", start: 1, increment: 1, strict: true},
}

const (
	slowKind   = 2
	lifeKind   = 3
	strictKind = 4
)

// stretch is what a node answered: n values from first to last, one increment apart.
type stretch struct {
	first, last int64
	asked, got  int64 // ns since the start of the run
	n           int32
	node, kind  uint8
}

// sequenceMiss is requests of one client and one sequence that were refused or not answered, all for the
// same reason.
type sequenceMiss struct {
	miss
	kind int
	// numbers is how many numbers they asked for, where the node may have taken them.
	numbers int64
}

// sequenceClient asks one node for values, over one connection at a time.
type sequenceClient struct {
	*client
	c       *campaign
	rng     *rand.Rand
	answers []stretch
	misses  []sequenceMiss
	// newest is the index in misses of the latest one of a sequence, plus 1.
	newest [len(sequenceKinds)]int
	asked  [len(sequenceKinds)]int // requests
}

// sequences is what the campaign does with named sequences.
type sequences struct {
	wg      sync.WaitGroup
	clients []*sequenceClient
	highest [len(sequenceKinds)]atomic.Int64 // value that was answered, by kind
	polls   []poll
	// gone are the times in which "life" may not exist.
	gone []window
	// vouched are the times at which an operator made sure that "invoices" is not frozen, and jumps are the values
	// at which it went on.
	vouched, jumps []int64
	done           int   // commands of operators
	from           int64 // when the clients began, ns since the start of the run
}

const (
	// sequencePace is the time between two requests of a client.
	sequencePace = 15 * time.Millisecond
	// sequenceTimeout is longer than a node lets a request wait.
	sequenceTimeout = 8 * time.Second
	longestRange    = 60_000
)

// askForValues starts the clients of sequences, two of each node, once all nodes serve them.
func (c *campaign) askForValues() {
	for _, m := range c.machines {
		// All of them: ZooKeeper was restarted to copy its data, and a node may still have values of some.
		serves := func() bool {
			for _, kind := range sequenceKinds {
				if _, err := m.probe.ask("NEXT " + kind.name); err != nil && !strings.Contains(err.Error(), "reason=ceiling") {
					return false
				}
			}
			return true
		}
		if !waits(c.t.Context(), 30*time.Second, serves) {
			c.t.Fatalf("%s does not serve sequences: %s", m.name, lastLines(m.proc.log(), 1))
		}
	}
	c.seq.from = c.now()
	for _, m := range c.machines {
		for i := range 2 {
			rng := rand.New(rand.NewPCG(*chaosSeed, 300+uint64(2*m.id+i)))
			client := &sequenceClient{client: &client{node: m.node, timeout: sequenceTimeout}, c: c, rng: rng}
			c.seq.clients = append(c.seq.clients, client)
			c.seq.wg.Go(client.run)
		}
	}
}

func (c *sequenceClient) run() {
	defer c.close()
	tick := time.NewTicker(sequencePace)
	defer tick.Stop()
	for {
		select {
		case <-c.c.playing.Done():
			return
		case <-tick.C:
		}
		c.take()
		if c.conn == nil {
			pass(c.c.playing, 50*time.Millisecond) // back off before dialling
		}
	}
}

// question is a request for n values.
type question struct {
	kind  int
	text  string
	n     int
	pair  bool // the answer is the first value and the last one
	lines int  // of the answer
}

// draw draws a request: for one value, for a list, or for a range.
func (c *sequenceClient) draw() question {
	q := question{kind: c.rng.IntN(len(sequenceKinds)), n: 1, lines: 1}
	name := sequenceKinds[q.kind].name
	most := longestRange
	if q.kind == slowKind || q.kind == strictKind {
		most = 1000
	}
	switch k := c.rng.IntN(100); {
	case k < 55:
		q.text = "NEXT " + name + "\n"
	case k < 75:
		q.n = 1 + c.rng.IntN(100)
		q.text, q.lines = fmt.Sprintf("NEXT %s %d\n", name, q.n), q.n
	default:
		q.n, q.pair = max(1, int(math.Exp(c.rng.Float64()*math.Log(float64(most))))), true
		q.text = fmt.Sprintf("RANGE %s %d\n", name, q.n)
	}
	return q
}

// answer splits the numbers of the reply, which ascend, into parts without gaps. It returns nil if the reply is not
// what the request asks for.
func (q question) answer(got []int64) (all []stretch) {
	step := sequenceKinds[q.kind].increment
	if q.pair {
		if len(got) != 2 || got[1]-got[0] != int64(q.n-1)*step {
			return nil
		}
		return []stretch{{first: got[0], last: got[1], n: int32(q.n)}}
	}
	if len(got) != q.n {
		return nil
	}
	for _, v := range got {
		switch k := len(all) - 1; {
		case k >= 0 && v == all[k].last+step:
			all[k].last, all[k].n = v, all[k].n+1
		case k >= 0 && v <= all[k].last:
			return nil
		default:
			all = append(all, stretch{first: v, last: v, n: 1})
		}
	}
	return all
}

// take sends a request and records the result.
func (c *sequenceClient) take() {
	q := c.draw()
	c.asked[q.kind]++
	asked := c.c.now()
	got, err := c.exchange(q)
	at := c.c.now()
	if err != nil {
		if !isRefusal(err) {
			c.close()
		}
		c.note(q, asked, at, err)
		return
	}
	parts := q.answer(got)
	if parts == nil {
		c.c.violated(c.node.name, "%q is answered with %.200v", q.text, got)
		return
	}
	for _, v := range parts {
		v.asked, v.got, v.node, v.kind = asked, at, uint8(c.node.id), uint8(q.kind)
		c.answers = append(c.answers, v)
	}
	raise(&c.c.seq.highest[q.kind], parts[len(parts)-1].last)
}

func raise(highest *atomic.Int64, v int64) {
	for was := highest.Load(); v > was && !highest.CompareAndSwap(was, v); was = highest.Load() {
	}
}

// exchange sends a request and returns the numbers of the reply.
func (c *sequenceClient) exchange(q question) (got []int64, err error) {
	if err := c.send(q.text); err != nil {
		return nil, err
	}
	for range q.lines {
		line, err := c.line()
		if err != nil {
			return nil, err
		}
		for word := range strings.FieldsSeq(line) {
			v, err := strconv.ParseInt(word, 10, 64)
			if err != nil {
				return nil, err
			}
			got = append(got, v)
		}
	}
	return got, nil
}

// mayHaveTaken returns how many numbers a node may have taken for a request that failed.
func (q question) mayHaveTaken(err error) int64 {
	var dial *net.OpError
	notSent := errors.As(err, &dial) && dial.Op == "dial"
	if notSent || isRefusal(err) && !strings.Contains(err.Error(), "reason=unknown") {
		return 0
	}
	return int64(q.n)
}

// note records a request that was not answered with values. It adds the request to the latest miss of the
// sequence if the reason is the same, and at most a second has passed.
func (c *sequenceClient) note(q question, asked, given int64, err error) {
	why, text := because(err)
	taken := q.mayHaveTaken(err)
	if k := c.newest[q.kind] - 1; k >= 0 {
		if m := &c.misses[k]; m.why == why && asked-m.last < int64(time.Second) {
			m.last, m.count, m.numbers = asked, m.count+1, m.numbers+taken
			return
		}
	}
	m := miss{node: c.node.id, first: asked, last: asked, given: given, count: 1, why: why, text: text}
	c.misses = append(c.misses, sequenceMiss{m, q.kind, taken})
	c.newest[q.kind] = len(c.misses)
}
