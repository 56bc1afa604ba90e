package ordered

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/timeguard"
)

// seen is a view of a record of this owner and incarnation at a version, whose read was answered at this second.
func seen(owner string, incarnation int64, version int32, second int64) mode.View {
	r := record.Record{Owner: owner, Nonce: owner, Incarnation: incarnation, Mode: record.Ordered}
	r.HoldMs = 10_000
	return mode.View{
		Snapshot: record.Snapshot{
			Cluster: &record.Cluster{Incarnation: 1}, Record: &r, Stat: store.Stat{Version: version},
		},
		AnsweredAt: timeguard.Moment{Least: second * int64(time.Second)},
	}
}

// A node takes a section over when it has seen the record unchanged for the lease, or when nobody can be the owner.
func TestFreeIn(t *testing.T) {
	for name, c := range map[string]struct {
		first, last mode.View
		session     int64 // of the last read. The first one was in session 1
		ended       string
		want        time.Duration
	}{
		"the record is unchanged":     {seen("o", 1, 3, 0), seen("o", 1, 3, 4), 1, "", 6 * time.Second},
		"the owner has renewed":       {seen("o", 1, 3, 0), seen("o", 1, 4, 4), 1, "", 10 * time.Second},
		"there is a new session":      {seen("o", 1, 3, 0), seen("o", 1, 3, 4), 2, "", 10 * time.Second},
		"nobody owns it":              {seen("", 1, 3, 0), seen("", 1, 3, 4), 1, "", 0},
		"this node was the owner":     {seen("o", 1, 3, 0), seen("o", 1, 3, 4), 1, "o", 0},
		"an owner may be lost":        {seen("", 0, 3, 0), seen("", 0, 3, 4), 1, "", 6 * time.Second},
		"this node's own may be lost": {seen("o", 0, 3, 0), seen("o", 0, 3, 4), 1, "o", 6 * time.Second},
	} {
		var o observation
		o.update(c.first, 1)
		o.update(c.last, c.session)
		if got := o.freeIn(c.last, c.ended, 4*int64(time.Second)); got != c.want {
			t.Errorf("%s: %s, not %s", name, got, c.want)
		}
	}
}

func TestLease(t *testing.T) {
	const s = int64(time.Second)
	l := newLease(mode.Write{Write: record.Write{Record: *seen("o", 1, 3, 0).Record}, Session: 1}, 2*s)
	for now, want := range map[int64]struct{ valid, renews bool }{
		2 * s: {true, false}, 4 * s: {true, true}, 11*s - 1: {true, true}, 11 * s: {false, true},
	} {
		if valid, renews := l.valid(now), l.mayRenew(now, 10*time.Second); valid != want.valid || renews != want.renews {
			t.Errorf("at %d ns: valid %v, may renew %v", now, valid, renews)
		}
	}
	if l.ending = true; l.valid(2 * s) {
		t.Error("an owner that gives the section back issues from it")
	}
	for name, c := range map[string]struct {
		v    mode.View
		want bool
	}{
		"its own record":         {seen("o", 1, 9, 0), true},
		"another owner's":        {seen("x", 1, 9, 0), false},
		"an earlier incarnation": {seen("o", 0, 9, 0), false},
	} {
		if l.survives(c.v) != c.want {
			t.Errorf("%s: %v", name, !c.want)
		}
	}
}

// Each lane counts over all positions of the owner. A block that does not follow the last one makes all begin there.
func TestCounters(t *testing.T) {
	var c counters
	issue := func(lane int, n, want int64) {
		t.Helper()
		p, ok := c.issue(lane, n)
		if ok != (want >= 0) || ok && p != want {
			t.Errorf("lane %d gets %d at %d, %v, not at %d", lane, n, p, ok, want)
		}
	}
	c.begin(positions.Block{First: 100, End: 110})
	issue(0, 4, 100)
	issue(0, 7, -1)
	issue(3, 2, 100) // a lane of its own
	if b := c.unissued(); b != (positions.Block{First: 104, End: 110}) {
		t.Errorf("no lane has issued %v", b)
	}
	c.add(positions.Block{First: 110, End: 120})
	issue(0, 7, 104)
	c.skipTo(115) // an operator has raised the next value
	issue(0, 1, 115)
	issue(3, 1, 115)
	c.add(positions.Block{First: 500, End: 510})
	issue(0, 1, 500)
	issue(7, 10, 500)
	issue(7, 1, -1)
}
