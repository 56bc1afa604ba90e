//go:build unix

package harness

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"
)

// Sequence is a named sequence of a site.
type Sequence struct {
	site *Site
	T    testing.TB
	Name string
}

// Sequence creates a sequence, once a node has made the record that all share.
func (s *Site) Sequence(name string, flags ...string) Sequence {
	s.T.Helper()
	s.Values.Made(name, ModeOf(flags))
	var r Result
	made := Within(Patience, func() bool {
		r = s.Command(append([]string{"seq", "create", name}, flags...)...)
		return r.Code == 0
	})
	if !made {
		s.T.Fatalf("creating %s: %s", name, r.Stderr)
	}
	return s.Named(s.T, name)
}

// Named returns a sequence that exists, for a test.
func (s *Site) Named(t testing.TB, name string) Sequence { return Sequence{s, t, name} }

// ModeOf returns the mode that flags of `flaked seq create` choose.
func ModeOf(flags []string) string {
	if i := slices.Index(flags, "--mode"); i >= 0 {
		return flags[i+1]
	}
	if slices.Contains(flags, "--scatter") {
		return scattered
	}
	return ""
}

// Under asks a node for values, so many at a time, until the load is ended. Refusals are allowed.
func (q Sequence) Under(n *Node, batch int) *Load {
	l := n.NewLoad()
	l.Add(2*time.Millisecond, CallTimeout, func(c *Client, _ int) (int, error) { return c.Values(List(q.Name, batch)) })
	n.Site.T.Cleanup(l.End)
	return l
}

// From takes count values and more from a node, one at a time. Refused requests are repeated.
func (q Sequence) From(n *Node, count int64) {
	q.T.Helper()
	l := q.Under(n, 1)
	Eventually(q.T, fmt.Sprintf("%s gives %d values of %s", n.Name, count, q.Name),
		func() bool { return l.Answers() >= count })
	l.End()
}

// One returns a value, which it asks for on a new connection.
func (q Sequence) One(n *Node) (int64, error) {
	c := &Client{Node: n, Timeout: CallTimeout}
	defer c.Close()
	got, err := q.site.Request(c, Next(q.Name))
	if err != nil || len(got) != 1 {
		return 0, fmt.Errorf("%v %w", got, err)
	}
	return got[0], nil
}

// First waits for a value, and returns it.
func (q Sequence) First(n *Node) (v int64) {
	q.T.Helper()
	n.Until("a value of "+q.Name, func() (ok bool) {
		var err error
		v, err = q.One(n)
		return err == nil
	})
	return v
}

// Highest returns the highest value that clients have received.
func (q Sequence) Highest() int64 { return q.site.Values.Highest(q.Name) }

// Next returns the first value that no node has taken.
func (q Sequence) Next() int64 {
	q.T.Helper()
	var doc struct {
		Next int64 `json:"next,string"`
	}
	r := q.site.Command("seq", "show", q.Name, "-o", "json")
	if err := json.Unmarshal([]byte(r.Stdout), &doc); err != nil || doc.Next <= 1 {
		q.T.Fatalf("seq show %s: %v: %s%s", q.Name, err, r.Stdout, r.Stderr)
	}
	return doc.Next
}
