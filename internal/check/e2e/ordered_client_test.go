package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"context"
	"time"

	goclient "github.com/flaked/flaked/client"
	"github.com/flaked/flaked/internal/check/order"
)

// goClient is the number of the Go client in the history, in place of a node's.
const goClient = 9

// program starts a program that takes values of all names with the Go client, which asks the owners themselves.
func (f *fleet) program() *fleet {
	f.T.Helper()
	var addrs []string
	for _, n := range f.nodes {
		addrs = append(addrs, n.Listen)
	}
	source, err := goclient.New(goclient.Config{Addrs: addrs})
	if err != nil {
		f.T.Fatal(err)
	}
	f.T.Cleanup(source.Close)
	l := f.nodes[0].NewLoad()
	for range 3 {
		l.Add(2*time.Millisecond, harness.CallTimeout, func(_ *harness.Client, round int) (int, error) {
			ctx, cancel := context.WithTimeout(f.T.Context(), harness.CallTimeout)
			defer cancel()
			name := allNames[round%len(allNames)]
			r := order.Request{Name: name, Node: goClient, Sent: f.IDs.Now()}
			v, err := source.Sequence(name).Next(ctx)
			if r.First, r.Last, r.Answered = v, v, f.IDs.Now(); err != nil {
				r.Lost = 1 // at least: the client repeats what a node has not answered
			}
			f.Values.Add(r)
			return 1, err
		})
	}
	f.loads = append(f.loads, l)
	return f
}
