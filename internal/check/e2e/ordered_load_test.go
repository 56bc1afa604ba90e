package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/check/order"
)

// template is of ordered sequences, and daily is one of them.
const template, daily = "day:*", "day:monday"

// allNames are the names of which clients ask each node all the time.
var allNames = append([]string{harness.Plain, daily}, harness.Members...)

// fleet is a cluster of three nodes, each with clients of its own.
type fleet struct {
	*harness.Site
	nodes     []*harness.Node
	addresses []string // where the nodes reach each other
	loads     []*harness.Load
	knock     chan struct{}  // closed when no more knocks are sent
	wg        sync.WaitGroup // of knocks
}

// newFleet starts three nodes and their clients, and waits until all have values.
func newFleet(t *testing.T, connect string, flags ...string) *fleet {
	t.Helper()
	f := newFleetSite(t, connect, flags...)
	for _, n := range f.OnPorts(3) {
		f.has(n, n.Listen)
	}
	return f.begin()
}

// has adds a node, which the others reach at an address.
func (f *fleet) has(n *harness.Node, address string) {
	f.nodes, f.addresses = append(f.nodes, n), append(f.addresses, address)
}

// newFleetSite returns a fleet without nodes. Heartbeats of the other tests' nodes have gaps on a busy machine, after
// which a node takes no values for the confirming time.
func newFleetSite(t *testing.T, connect string, flags ...string) *fleet {
	slow := []string{"--heartbeat", "500ms", "--confirm-time", "2s"}
	return &fleet{Site: harness.NewSite(t, connect, append(slow, flags...)...), knock: make(chan struct{})}
}

// begin starts the nodes and their clients. Each node reaches ZooKeeper over links of its own.
func (f *fleet) begin() *fleet {
	f.T.Helper()
	for _, n := range f.nodes {
		n.Network()
		n.Start()
	}
	for _, n := range f.nodes {
		n.Ready()
	}
	f.Sequence(harness.Plain, "--mode", "ordered")
	f.Sequence(harness.Family, "--mode", "ordered", "--sections", "16")
	f.Sequence(template, "--mode", "ordered", "--max-names", "4")
	f.T.Cleanup(f.end)
	for _, n := range f.nodes {
		for _, names := range [][]string{{harness.Plain}, allNames[1:]} {
			l := n.NewLoad()
			l.Add(4*time.Millisecond, harness.CallTimeout, func(c *harness.Client, round int) (int, error) {
				return c.Values(drawn(names[round%len(names)], round))
			})
			f.loads = append(f.loads, l)
		}
		f.wg.Go(func() { f.knocks(n) })
	}
	f.flows()
	return f
}

// drawn is a request of a client: mostly for one value, sometimes for a list or a range.
func drawn(name string, round int) harness.Question {
	switch round % 25 {
	case 11:
		return harness.List(name, 20)
	case 18:
		return harness.ValuesFrom(name, 7)
	}
	return harness.Next(name)
}

const (
	// knockEvery is the time between two knocks.
	knockEvery = 40 * time.Millisecond
	// knockTimeout is longer than any node stands still.
	knockTimeout = 30 * time.Second
)

// knocks sends each request on a new connection, whether those before were answered or not. So a node that stands
// still finds requests when it goes on, and must not answer them from what it remembers.
func (f *fleet) knocks(n *harness.Node) {
	tick := time.NewTicker(knockEvery)
	defer tick.Stop()
	for round := 0; ; round++ {
		select {
		case <-f.knock:
			return
		case <-tick.C:
		}
		name := harness.Plain
		if round%2 == 0 {
			name = allNames[round/2%len(allNames)]
		}
		f.wg.Go(func() {
			c := &harness.Client{Node: n, Timeout: knockTimeout}
			defer c.Close()
			_, _ = c.Values(harness.Next(name)) // the error is recorded
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
		l.End()
	}
	f.wg.Wait()
}

// flows waits until clients of all nodes get values of all names.
func (f *fleet) flows() {
	f.T.Helper()
	for _, l := range f.loads {
		l.Progress()
	}
}

// silence returns the longest time in which nobody got a value of a name, between from and now, and the name.
func (f *fleet) silence(from int64) (longest time.Duration, name string) {
	all := f.Values.All("")
	for _, n := range allNames {
		if d := order.Silence(all, n, from, f.IDs.Now()); d > longest {
			longest, name = d, n
		}
	}
	return longest, name
}

// silentFor fails the test if a name had no answers for longer than most since from.
func (f *fleet) silentFor(what string, from int64, most time.Duration) {
	f.T.Helper()
	d, name := f.silence(from)
	f.T.Logf("%s: no value of %s for %s", what, name, d.Round(time.Millisecond))
	if d > most {
		f.T.Errorf("%s: no value of %s for %s, want at most %s", what, name, d, most)
	}
}

// during returns the requests that were sent between two times to the nodes that pick chooses, and got values.
func (f *fleet) during(from, to int64, pick func(node int) bool) (got []order.Request) {
	for _, r := range f.Values.All("") {
		if r.Lost == 0 && from <= r.Sent && r.Sent <= to && pick(r.Node) {
			got = append(got, r)
		}
	}
	return got
}

var ownerField = regexp.MustCompile(` owner=(\S+) term=(\d+)`)

// owner returns the node that owns the section of a name: the one of the latest term that nodes tell of.
func (f *fleet) owner(name string) (owner *harness.Node) {
	f.T.Helper()
	harness.Eventually(f.T, name+" has an owner", func() bool {
		latest := 0
		for _, n := range f.nodes {
			line, err := n.Ask("SEQ " + name)
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
func (f *fleet) others(but *harness.Node) []*harness.Node {
	return slices.DeleteFunc(slices.Clone(f.nodes), func(n *harness.Node) bool { return n == but })
}
