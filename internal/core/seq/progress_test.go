package seq

import (
	"testing"

	"github.com/flaked/flaked/coordinator"
)

// What a node says at its heartbeats in session 7, by what it has read.
func TestProgressSays(t *testing.T) {
	at := func(change, incarnation, session int64) *following {
		return &following{Change: coordinator.Change{Number: change, Incarnation: incarnation}, session: session}
	}
	for title, row := range map[string]struct {
		p    progress
		want string
	}{
		"it knows nothing":                    {noProgress(), "change 0 of incarnation 0, knows none"},
		"it remembers /seq":                   {progress{knowsState: true}, "change 0 of incarnation 0, compares"},
		"it has compared, and saved":          {progress{true, at(5, 0, 7), at(5, 0, 7), 1}, "change 5 of incarnation 0, compared in 0"},
		"the disk hangs":                      {progress{true, at(6, 0, 7), at(5, 0, 7), 1}, "change 5 of incarnation 0, compared in 0"},
		"it has saved nothing":                {progress{true, at(6, 0, 7), nil, 1}, "change 0 of incarnation 0, compared in 0"},
		"after a loss, before it has settled": {progress{true, at(6, 1, 7), at(5, 0, 7), 1}, "change 5 of incarnation 0, compared in 1"},
		"in a new session":                    {progress{true, at(6, 1, 6), at(6, 1, 6), 1}, "change 0 of incarnation 0, compares"},
	} {
		f := coordinator.Followed{Last: new(row.p.followed(7))}
		f.Compared, f.Compares = row.p.comparison(7)
		if got := told(f); got != row.want {
			t.Errorf("%s: %s", title, got)
		}
	}
}
