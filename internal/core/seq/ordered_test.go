package seq

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/seq/mode"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/ordered"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/sequence"
)

// newTicks returns a stage with some nodes that know the ordered sequence ticks, whose lease is this. They cannot ask
// each other.
func newTicks(t *testing.T, lease time.Duration, nodes int) (*stage, []*actor) {
	s := newStage(t)
	for range nodes {
		s.node()
	}
	s.ordered("ticks", lease, 1000)
	s.run(4 * time.Second)
	return s, s.nodes
}

func (s *stage) ordered(name string, lease time.Duration, ceiling int64) {
	s.t.Helper()
	set := settings(ceiling)
	set.HoldMs, set.Block = lease.Milliseconds(), 2000
	s.creates(operator.Definition{Name: name, Mode: record.Ordered, Map: plain(), Settings: set, StartGiven: true})
}

// pass lets time pass. Each node has a round when it must, and at each heartbeat.
func (s *stage) pass(d time.Duration) {
	for end := s.now + d.Milliseconds(); s.now < end; {
		s.now += 10
		for _, a := range s.nodes {
			a.fly()
			select {
			case <-a.is.issuer.alarms.woken:
				_ = a.round()
			default:
				if a.is.issuer.alarms.arm(a.is.issuer.now(), time.Hour) == 0 || s.now%3000 == 0 {
					_ = a.round()
				}
			}
		}
	}
}

// fly makes the requests that wait to be passed on.
func (a *actor) fly() {
	for len(a.flights) > 0 {
		f := a.flights[0]
		a.flights = a.flights[1:]
		f()
	}
}

// contest is requests for one sequence that nodes get one after the other, each when it has answered the last one.
type contest struct {
	*stage
	name    string
	highest int64
	calls   map[*actor]*call
	before  map[*actor]int64 // highest when the call was made
	values  map[*actor]int   // that the node has answered
	longest map[*actor]int64 // ms that an answer took
	since   map[*actor]int64
}

func (s *stage) contest(name string) *contest {
	return &contest{
		stage: s, name: name, calls: map[*actor]*call{}, before: map[*actor]int64{}, values: map[*actor]int{},
		longest: map[*actor]int64{}, since: map[*actor]int64{},
	}
}

// run lets time pass while nodes are asked. It fails the test if a value is not above all that were answered before its
// request was sent.
func (c *contest) run(d time.Duration, nodes ...*actor) {
	c.t.Helper()
	for end := c.now + d.Milliseconds(); c.now < end; c.pass(10 * time.Millisecond) {
		for _, a := range nodes {
			c.ask(a)
		}
	}
}

func (c *contest) ask(a *actor) {
	c.t.Helper()
	one := c.calls[a]
	if one == nil {
		c.before[a], c.since[a] = c.highest, c.now
		one = a.ask(c.name, 1, true)
	}
	c.calls[a] = one.again()
	if !one.done {
		return
	}
	c.longest[a] = max(c.longest[a], c.now-c.since[a])
	if c.calls[a] = nil; one.err != nil {
		return
	}
	v := int64(one.runs[0].First)
	if v <= c.before[a] {
		c.t.Fatalf("at %d ms: %s gives %d, after %d was answered", c.now, a.slot, v, c.before[a])
	}
	c.highest = max(c.highest, v)
	c.values[a]++
}

// sentAt returns when the owner's last renewal was sent, ns of AtMost.
func sentAt(m *ordered.Section) int64 {
	d := m.Known.Hold()
	return m.LeaseUntil() - int64(d-d/10)
}

// lapses returns how many leases of the owner have ended before they were renewed.
func lapses(m *ordered.Section) int64 {
	var u mode.Use
	m.Report(&u)
	return u.Lapses
}

// owner makes a node the owner of a sequence.
func (a *actor) owner(name string) *ordered.Section {
	a.t.Helper()
	a.ask(name, 1, true).first()
	m := a.is.issuer.series.find(name).Issuing.(*ordered.Section)
	if !m.Owns() {
		a.t.Fatal("the node does not own the sequence")
	}
	return m
}

// SEQ at a node that does not know the sequence yet does not make the node the owner.
func TestShowDoesNotTakeAnOrderedSequence(t *testing.T) {
	s, nodes := newTicks(t, record.DefaultLease, 1)
	a := nodes[0]
	a.is.issuer.series.remove(func(*series) bool { return true })
	woken := false
	var w sequence.Wait
	_, _ = a.is.issuer.Show(&w, []byte("ticks"), func() { woken = true })
	s.pass(100 * time.Millisecond)
	line, err := a.is.issuer.Show(&w, []byte("ticks"), func() {})
	if !woken || err != nil {
		t.Errorf("%s, %v, woken: %v", line, err, woken)
	}
	if r := s.view("ticks").Record; r.Owner != "" || r.Term != 0 || r.Next != 0 {
		t.Errorf("owner %q of term %d, and %d positions are taken", r.Owner, r.Term, r.Next)
	}
}
