package e2e

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/flaked/flaked/internal/check/order"
)

// sequenceKind is a named sequence of the campaign. Its increment is the same in all its lives.
type sequenceKind struct {
	name             string
	start, increment int64
	ceiling          int64  // values a second; 0: it has no ceiling of its own
	mode             string // "": segment
	sections         int    // of a family
}

// sequenceKinds: clients ask for more of "slow" than its ceiling allows. Operators raise the next value of
// "life", delete it, and create it again. After a loss of data, they say where "invoices" goes on.
var sequenceKinds = [...]sequenceKind{
	{name: "orders", start: 1, increment: 1, ceiling: 1_000_000},
	{name: "tickets", start: 100, increment: 3, ceiling: 1_000_000},
	{name: "slow", start: 1, increment: 1, ceiling: 2000},
	{name: "life", start: 1, increment: 2, ceiling: 1_000_000},
	{name: "invoices", start: 1, increment: 1, mode: "strict"},
	{name: plain, start: 1, increment: 1, mode: "ordered", ceiling: 1_000_000},
	{name: family, start: 1, increment: 1, mode: "ordered", ceiling: 1_000_000, sections: 32},
}

const (
	slowKind   = 2
	lifeKind   = 3
	strictKind = 4
	familyKind = 6
)

func (k sequenceKind) ordered() bool { return k.mode == "ordered" }

// sequenceClient asks one node for values of one sequence.
type sequenceClient struct {
	*load
	c       *campaign
	kind    int
	rng     *rand.Rand
	answers []order.Request
	asked   int // requests
}

// sequences is what the campaign does with named sequences.
type sequences struct {
	clients []*sequenceClient
	highest [len(sequenceKinds)]atomic.Int64 // value that was answered, by kind
	// gone are the times in which "life" may not exist.
	gone []window
	// vouched are the times at which an operator made sure that "invoices" is not frozen, and jumps are the values
	// at which it went on.
	vouched, jumps []int64
	keys           atomic.Int64 // of requests of "invoices": the number of the newest one
	done           int          // commands of operators
	from           int64        // when the clients began, ns since the start of the run
}

const (
	// sequencePace is the time between two requests of a client.
	sequencePace = 40 * time.Millisecond
	// sequenceTimeout is longer than a node lets a request wait.
	sequenceTimeout = 8 * time.Second
	longestRange    = 60_000
	// An answer to a key is not judged if staleKey other keys were asked meanwhile, because nodes may have forgotten
	// the key. They remember 1000, until ZooKeeper loses data.
	staleKey = 500
)

