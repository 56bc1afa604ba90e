package campaign

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"
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
	{name: harness.Plain, start: 1, increment: 1, mode: "ordered", ceiling: 1_000_000},
	{name: harness.Family, start: 1, increment: 1, mode: "ordered", ceiling: 1_000_000, sections: 32},
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
	*harness.Load
	c     *campaign
	kind  int
	rng   *rand.Rand
	asked int // requests
}

// sequences is the part of the campaign that uses named sequences.
type sequences struct {
	clients []*sequenceClient
	// gone are the times in which "life" may not exist.
	gone    []window
	vouched []int64      // the times at which an operator made sure that "invoices" is not frozen
	keys    atomic.Int64 // of requests of "invoices": the number of the newest one
	done    int          // commands of operators
	from    int64        // when the clients began, ns since the start of the run
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
					name = harness.Members[0]
				}
				if _, err := m.probe.Ask("NEXT " + name); err != nil &&
					!strings.Contains(err.Error(), "reason=ceiling") {
					return false
				}
			}
			return true
		}
		if !harness.Waits(c.t.Context(), 30*time.Second, serves) {
			c.t.Fatalf("%s does not serve sequences: %s", m.Name, harness.LastLines(m.Proc.Log(), 1))
		}
	}
	c.seq.from = c.now()
	for _, m := range c.machines {
		for kind := range sequenceKinds {
			rng := rand.New(rand.NewPCG(*chaosSeed, 300+uint64(len(c.seq.clients))))
			client := &sequenceClient{Load: m.NewLoad(), c: c, kind: kind, rng: rng}
			c.seq.clients = append(c.seq.clients, client)
			client.Add(pace(sequencePace), sequenceTimeout, client.take)
		}
	}
}

// draw draws a request: for one value, for a list, or for a range.
func (s *sequenceClient) draw() (q harness.Question) {
	name := sequenceKinds[s.kind].name
	if s.kind == familyKind {
		name = harness.Members[s.rng.IntN(len(harness.Members))]
	}
	most := longestRange
	if s.kind == slowKind || s.kind == strictKind {
		most = 1000
	}
	switch k := s.rng.IntN(100); {
	case k < 30 && s.kind == strictKind: // with a new key, or with one of the last, which any node was asked
		keys := &s.c.seq.keys
		key := keys.Load() - s.rng.Int64N(5)
		if k < 10 || key <= 0 {
			key = keys.Add(1)
		}
		q = harness.WithKey(name, fmt.Sprint("k", key))
		q.Stale = func() bool { return keys.Load()-key >= staleKey }
	case k < 55:
		q = harness.Next(name)
	case k < 75:
		q = harness.List(name, 1+s.rng.IntN(100))
	default:
		q = harness.ValuesFrom(name, max(1, int(math.Exp(s.rng.Float64()*math.Log(float64(most))))))
	}
	q.Step = sequenceKinds[s.kind].increment
	return q
}

// take sends a request and records the result.
func (s *sequenceClient) take(c *harness.Client, _ int) (int, error) {
	s.asked++
	return c.Values(s.draw())
}
