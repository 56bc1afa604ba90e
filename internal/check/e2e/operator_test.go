package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// command runs a command of the shipped binary with the site's ZooKeeper.
func (s *site) command(args ...string) result {
	s.t.Helper()
	return execute(s.t, shipped.binary(s.t), append(args, "--zk", s.connect)...)
}

// wants fails the test unless the command ended with the exit code and its output contains the
// text.
func (r result) wants(t testing.TB, code int, text string) {
	t.Helper()
	if r.code != code || !strings.Contains(r.stdout+r.stderr, text) {
		t.Errorf("exit %d, want %d and %q:\n%s%s", r.code, code, text, r.stdout, r.stderr)
	}
}

// All workers are held and the machine of one is gone. An operator releases its worker, and another
// node acquires it when the lease has expired.
func TestOperatorReleasesWorkersOfLostNodes(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--lease", "10s").laidOut(twoWorkers)
	a, b := s.started(), s.started()
	a.ready().get(50)
	b.ready().get(50)
	wasB := b.identity()
	b.kill()
	c := s.started()
	c.fails(1, `all 2 workers are held`)
	number := fmt.Sprint(wasB.worker)
	s.command("workers", "release", number, "--confirm", "release worker "+number+" of "+b.name).wants(t, 0,
		"worker "+number+" was released from "+b.name)
	eventually(t, "free", func() bool {
		r := s.command("status", "-o", "json")
		var report struct{ Workers []struct{ State string } }
		return json.Unmarshal([]byte(r.stdout), &report) == nil && report.Workers[wasB.worker].State == "free"
	})
	c.start().ready().get(50)
	if id := c.identity(); id.worker != wasB.worker || id.uuid == wasB.uuid {
		t.Errorf("%s is %+v", c.name, id)
	}
	// If b comes back nevertheless, it does not get its old worker.
	b.start().fails(1, `all 2 workers are held`)
}
