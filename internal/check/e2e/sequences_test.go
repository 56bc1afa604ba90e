package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"
)

// sequence is a named sequence of a site.
type sequence struct {
	site *site
	t    testing.TB
	name string
}

// sequence creates a sequence, once a node has made the record that all share.
func (s *site) sequence(name string, flags ...string) sequence {
	s.t.Helper()
	s.values.made(name, modeOf(flags))
	var r result
	made := within(patience, func() bool {
		r = s.command(append([]string{"seq", "create", name}, flags...)...)
		return r.code == 0
	})
	if !made {
		s.t.Fatalf("creating %s: %s", name, r.stderr)
	}
	return sequence{s, s.t, name}
}

// modeOf returns the mode that flags of `flaked seq create` choose.
func modeOf(flags []string) string {
	if i := slices.Index(flags, "--mode"); i >= 0 {
		return flags[i+1]
	}
	if slices.Contains(flags, "--scatter") {
		return scattered
	}
	return ""
}

// under asks a node for values, so many at a time, until the load is ended. Refusals are allowed.
func (q sequence) under(n *node, batch int) *load {
	l := n.newLoad()
	l.add(2*time.Millisecond, callTimeout, func(c *client, _ int) (int, error) { return c.values(list(q.name, batch)) })
	n.site.t.Cleanup(l.end)
	return l
}

// from takes count values and more from a node, one at a time. Refused requests are repeated.
func (q sequence) from(n *node, count int64) {
	q.t.Helper()
	l := q.under(n, 1)
	eventually(q.t, fmt.Sprintf("%s gives %d values of %s", n.name, count, q.name),
		func() bool { return l.answers() >= count })
	l.end()
}

// one returns a value, which it asks for on a new connection.
func (q sequence) one(n *node) (int64, error) {
	c := &client{node: n, timeout: callTimeout}
	defer c.close()
	got, err := q.site.request(c, next(q.name))
	if err != nil || len(got) != 1 {
		return 0, fmt.Errorf("%v %w", got, err)
	}
	return got[0], nil
}

// first waits for a value, and returns it.
func (q sequence) first(n *node) (v int64) {
	q.t.Helper()
	n.until("a value of "+q.name, func() (ok bool) {
		var err error
		v, err = q.one(n)
		return err == nil
	})
	return v
}

// highest returns the highest value that clients have received.
func (q sequence) highest() int64 { return q.site.values.highest(q.name) }

// next returns the first value that no node has taken.
func (q sequence) next() int64 {
	q.t.Helper()
	var doc struct {
		Next int64 `json:"next,string"`
	}
	r := q.site.command("seq", "show", q.name, "-o", "json")
	if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil || doc.Next <= 1 {
		q.t.Fatalf("seq show %s: %v: %s%s", q.name, err, r.stdout, r.stderr)
	}
	return doc.Next
}
