package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// The steps of docs/credentials.md under load: an operator replaces the user and the password of
// the records in ZooKeeper. Each node keeps its worker, and the nodes that are not being
// restarted answer every request.
func TestChangedCredentialsKeepWorkers(t *testing.T) {
	t.Parallel()
	const old, both, fresh = "flaked:old\n", "flaked:old\nflaked2:new\n", "flaked2:new\n"
	file := filepath.Join(t.TempDir(), "zk.auth")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--zk-auth-file", file, "--confirm-time", "2s", "--reserve", "3s")
	write(old)
	s.flags = without(s.flags, "--bootstrap")
	s.command("cluster", "init", "--confirm-time", "2s", "--zk-auth-file", file).wants(t, 0, "created cluster default: ")
	nodes := s.startedTogether(2)
	// roll restarts the nodes one after the other, as step 1 and step 3 do.
	roll := func() {
		t.Helper()
		for i, n := range nodes {
			was := n.identity()
			load := nodes[1-i].clients(2)
			load.progress()
			n.stop()
			n.start().ready().get(50)
			n.until("its record is confirmed", func() bool { return n.stat("confirmed") == "true" })
			load.progress()
			load.flawless()
			if now := n.identity(); now.worker != was.worker || now.uuid != was.uuid {
				t.Errorf("%s is %+v after the restart, %+v before", n.name, now, was)
			}
		}
	}
	// own changes the owners while all nodes serve.
	own := func() {
		t.Helper()
		loads := []*load{nodes[0].clients(2), nodes[1].clients(2)}
		s.command("cluster", "own", "--zk-auth-file", file).wants(t, 0, "changed the owners of ")
		for i, n := range nodes {
			loads[i].progress()
			n.heartbeats(true)
			loads[i].flawless()
		}
	}
	eventually(t, "a sequence can be created", func() bool {
		return s.command("seq", "create", "order", "--salt=8", "--zk-auth-file", file).code == 0
	})
	all := &values{t: t, seen: map[int64]bool{}}

	write(both)
	roll()
	own()
	write(fresh)
	roll()
	own()

	for _, n := range nodes {
		n.takes("order", 100, all)
	}
	s.started().ready().get(50) // a new node needs the new user only
	write(old)
	s.command("cluster", "show", "--zk-auth-file", file).wants(t, 1, "ZooKeeper denied access")
	s.command("cluster", "own", "--zk-auth-file", file).wants(t, 1, "ZooKeeper denied access")
}
