package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/check/order"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// These are the ordered sequences of these tests: a plain one, a family, and a template with one of its sequences.
const plain, family, template, daily = "ticks", "msg:*", "day:*", "day:monday"

// members are the names of the family that clients ask for.
var members = []string{"msg:alice", "msg:bob", "msg:carol", "msg:dave", "msg:erin"}

// allNames are the names of which clients ask each node all the time.
var allNames = append([]string{plain, daily}, members...)

// fleet is a cluster of three nodes, each with clients of its own. Every request for values is recorded.
type fleet struct {
	*site
	nodes     []*node
	addresses []string // where the nodes reach each other
	loads     []*load
	knock     chan struct{}  // closed when no more knocks are sent
	wg        sync.WaitGroup // of knocks

	mu       sync.Mutex // guards the fields below
	requests []order.Request
	refusals []denied
}

// denied is a request that certainly got no values, and why.
type denied struct {
	name   string
	node   int
	sent   int64
	at     int64
	reason string
}

// newFleet starts three nodes and their clients, and waits until all have values.
func newFleet(t *testing.T, connect string, flags ...string) *fleet {
	t.Helper()
	f := newFleetSite(t, connect, flags...)
	for range 3 {
		n := f.node()
		n.listen = fmt.Sprintf("127.0.0.1:%d", zktest.Port(t)) // clients go on over restarts
		f.nodes, f.addresses = append(f.nodes, n), append(f.addresses, n.listen)
	}
	return f.begin()
}

// newFleetSite returns a fleet without nodes. Heartbeats of the other tests' nodes have gaps on a busy machine, after
// which a node takes no values for the confirming time.
func newFleetSite(t *testing.T, connect string, flags ...string) *fleet {
	slow := []string{"--heartbeat", "500ms", "--confirm-time", "2s"}
	return &fleet{site: newSite(t, connect, append(slow, flags...)...), knock: make(chan struct{})}
}

// begin starts the nodes and their clients. Each node reaches ZooKeeper over links of its own.
func (f *fleet) begin() *fleet {
	f.t.Helper()
	for _, n := range f.nodes {
		n.network()
		n.start()
	}
	for _, n := range f.nodes {
		n.ready()
	}
	f.sequence(plain, "--mode", "ordered")
	f.sequence(family, "--mode", "ordered", "--sections", "16")
	f.sequence(template, "--mode", "ordered", "--max-names", "4")
	f.t.Cleanup(f.end)
	for _, n := range f.nodes {
		for _, names := range [][]string{{plain}, allNames[1:]} {
			l := n.newLoad()
			l.add(4*time.Millisecond, callTimeout, func(c *client, round int) (int, error) {
				return f.ask(c, names[round%len(names)], round)
			})
			f.loads = append(f.loads, l)
		}
		f.wg.Go(func() { f.knocks(n) })
	}
	f.flows()
	return f
}

// ask takes values over a connection: mostly one, sometimes a list or a range.
func (f *fleet) ask(c *client, name string, round int) (int, error) {
	q := question{name: name, text: "NEXT " + name + "\n", n: 1, lines: 1}
	switch round % 25 {
	case 11:
		q = question{name: name, text: fmt.Sprintf("NEXT %s 20\n", name), n: 20, lines: 20}
	case 18:
		q = question{name: name, text: fmt.Sprintf("RANGE %s 7\n", name), n: 7, lines: 1, pair: true}
	}
	r := order.Request{Name: name, Node: c.node.id, Sent: f.ids.now()}
	got, err := q.exchange(c)
	r.Answered = f.ids.now()
	f.record(r, q, got, err)
	return len(got), err
}

