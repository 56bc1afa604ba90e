package e2e

import (
	"errors"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/ownclock"
	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/worker"
)

// The clock of a node goes back by half a second. Each row gives a rollback policy, whether the
// node refuses, and how long a client gets no ID.
func TestRollbackPolicies(t *testing.T) {
	t.Parallel()
	zk := zktest.Shared(t)
	for _, row := range []struct {
		name    string
		flags   []string
		refuses bool
		// Limits on the time without an ID.
		longest, shortest time.Duration
	}{
		{"leaf", nil, true, time.Hour, 400 * time.Millisecond},
		{"refuse", []string{"--on-rollback", "refuse"}, true, time.Hour, 400 * time.Millisecond},
		{"wait", []string{"--on-rollback", "wait=2s"}, false, time.Hour, 400 * time.Millisecond},
		{"wait, not so long", []string{"--on-rollback", "wait=100ms"}, true, time.Hour, 300 * time.Millisecond},
		{"coast", []string{"--on-rollback", "coast"}, false, 300 * time.Millisecond, 0},
		{"rollback-bits", []string{"--layout", "leaf,time=40,rollback=1"}, false, 300 * time.Millisecond, 0},
		{"borrow", []string{"--borrow", "3s"}, false, 300 * time.Millisecond, 0},
		{"borrow, not so far", []string{"--borrow", "100ms"}, true, time.Hour, 300 * time.Millisecond},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, zktest.Chroot(t, zk), "--reserve", "3s").made(append([]string{"--confirm-time", "800ms"}, row.flags...)...)
			if len(row.flags) > 0 && row.flags[0] == "--layout" {
				var err error
				if s.ids.layout, err = worker.ParseLayout(row.flags[1]); err != nil {
					t.Fatal(err)
				}
			}
			clock := new(ownclock.Clock)
			n := s.node().on(clock).start().ready()
			// The clock must not go back below the floor of this tenure.
			first := n.time()
			n.until("a second of service", func() bool { return n.time().Sub(first) > time.Second })
			n.get(1)
			clock.Step(-500 * time.Millisecond)
			after, refused, gap := n.over(time.Second)
			if (refused > 0) != row.refuses || gap > row.longest || gap < row.shortest {
				t.Errorf("refused %d times, and %s without an ID", refused, gap)
			}
			if f, err := s.ids.layout.Decode(after); err != nil || (f.Rollback == 1) != (s.ids.layout.RollbackBits > 0) {
				t.Errorf("%+v, %v", f, err)
			}
			n.kill()
			n.start().ready().get(100)
		})
	}
}

// over asks for single IDs for time d. It returns the last ID, the number of refusals and the
// longest time without an ID.
func (n *node) over(d time.Duration) (last worker.ID, refused int, gap time.Duration) {
	t := n.site.t
	t.Helper()
	c, err := n.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for began, got := time.Now(), time.Now(); time.Since(began) < d; {
		c.last = 0 // with a rollback field the IDs of a connection may go down
		ids, err := c.get(1)
		gap = max(gap, time.Since(got))
		var no refusal
		switch {
		case err == nil:
			last, got = ids[0], time.Now()
		case errors.As(err, &no):
			refused++
		default:
			t.Fatal(err)
		}
	}
	return last, refused, gap
}
