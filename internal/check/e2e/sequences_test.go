package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// values collects the values of one sequence from several connections.
type values struct {
	t    testing.TB
	name string

	mu    sync.Mutex // guards the fields below
	seen  map[int64]bool
	twice int
}

// add records a value. A value that comes twice is an error.
func (v *values) add(n int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.seen[n] {
		if v.twice++; v.twice <= 3 { // a few say enough
			v.t.Errorf("%d of %s is issued twice", n, v.name)
		}
	}
	v.seen[n] = true
}

// sequence creates a sequence, once a node has made the record that all share.
func (s *site) sequence(name string, flags ...string) *values {
	s.t.Helper()
	var r result
	made := within(patience, func() bool {
		r = s.command(append([]string{"seq", "create", name}, flags...)...)
		return r.code == 0
	})
	if !made {
		s.t.Fatalf("creating %s: %s", name, r.stderr)
	}
	return &values{t: s.t, name: name, seen: map[int64]bool{}}
}

// under asks a node for values, so many at a time, until the load is ended. Refusals are allowed.
func (v *values) under(n *node, batch int) *load {
	l := n.newLoad()
	l.add(2*time.Millisecond, callTimeout, func(c *client, _ int) (int, error) { return v.ask(c, batch) })
	n.site.t.Cleanup(l.end)
	return l
}

// ask takes so many values over a connection, by RANGE if count is below 0.
func (v *values) ask(c *client, count int) (int, error) {
	q := question{text: fmt.Sprintf("NEXT %s %d\n", v.name, count), n: count, lines: count}
	if count < 0 {
		q = question{text: fmt.Sprintf("RANGE %s %d\n", v.name, -count), n: -count, lines: 1, pair: true}
	}
	got, err := q.exchange(c)
	if q.pair && err == nil {
		for n := got[0] + 1; n < got[1]; n++ {
			v.add(n)
		}
	}
	for _, n := range got {
		v.add(n)
	}
	if err != nil {
		return len(got), err
	}
	return q.n, nil
}

// from takes count values and more from a node. Refused requests are repeated.
func (v *values) from(n *node, count int64) {
	v.t.Helper()
	l := v.under(n, 1)
	eventually(v.t, fmt.Sprintf("%s gives %d values of %s", n.name, count, v.name),
		func() bool { return l.answers() >= count })
	l.end()
}

// during asks a node for values for a time. Refusals are allowed.
func (v *values) during(n *node, d time.Duration, batch int) {
	l := v.under(n, batch)
	pass(v.t.Context(), d)
	l.end()
}