// record adds a request to the history. got are the values of its answer, also those before an error.
func (f *fleet) record(r order.Request, q question, got []int64, err error) {
	asked := q.n
	if err != nil {
		q.n = len(got)
	}
	parts := q.answer(got, 1)
	if len(parts) == 0 && q.n > 0 {
		f.t.Errorf("%q is answered with %d", q.text, got)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, part := range parts {
		part.Node, part.Sent, part.Answered, part.Key = r.Node, r.Sent, r.Answered, r.Key
		f.requests = append(f.requests, part)
	}
	if err == nil {
		return
	}
	if q.mayHaveBeenServed(err) {
		r.Lost = int64(asked - len(got))
		f.requests = append(f.requests, r)
	}
	why, text := because(err)
	if text == "" {
		text = why
	}
	f.refusals = append(f.refusals, denied{r.Name, r.Node, r.Sent, r.Answered, text})
}

const (
	// knockEvery is the time between two knocks.
	knockEvery = 40 * time.Millisecond
	// knockTimeout is longer than any node stands still.
	knockTimeout = 30 * time.Second
)

// knocks sends each request on a new connection, whether those before were answered or not. So a node that stands
// still finds requests when it goes on, and must not answer them from what it remembers.
func (f *fleet) knocks(n *node) {
	tick := time.NewTicker(knockEvery)
	defer tick.Stop()
	for round := 0; ; round++ {
		select {
		case <-f.knock:
			return
		case <-tick.C:
		}
		name := plain
		if round%2 == 0 {
			name = allNames[round/2%len(allNames)]
		}
		f.wg.Go(func() {
			c := &client{node: n, timeout: knockTimeout}
			defer c.close()
			_, _ = f.ask(c, name, 0) // the error is recorded
		})
	}
}

// end stops the clients.
func (f *fleet) end() {
	select {
	case <-f.knock:
	default:
		close(f.knock)
	}
	for _, l := range f.loads {
		l.end()
	}
	f.wg.Wait()
}

// flows waits until clients of all nodes get values of all names.
func (f *fleet) flows() {
	f.t.Helper()
	for _, l := range f.loads {
		l.progress()
	}
}

// history returns what was recorded so far.
func (f *fleet) history() []order.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// check ends the load and fails the test if values came twice or went back, whichever nodes answered.
func (f *fleet) check() {
	f.t.Helper()
	f.end()
	all := f.history()
	for _, v := range order.Rising(all, func(r order.Request) string { return r.Name }) {
		f.t.Errorf("%s%s", v, around(all, v))
	}
	f.t.Logf("%d requests, %d failed: %v", len(all), len(f.refusals), f.reasons())
}

// around returns the requests of the name near a violation.
func around(all []order.Request, v order.Violation) string {
	var b strings.Builder
	for _, r := range all {
		near := func(at int64) bool { return r.Sent <= at+3e6 && at-3e6 <= max(r.Answered, r.Sent) }
		if r.Name == v.After.Name && (near(v.After.Sent) || near(v.Before.Answered)) && b.Len() < 10_000 {
			fmt.Fprintf(&b, "\n    %s", r)
		}
	}
	return b.String()
}

// reasons counts the requests that failed, by reason.
func (f *fleet) reasons() map[string]int {
	count := map[string]int{}
	for _, r := range f.refusals {
		count[digits.ReplaceAllString(r.reason, "N")]++
	}
	return count
}

// silence returns the longest time in which nobody got a value of a name, between from and now, and the name.
func (f *fleet) silence(from int64) (longest time.Duration, name string) {
	all := f.history()
	for _, n := range allNames {
		if d := order.Silence(all, n, from, f.ids.now()); d > longest {
			longest, name = d, n
		}
	}
	return longest, name
}

// silentFor fails the test if a name had no answers for longer than most since from.
func (f *fleet) silentFor(what string, from int64, most time.Duration) {
	f.t.Helper()
	d, name := f.silence(from)
	f.t.Logf("%s: no value of %s for %s", what, name, d.Round(time.Millisecond))
	if d > most {
		f.t.Errorf("%s: no value of %s for %s, want at most %s", what, name, d, most)
	}
}

// during returns the requests that were sent between two times to the nodes that pick chooses, and got values.
func (f *fleet) during(from, to int64, pick func(node int) bool) (got []order.Request) {
	for _, r := range f.history() {
		if r.Lost == 0 && from <= r.Sent && r.Sent <= to && pick(r.Node) {
			got = append(got, r)
		}
	}
	return got
}

var ownerField = regexp.MustCompile(` owner=(\S+) term=(\d+)`)

// owner returns the node that owns the section of a name: the one of the latest term that nodes tell of.
func (f *fleet) owner(name string) (owner *node) {
	f.t.Helper()
	eventually(f.t, name+" has an owner", func() bool {
		latest := 0
		for _, n := range f.nodes {
			line, err := n.ask("SEQ " + name)
			m := ownerField.FindStringSubmatch(line)
			if err != nil || m == nil {
				continue
			}
			if term, _ := strconv.Atoi(m[2]); term >= latest {
				if i := slices.Index(f.addresses, m[1]); i >= 0 {
					owner, latest = f.nodes[i], term
				}
			}
		}
		return owner != nil
	})
	return owner
}

// others returns the nodes but one.
func (f *fleet) others(but *node) []*node {
	return slices.DeleteFunc(slices.Clone(f.nodes), func(n *node) bool { return n == but })
}
