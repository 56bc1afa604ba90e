package e2e

import (
	"context"
	"time"

	goclient "github.com/flaked/flaked/client"
	"github.com/flaked/flaked/internal/check/order"
)

// goClient is the number of the Go client in the history, in place of a node's.
const goClient = 9

// program starts a program that takes values of all names with the Go client, which asks the owners themselves.
func (f *fleet) program() *fleet {
	f.t.Helper()
	var addrs []string
	for _, n := range f.nodes {
		addrs = append(addrs, n.listen)
	}
	source, err := goclient.New(goclient.Config{Addrs: addrs})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(source.Close)
	l := f.nodes[0].newLoad()
	for range 3 {
		l.add(2*time.Millisecond, callTimeout, func(_ *client, round int) (int, error) {
			ctx, cancel := context.WithTimeout(f.t.Context(), callTimeout)
			defer cancel()
			name := allNames[round%len(allNames)]
			r := order.Request{Name: name, Node: goClient, Sent: f.ids.now()}
			v, err := source.Sequence(name).Next(ctx)
			if r.First, r.Last, r.Answered = v, v, f.ids.now(); err != nil {
				r.Lost = 1 // at least: the client repeats what a node has not answered
			}
			f.values.add(r)
			return 1, err
		})
	}
	f.loads = append(f.loads, l)
	return f
}