// askForValues starts the clients of sequences, one for each node and sequence, once all nodes serve them.
func (c *campaign) askForValues() {
	for _, m := range c.machines {
		// All of them: ZooKeeper was restarted to copy its data, and a node may still have values of some.
		serves := func() bool {
			for _, kind := range sequenceKinds {
				name := kind.name
				if kind.sections > 0 {
					name = members[0]
				}
				if _, err := m.probe.ask("NEXT " + name); err != nil &&
					!strings.Contains(err.Error(), "reason=ceiling") {
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
		for kind := range sequenceKinds {
			rng := rand.New(rand.NewPCG(*chaosSeed, 300+uint64(len(c.seq.clients))))
			client := &sequenceClient{load: m.newLoad(), c: c, kind: kind, rng: rng}
			c.seq.clients = append(c.seq.clients, client)
			client.add(sequencePace, sequenceTimeout, client.take)
		}
	}
}

// question is a request for n values.
type question struct {
	name  string
	text  string
	n     int
	key   int64 // 0: none
	pair  bool  // the answer is the first value and the last one
	lines int   // of the answer
}

// draw draws a request: for one value, for a list, or for a range.
func (s *sequenceClient) draw() question {
	q := question{n: 1, lines: 1}
	name := sequenceKinds[s.kind].name
	if s.kind == familyKind {
		name = members[s.rng.IntN(len(members))]
	}
	q.name = name
	most := longestRange
	if s.kind == slowKind || s.kind == strictKind {
		most = 1000
	}
	switch k := s.rng.IntN(100); {
	case k < 30 && s.kind == strictKind: // with a new key, or with one of the last, which any node was asked
		if q.key = s.c.seq.keys.Load() - s.rng.Int64N(5); k < 10 || q.key <= 0 {
			q.key = s.c.seq.keys.Add(1)
		}
		q.text = fmt.Sprintf("NEXT %s k%d\n", name, q.key)
	case k < 55:
		q.text = "NEXT " + name + "\n"
	case k < 75:
		q.n = 1 + s.rng.IntN(100)
		q.text, q.lines = fmt.Sprintf("NEXT %s %d\n", name, q.n), q.n
	default:
		q.n, q.pair = max(1, int(math.Exp(s.rng.Float64()*math.Log(float64(most))))), true
		q.text = fmt.Sprintf("RANGE %s %d\n", name, q.n)
	}
	return q
}

// answer splits the numbers of the reply, which ascend, into parts without gaps. It returns nil if the reply is not
// what the request asks for.
func (q question) answer(got []int64, step int64) (all []order.Request) {
	if q.pair {
		if len(got) != 2 || got[1]-got[0] != int64(q.n-1)*step {
			return nil
		}
		return []order.Request{{Name: q.name, First: got[0], Last: got[1]}}
	}
	if len(got) != q.n {
		return nil
	}
	for _, v := range got {
		switch k := len(all) - 1; {
		case k >= 0 && v == all[k].Last+step:
			all[k].Last = v
		case k >= 0 && v <= all[k].Last:
			return nil
		default:
			all = append(all, order.Request{Name: q.name, First: v, Last: v})
		}
	}
	return all
}

// take sends a request and records the result.
func (s *sequenceClient) take(c *client, _ int) (int, error) {
	q := s.draw()
	s.asked++
	r := order.Request{Name: q.name, Node: c.node.id, Sent: s.c.now()}
	got, err := q.exchange(c)
	r.Answered = s.c.now()
	stale := q.key > 0 && s.c.seq.keys.Load()-q.key >= staleKey
	if q.key > 0 && !stale {
		r.Key = fmt.Sprint("k", q.key)
	}
	if stale || err != nil && q.mayHaveBeenServed(err) {
		r.Lost = int64(q.n)
		s.answers = append(s.answers, r)
	}
	if err != nil {
		return 0, err
	}
	parts := q.answer(got, sequenceKinds[s.kind].increment)
	if parts == nil {
		s.c.violated(c.node.name, "%q is answered with %.200v", q.text, got)
		return 0, nil
	}
	for _, v := range parts {
		if v.Sent, v.Answered, v.Node, v.Key = r.Sent, r.Answered, r.Node, r.Key; !stale {
			s.answers = append(s.answers, v)
		}
	}
	raise(&s.c.seq.highest[s.kind], parts[len(parts)-1].Last)
	return q.n, nil
}

func raise(highest *atomic.Int64, v int64) {
	for was := highest.Load(); v > was && !highest.CompareAndSwap(was, v); was = highest.Load() {
	}
}

// exchange sends a request and returns the numbers of the reply, also those before an error.
func (q question) exchange(c *client) (got []int64, err error) {
	if err := c.send(q.text); err != nil {
		return nil, err
	}
	for range q.lines {
		line, err := c.line()
		if err != nil {
			return got, err
		}
		for word := range strings.FieldsSeq(line) {
			v, err := strconv.ParseInt(word, 10, 64)
			if err != nil {
				return got, err
			}
			got = append(got, v)
		}
	}
	return got, nil
}

// mayHaveBeenServed reports whether a node may have taken numbers for a request that failed.
func (q question) mayHaveBeenServed(err error) bool {
	var dial *net.OpError
	notSent := errors.As(err, &dial) && dial.Op == "dial"
	return !notSent && (!isRefusal(err) || strings.Contains(err.Error(), "reason=unknown"))
}
