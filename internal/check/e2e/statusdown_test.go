package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// While ZooKeeper is down, status asks the nodes of --addr. Its exit code is 0 only if they have no problem.
func TestStatusWithZooKeeperDown(t *testing.T) {
	t.Parallel()
	zk := zktest.Single(t)
	s := newSite(t, zk.Addr())
	n := s.node()
	n.start().ready()
	n.heartbeats(true)
	_, addr, _ := n.address()
	status := func(args ...string) result {
		t.Helper()
		return execute(t, shipped.binary(t), append([]string{"status"}, args...)...)
	}
	if r := status("--addr", addr); r.code != 0 || r.stderr != "" {
		t.Errorf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	zk.Kill(0)
	n.heartbeats(false)
	if r := status("--addr", addr); r.code != 4 || !strings.Contains(r.stdout, " "+n.name+" ") || !strings.Contains(r.stderr, "The node has had no answer from ZooKeeper") || r.took > 5*time.Second {
		t.Errorf("exit %d after %s\n%s%s", r.code, r.took, r.stdout, r.stderr)
	}
	refused(t, status("--zk", s.connect, "--zk-session-timeout", "1s"), 3, "`flaked status --addr HOST:PORT` asks nodes without ZooKeeper")
	n.kill()
	if r := status("--addr", addr); r.code != 3 || !strings.Contains(r.stderr, "no node answered") {
		t.Errorf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// For nodes that require TLS and a token, status takes the same flags as `flaked get`.
func TestStatusOfGuardedNodes(t *testing.T) {
	t.Parallel()
	p := newPKI(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("guarded-41b7f0c2a9d84e63\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, addr := guarded(t, nil, append(p.flags(), "--token-file", token)...)
	status := func(args ...string) result {
		return execute(t, shipped.binary(t), append([]string{"status", "--addr", addr}, args...)...)
	}
	if r := status("--tls-ca", p.file("servers.pem"), "--token-file", token); r.code != 0 || !strings.Contains(r.stdout, "nodes asked: 1 answered") {
		t.Errorf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for want, args := range map[string][]string{
		"-NOAUTH ": {"--tls-ca", p.file("servers.pem")},
		"-ERR this port requires TLS. Connect with TLS": nil,
	} {
		if r := status(args...); r.code != 3 || !strings.Contains(r.stdout, "access denied") || !strings.Contains(r.stderr, want) || !strings.Contains(r.stderr, "no node answered") {
			t.Errorf("%v: exit %d\n%s%s", args, r.code, r.stdout, r.stderr)
		}
	}
}
