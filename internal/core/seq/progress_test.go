package seq

import (
	"testing"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/seq/record"
)

// What a node says at its heartbeats in session 7, by what it has read.
func TestProgressSays(t *testing.T) {
	at := func(change, incarnation, session int64) *following {
		return &following{Change: coordinator.Change{Number: change, Incarnation: incarnation}, session: session}
	}
	came := func(compared, saved *following) progress {
		return progress{knowsState: true, compared: compared, saved: saved, knewAllAt: 1}
	}
	for title, row := range map[string]struct {
		p    progress
		want string
	}{
		"it knows nothing":                    {noProgress(), "change 0 of incarnation 0, knows none"},
		"it remembers /seq":                   {progress{knowsState: true}, "change 0 of incarnation 0, compares"},
		"it has compared, and saved":          {came(at(5, 0, 7), at(5, 0, 7)), "change 5 of incarnation 0, compared in 0"},
		"the disk hangs":                      {came(at(6, 0, 7), at(5, 0, 7)), "change 5 of incarnation 0, compared in 0"},
		"it has saved nothing":                {came(at(6, 0, 7), nil), "change 0 of incarnation 0, compared in 0"},
		"after a loss, before it has settled": {came(at(6, 1, 7), at(5, 0, 7)), "change 5 of incarnation 0, compared in 1"},
		"in a new session":                    {came(at(6, 1, 6), at(6, 1, 6)), "change 0 of incarnation 0, compares"},
	} {
		f := coordinator.Followed{Last: new(row.p.followed(7))}
		f.Compared, f.Compares = row.p.comparison(7)
		if got := told(f); got != row.want {
			t.Errorf("%s: %s", title, got)
		}
	}
}

// A write of the witness file ends with change 6 of session 7. Operators have heard of change 5.
func TestProgressSaves(t *testing.T) {
	at := func(incarnation, session int64, st record.State) *following {
		return &following{coordinator.Change{Number: st.Changes, Incarnation: incarnation}, session, st}
	}
	changes := func(n int64) record.State { return record.State{Cluster: "c", Changes: n} }
	for title, row := range map[string]struct {
		succeeds bool
		now      *following // how far the node is by then
		want     int64
	}{
		"it succeeds":           {true, at(0, 7, changes(6)), 6},
		"with another change":   {true, at(0, 7, changes(7)), 6},
		"it fails":              {false, at(0, 7, changes(6)), 5},
		"in a new incarnation":  {true, at(1, 7, changes(6)), 5},
		"in a new session":      {true, at(0, 8, changes(6)), 5},
		"after another jump":    {true, at(0, 7, record.State{Cluster: "c", Changes: 6, Jumped: 1}), 5},
		"in another cluster":    {true, at(0, 7, record.State{Cluster: "d", Changes: 6}), 5},
		"when it knows no /seq": {true, nil, 5},
	} {
		p, f := noProgress(), at(0, 7, changes(6))
		p.saved = at(0, 7, changes(5))
		p.compare(f)
		if p.follow(f, 1); !p.saveDue(f, 2) || p.followed(7).Number != 5 {
			t.Errorf("%s: %+v before the write", title, p)
		}
		if p.beginSave(f, 2); p.saveDue(f, 3) {
			t.Errorf("%s: a second write begins", title)
		}
		if p.endSave(row.succeeds, row.now); p.followed(7).Number != row.want {
			t.Errorf("%s: operators hear of change %d", title, p.followed(7).Number)
		}
		if due := p.saveDue(f, 3); due != (row.want == 5) || !p.saveDue(f, 2+int64(saveEvery)) {
			t.Errorf("%s: another write is due: %t", title, due)
		}
	}
}
