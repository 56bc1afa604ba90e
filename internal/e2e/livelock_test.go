package e2e

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// After kill -9 the node's live lock stays until its session expires. The restarted node
// recognises the lock as its own and serves at once.
func TestRestartDoesNotWaitForItsOldSession(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--zk-session-timeout", "10s")
	records := s.records()
	n := s.started().ready()
	before := n.identity()
	for range 3 {
		n.get(100)
		lock, ok := records.read(livePath(before.worker), nil)
		if !ok {
			t.Fatal("a node that serves is not live")
		}
		n.kill()
		began := time.Now()
		n.start().ready()
		took := time.Since(began)
		n.get(100)
		after := n.identity()
		if after.worker != before.worker || after.uuid != before.uuid || after.term != before.term+1 {
			t.Errorf("%+v after %+v", after, before)
		}
		// The node waits for its reserved bound, half a second, and for nothing else.
		if took > 5*time.Second {
			t.Errorf("ready after %s: did it wait for the old session?", took)
		}
		n.until("the lock is of the new session", func() bool {
			now, ok := records.read(livePath(before.worker), nil)
			return ok && now.Owner != lock.Owner
		})
		// The old session ends after ten seconds.
		if took := time.Since(began); took > 7*time.Second {
			t.Errorf("live after %s: did it wait for the old session?", took)
		}
		before = after
	}
	status, code := s.status()
	if code != 0 || status.Summary.Live != 1 || status.Summary.Held != 1 {
		t.Errorf("status: exit %d, %+v", code, status.Summary)
	}
}
