//go:build linux

package machines

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/testkit/harness"
)

const (
	// manyNames is the number of names, and manyClients that of the clients that ask for their values.
	manyNames, manyClients = 1000, 4
	// manyGap is the number of values of a name that a power cut costs, besides those of unanswered requests, while the
	// name is asked for once a second: docs/performance.md.
	manyGap = 2 + manyNames/1000
)

// many are the sequences of a template. A node goes on with them after a boot without ZooKeeper.
type many struct{ node *harness.Node }

// manyAt makes the template, uses each name for the first time, and waits until the machine's disk has the records.
func manyAt(m *machine) many {
	m.t.Helper()
	site := m.node.Site
	// A block outlasts the round in which all take their next ones.
	site.Sequence("many:*", "--hold", "forever", "--block", "200")
	u := many{m.node}
	u.goOn()
	// A node reports that it has followed a change when it has saved the records that it knows (S25).
	site.Command("seq", "set", "order", "--ceiling", "900000").Wants(m.t, 0, "")
	records, worker := site.Records(), m.node.Worker()
	var state record.State
	records.Read("/seq", &state)
	harness.Eventually(m.t, "the node has followed the change", func() bool {
		last := records.Slot(worker).Last
		return last != nil && last.Number >= state.Changes
	})
	return u
}

// name returns the name that a client asks for in a round.
func (u many) name(client, round int) string {
	return fmt.Sprintf("many:%d", client+round%(manyNames/manyClients)*manyClients)
}

// load asks for each name about once a second until the returned function is called.
func (u many) load() (end func()) {
	l := u.node.NewLoad()
	for client := range manyClients {
		l.Add(time.Second*manyClients/manyNames, harness.CallTimeout, func(c *harness.Client, round int) (int, error) {
			return c.Values(harness.Next(u.name(client, round)))
		})
	}
	u.node.Site.T.Cleanup(l.End)
	return l.End
}

// goOn asks for a value of each name. It returns the largest gap before one of them: values that were neither answered
// nor asked for by a request of unknown outcome.
func (u many) goOn() (gap int64) {
	t, site := u.node.Site.T, u.node.Site
	t.Helper()
	type past struct{ last, lost int64 } // the last answer, and the values of lost requests since then
	before := map[string]past{}
	for _, r := range site.Values.All("") { // those of one name in the order in which its only client made them
		if r.Lost > 0 {
			before[r.Name] = past{before[r.Name].last, before[r.Name].lost + r.Lost}
		} else {
			before[r.Name] = past{r.Last, 0}
		}
	}
	var clients sync.WaitGroup
	gaps := make([]int64, manyClients)
	for client := range manyClients {
		clients.Go(func() {
			c := &harness.Client{Node: u.node, Timeout: harness.CallTimeout}
			defer c.Close()
			for round := range manyNames / manyClients {
				name := u.name(client, round)
				var got []int64
				var err error
				if !harness.Within(2*time.Minute, func() bool {
					got, err = site.Request(c, harness.Next(name))
					return err == nil
				}) {
					t.Errorf("no value of %s: %v", name, err)
					return
				}
				p := before[name]
				gaps[client] = max(gaps[client], got[0]-p.last-p.lost-1)
			}
		})
	}
	clients.Wait()
	return slices.Max(gaps)
}
