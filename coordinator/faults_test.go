package coordinator

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/store"
)

// In TestNodeRecoversFromEveryFailedCall each call of each step fails, before or after the server applies it. In some
// runs all later calls of the step fail, too. Then the node goes on, in the same process or in a new one.

type faultCase struct {
	name string
	// make returns a node that is ready for the step.
	make func(l *lab) *member
	step func(m *member) error
	// over: the step ends the holding, so the node is down after it.
	over bool
}

var faultCases = []faultCase{
	{name: "register on a new cluster",
		make: func(l *lab) *member { return l.node("A") },
		step: (*member).start},
	{name: "register, slots and tickets left by others",
		make: func(l *lab) *member {
			b, c := l.serving("B"), l.serving("C")
			b.must(b.leave())
			c.crash()
			l.expire()
			l.pass(2 * time.Minute)
			return l.node("A")
		},
		step: (*member).start},
	{name: "register where a slot was lost",
		make: func(l *lab) *member {
			b := l.serving("B")
			b.must(b.leave())
			l.remove(slotPath(1))
			l.remove(workersPath + "/0000")
			return l.node("A")
		},
		step: (*member).start},
	{name: "resume",
		make: func(l *lab) *member {
			a := l.serving("A")
			l.serve(10 * time.Second)
			a.crash()
			return a
		},
		step: (*member).start},
	{name: "resume after a clean stop, ticket gone",
		make: func(l *lab) *member {
			a := l.serving("A")
			a.must(a.halt())
			l.remove(a.disk.claim.Ticket)
			return a
		},
		step: (*member).start},
	{name: "resume of a pending grant",
		make: func(l *lab) *member {
			a := l.node("A")
			// The first multi creates the slot, the second acquires it.
			a.hook = faulty(store.FailAfter, 1, 1, touching("multi", slotPath(0)))
			if a.start() == nil || a.disk.claim.PendingNonce == "" {
				l.Fatal("nothing is pending")
			}
			a.hook = nil
			a.crash()
			return a
		},
		step: (*member).start},
	{name: "heartbeat",
		make: func(l *lab) *member { return l.serving("A") },
		step: beatOnly},
	{name: "heartbeat that confirms",
		make: func(l *lab) *member {
			a := l.node("A")
			a.must(a.register())
			l.pass(labConfirm)
			return a
		},
		step: beatOnly},
	{name: "heartbeat after a start from the cache",
		make: func(l *lab) *member {
			a := l.serving("A")
			a.crash()
			a.startAlone()
			return a
		},
		step: beatOnly},
	{name: "heartbeat after the lease ran out",
		make: func(l *lab) *member {
			a := l.serving("A")
			l.pass(time.Hour)
			return a
		},
		step: beatOnly},
	{name: "heartbeat that finds its slot lost",
		make: func(l *lab) *member {
			a := l.serving("A")
			l.remove(slotPath(0))
			return a
		},
		step: beatOnly},
	{name: "heartbeat that finds all lost",
		make: func(l *lab) *member {
			a := l.serving("A")
			l.wipe()
			return a
		},
		step: beatOnly},
	{name: "stop", over: true,
		make: func(l *lab) *member { return l.serving("A") },
		step: (*member).halt},
	{name: "release", over: true,
		make: func(l *lab) *member { return l.serving("A") },
		step: (*member).leave},
}

func beatOnly(m *member) error {
	_, err := m.beat()
	return err
}

// calls returns the number of calls to the store that the step makes.
func (tc faultCase) calls(t *testing.T) int {
	l := newLab(t, 4)
	m := tc.make(l)
	n := 0
	m.hook = func(store.Call) store.Fault { n++; return store.NoFault }
	m.must(tc.step(m))
	m.hook = nil
	return n
}

func TestNodeRecoversFromEveryFailedCall(t *testing.T) {
	for _, tc := range faultCases {
		t.Run(tc.name, func(t *testing.T) {
			n := tc.calls(t)
			t.Logf("%d calls", n)
			for i := range 8 * n {
				f := failure{call: i / 8, applied: i&1 != 0, lasts: i&2 != 0, dies: i&4 != 0}
				tc.fail(t, &f)
				if t.Failed() {
					t.Fatalf("%+v", f)
				}
			}
		})
	}
}

// failure says how a step fails. call is the index of the failing call, and what names it. applied: the server has
// applied that call. lasts: all later calls of the step fail, before they are applied. dies: the process is killed
// after the step.
type failure struct {
	call                 int
	what                 string
	applied, lasts, dies bool
}

func (tc faultCase) fail(t *testing.T, f *failure) {
	l := newLab(t, 4)
	m := tc.make(l)
	n := 0
	m.hook = func(c store.Call) store.Fault {
		n++
		switch {
		case n == f.call+1 && f.applied:
			f.what = c.Op + " " + c.Path
			return store.FailAfter
		case n == f.call+1 || n > f.call && f.lasts:
			f.what = cmp.Or(f.what, c.Op+" "+c.Path)
			return store.FailBefore
		}
		return store.NoFault
	}
	err := tc.step(m)
	m.hook = nil
	if err != nil && !errors.Is(err, store.ErrUnreachable) {
		t.Error(err)
	}
	if f.dies && m.up {
		m.crash()
	}
	if err := m.goOn(tc.over); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	m.accounts(f.dies || tc.over, err != nil && tc.over)
	l.disjoint()
}

// goOn lets the node go on after the fault until it issues an ID. It returns an error if that takes more than ten
// heartbeats.
func (m *member) goOn(over bool) error {
	m.pass(time.Second)
	m.expire()
	if !m.up {
		if err := m.start(); err != nil {
			return err
		}
	}
	for range 10 {
		m.pass(DefaultHeartbeat)
		if _, err := m.beat(); err != nil {
			return err
		}
		if m.issue() {
			return nil
		}
	}
	return errors.New("serves nothing")
}

// accounts checks that the node has one slot and at most one ticket. If its process ended (dies), that process may have
// left tickets that it had not saved. If its stop or release failed (kept), a second slot may stay until its lease
// bound.
func (m *member) accounts(dies, kept bool) {
	m.Helper()
	var mine []string
	for w := range m.cl.Slots {
		data, _, err := m.admin.Get(m.Context(), slotPath(w))
		if s := parseSlot(data); err == nil && strings.HasPrefix(s.Node, "A-") && !s.Released {
			mine = append(mine, slotPath(w))
		}
	}
	var tickets []string
	for _, name := range m.children(ticketsPath) {
		data, _, err := m.admin.Get(m.Context(), ticketsPath+"/"+name)
		var t ticket
		if err == nil && json.Unmarshal(data, &t) == nil && t.Name == "A" {
			tickets = append(tickets, name)
		}
	}
	if len(mine) != 1 && !(kept && len(mine) == 2) {
		m.Errorf("it has the slots %q", mine)
	}
	if len(tickets) > 1 && !dies {
		m.Errorf("it has the tickets %q", tickets)
	}
}
