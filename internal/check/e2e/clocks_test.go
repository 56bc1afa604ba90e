package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/ownclock"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// time returns the time of the clock by which the node makes IDs.
func (n *node) time() time.Time {
	n.site.t.Helper()
	line, err := n.ask("TIME")
	var s, us int64
	if err == nil {
		_, err = fmt.Sscan(line, &s, &us)
	}
	if err != nil {
		n.site.t.Fatalf("%s: TIME: %q %v", n.name, line, err)
	}
	return time.Unix(s, us*1000)
}

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
			s := newSite(t, zktest.Chroot(t, zk), "--reserve",
				"3s").made(append([]string{"--confirm-time", "800ms"}, row.flags...)...)
			if len(row.flags) > 0 && row.flags[0] == "--layout" {
				s.laidOut(row.flags[1])
			}
			clock := new(ownclock.Clock)
			n := s.node().on(clock).start().ready()
			// The clock must not go back below the floor of this tenure.
			first := n.time()
			n.until("a second of service", func() bool { return n.time().Sub(first) > time.Second })
			load := n.clients(1)
			load.progress()
			before := n.time()
			clock.Step(-500 * time.Millisecond)
			n.until("its clock has caught up", func() bool { return n.time().Sub(before) > 200*time.Millisecond })
			load.progress()
			load.end()
			if refused := len(load.misses) > 0; refused != row.refuses || load.gap > row.longest ||
				load.gap < row.shortest {
				t.Errorf("refused: %v %+v, and %s without an ID", refused, load.misses, load.gap)
			}
			if f, err := s.ids.layout.Decode(n.get(1)[0]); err != nil ||
				(f.Rollback == 1) != (s.ids.layout.RollbackBits > 0) {
				t.Errorf("%+v, %v", f, err)
			}
			n.kill()
			n.start().ready().get(100)
		})
	}
}
