package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/worker"
)

// command runs a command of the shipped binary with the site's ZooKeeper.
func (s *site) command(args ...string) result {
	s.t.Helper()
	return execute(s.t, s.build.binary(s.t), append(args, "--zk", s.connect)...)
}

// wants fails the test unless the command ended with the exit code and its output contains the
// text.
func (r result) wants(t testing.TB, code int, text string) {
	t.Helper()
	if r.code != code || !strings.Contains(r.stdout+r.stderr, text) {
		t.Errorf("exit %d, want %d and %q:\n%s%s", r.code, code, text, r.stdout, r.stderr)
	}
}

// All workers are held and some of their nodes are gone. An operator can release the workers and
// freeze registration.
func TestOperatorReleasesWorkersOfLostNodes(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--layout", twoWorkers, "--admin", "127.0.0.1:0")
	var err error
	if s.ids.layout, err = worker.ParseLayout(twoWorkers); err != nil {
		t.Fatal(err)
	}
	a, b := s.started(), s.started()
	a.ready().get(50)
	b.ready().get(50)
	wasA, wasB := a.identity(), b.identity()
	free := func(n *node, w int) {
		t.Helper()
		number := fmt.Sprint(w)
		s.command("workers", "release", number, "--lower-bound").wants(t, 2, "IDs will be issued twice. Nothing was changed")
		s.command("workers", "release", number, "--lower-bound", "--confirm", n.name+" of worker "+number+" is gone for good").wants(t, 0, "worker "+number+" is free. Its next holder begins at ")
	}

	// status includes the nodes' own answers.
	var report struct {
		Workers []struct {
			Asked string `json:"asked"`
			Says  *struct {
				Ready bool `json:"ready"`
			} `json:"says"`
		} `json:"workers"`
	}
	r := s.command("status", "-o", "json")
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil || len(report.Workers) != 2 {
		t.Fatalf("%v: %s%s", err, r.stdout, r.stderr)
	}
	for _, w := range report.Workers {
		if w.Says == nil || !w.Says.Ready {
			t.Errorf("%+v", w)
		}
	}

	// The machine of b is gone for good. The identity of a is reset, so that it starts as a
	// new node.
	b.kill()
	c := s.started()
	c.fails(1, `all 2 workers are held`)
	reset := func(args ...string) result {
		t.Helper()
		return execute(t, s.build.binary(t), append([]string{"reset-identity", "--state-dir", a.dir}, args...)...)
	}
	reset("--yes").wants(t, 1, "Stop the node first. Nothing was changed")
	a.stop()
	reset().wants(t, 2, "Nothing was changed. To go on, add --yes")
	reset("--yes").wants(t, 0, fmt.Sprintf("worker %d of cluster default stays held in ZooKeeper, as stopped, until its lease expires: ", wasA.worker))
	eventually(t, "disconnected", func() bool {
		r, _ := s.status()
		return r.Workers[wasB.worker].State == "disconnected"
	})
	a.start().fails(1, `all 2 workers are held \(0 live, 1 disconnected, 1 stopped, 0 releasing\)`)
	free(a, wasA.worker)
	free(b, wasB.worker)
	a.start()
	c.start()
	for _, n := range []*node{a, c} { // the floor is 10 s ahead: clocks may differ
		n.ready().get(50)
		if id := n.identity(); id.uuid == wasA.uuid || id.uuid == wasB.uuid || id.term != 3 {
			t.Errorf("%s is %+v", n.name, id)
		}
	}
	// If b comes back nevertheless, it does not get its old worker.
	b.start().fails(1, `all 2 workers are held`)

	// In a freeze, nodes with a worker serve on and resume, and new nodes are refused.
	c.stop()
	s.command("cluster", "freeze", "--for", "1h").wants(t, 0, "no new node acquires one of them until ")
	a.get(50)
	c.start().ready().get(50)
	s.started().fails(1, `registration is frozen until`)
	c.kill()
	number := fmt.Sprint(c.stored().Record.Worker)
	s.command("workers", "release", number, "--confirm", "release worker "+number+" of "+c.name).wants(t, 1, "registration is frozen until ")
	s.command("cluster", "thaw", "--confirm", "no lost holder of cluster default is left").wants(t, 0, "ended the freeze")
	c.start().ready().get(50)
}
