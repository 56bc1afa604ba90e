package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// nodesReport has the fields of `flaked status -o json` without ZooKeeper that the tests use.
type nodesReport struct {
	Source    string `json:"source"`
	ZooKeeper struct {
		Connect string `json:"connect"`
		Error   string `json:"error"`
	} `json:"zookeeper"`
	Addresses struct {
		From  string `json:"from"`
		AgeMs *int64 `json:"age_ms"`
	} `json:"addresses"`
	Nodes []struct {
		Address        string `json:"address"`
		Asked          string `json:"asked"`
		Name           string `json:"name"`
		Workers        []int  `json:"workers"`
		WorkersReady   int    `json:"workers_ready"`
		HeartbeatAgeMs *int64 `json:"heartbeat_age_ms"`
		Says           *struct {
			Ready       bool  `json:"ready"`
			ZooKeeperOK bool  `json:"zookeeper_ok"`
			LeaseLeftMs int64 `json:"lease_left_ms"`
		} `json:"says"`
		Seen []struct {
			Worker int    `json:"worker"`
			Name   string `json:"name"`
		} `json:"seen"`
	} `json:"nodes"`
	Summary struct {
		Answered int `json:"answered"`
		Ready    int `json:"ready"`
	} `json:"summary"`
}

// While ZooKeeper is down, `flaked status` asks the nodes at their last known addresses. It
// reports their answers and the age of the addresses.
func TestStatusWithZooKeeperDown(t *testing.T) {
	t.Parallel()
	zk := zktest.Single(t)
	s := newSite(t, zk.Addr())
	cache := t.TempDir()
	env := []string{"XDG_CACHE_HOME=" + cache}
	status := func(args ...string) result {
		t.Helper()
		return executeEnv(t, env, shipped.binary(t), append([]string{"status", "--zk", s.connect, "--zk-session-timeout", "1s"}, args...)...)
	}
	report := func(args ...string) (r nodesReport, code int) {
		t.Helper()
		got := status(append(args, "-o", "json")...)
		if err := json.Unmarshal([]byte(got.stdout), &r); err != nil || r.Source != "nodes" {
			t.Fatalf("exit %d, %v\n%s%s", got.code, err, got.stdout, got.stderr)
		}
		return r, got.code
	}
	// status asks these at an address for clients, at an admin address, and on a Unix socket.
	line, page, socket := s.node(), s.node("--admin", "127.0.0.1:0"), s.node()
	line.listen = fmt.Sprintf("127.0.0.1:%d", freePorts(t))
	socket.listen = "unix:" + filepath.Join(t.TempDir(), "s")
	nodes := []*node{line, page, socket}
	for _, n := range nodes {
		n.start().ready()
	}
	for _, n := range nodes {
		n.heartbeats(true)
	}
	workers := map[*node]int{line: line.worker(), page: page.worker()}
	if r := status(); r.code != 0 || strings.Count(r.stdout, " live ") != 3 {
		t.Fatalf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	files, err := filepath.Glob(filepath.Join(cache, "flaked", "nodes", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the cache has %q, %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}

	zk.Kill(0)
	for _, n := range nodes {
		n.heartbeats(false)
	}
	down := time.Now()
	r, code := report()
	if code != 4 || r.Summary.Answered != 3 || r.Summary.Ready != 3 || r.Addresses.From != "cache" || *r.Addresses.AgeMs <= 0 || r.ZooKeeper.Connect != s.connect || !strings.Contains(r.ZooKeeper.Error, "refused") {
		t.Errorf("exit %d, %+v", code, r)
	}
	total := 0
	for _, n := range r.Nodes {
		total += len(n.Workers)
		if n.Says == nil || !n.Says.Ready || n.Says.ZooKeeperOK || n.Says.LeaseLeftMs <= 0 || n.WorkersReady != len(n.Workers) || *n.HeartbeatAgeMs <= 0 || len(n.Seen) > 0 {
			t.Errorf("%+v", n)
		}
	}
	if total != 3 {
		t.Errorf("%d workers of 3 in %+v", total, r.Nodes)
	}
	// A node that does not answer is in parentheses.
	page.kill()
	text := status()
	for _, want := range []string{
		fmt.Sprintf(`(?m)^%d +%s +127\.0\.0\.1:\d+ +ready, but no ZooKeeper +\S+ ago +\S+ `, workers[line], line.name),
		fmt.Sprintf(`(?m)^\(%d\) +\(%s\) +127\.0\.0\.1:\d+ +no answer +- +- +-$`, workers[page], page.name),
		`(?m)^ZooKeeper was not read, so the values come from the nodes: ZooKeeper cannot be reached: .*refused`,
		`(?m)^the addresses, and the values in parentheses, are as ZooKeeper had them at \S+Z \(\S+ ago\)$`,
		`(?m)^2 of 3 nodes answered, 2 of them ready, at \S+Z$`,
	} {
		if !regexp.MustCompile(want).MatchString(text.stdout) {
			t.Errorf("no %s in\n%s", want, text.stdout)
		}
	}
	if text.code != 4 || !strings.Contains(text.stderr, "critical: ZooKeeper cannot be reached. Start it again within ") || !strings.Contains(text.stderr, "\ncritical: node "+page.name+" at ") {
		t.Errorf("exit %d\n%s", text.code, text.stderr)
	}
	// A report without ZooKeeper must not make the saved addresses look younger.
	if r, _ := report(); *r.Addresses.AgeMs < time.Since(down).Milliseconds() {
		t.Errorf("addresses of %d ms ago, %s after ZooKeeper went down", *r.Addresses.AgeMs, time.Since(down))
	}

	// With --addr only, and without saved addresses.
	_, addr, _ := line.address()
	other := func(args ...string) result {
		t.Helper()
		return execute(t, shipped.binary(t), append([]string{"status", "--zk-session-timeout", "1s"}, args...)...)
	}
	if r := other("--addr", addr); r.code != 4 || !strings.Contains(r.stdout, " "+line.name+" ") || !strings.Contains(r.stderr, "has no contact with ZooKeeper") || r.took > 5*time.Second {
		t.Errorf("exit %d after %s\n%s%s", r.code, r.took, r.stdout, r.stderr)
	}
	refused(t, other("--zk", s.connect), 3, "No addresses of nodes are cached. `flaked status --addr HOST:PORT` asks nodes without ZooKeeper")

	// status --watch runs while ZooKeeper comes back.
	watch := launchEnv(t, env, "status --watch", nil, shipped.binary(t), "status", "--zk", s.connect, "--zk-session-timeout", "1s", "--watch", "200ms")
	eventually(t, "the watch shows nodes", func() bool { return strings.Contains(watch.log(), "2 of 3 nodes answered") })
	zk.Start(0)
	zk.WaitServing(t)
	eventually(t, "the watch shows ZooKeeper's records", func() bool {
		_, after, _ := strings.Cut(watch.log(), "2 of 3 nodes answered")
		return strings.Contains(after, " workers held: 4 live, 1 disconnected")
	})
	watch.signal(syscall.SIGINT)
	if code := watch.exit(); code != 0 {
		t.Errorf("the watch ends with %d", code)
	}
	line.heartbeats(true)
	if r := other("--addr", addr); r.code != 0 || r.stderr != "" {
		t.Errorf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}

	// No node answers any more.
	zk.Kill(0)
	line.kill()
	socket.kill()
	if r, code := report(); code != 3 || r.Summary.Answered != 0 || len(r.Nodes) != 3 || len(r.Nodes[0].Seen) == 0 {
		t.Errorf("exit %d, %+v", code, r)
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
		return execute(t, shipped.binary(t), append([]string{"status", "--addr", addr, "-o", "wide"}, args...)...)
	}
	if r := status("--tls-ca", p.file("servers.pem"), "--token-file", token); r.code != 0 || !strings.Contains(r.stdout, "1 of 1 nodes answered, 1 of them ready") {
		t.Errorf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for want, args := range map[string][]string{
		"-NOAUTH ": {"--tls-ca", p.file("servers.pem")},
		"-ERR this port requires TLS. Connect with TLS": nil,
	} {
		if r := status(args...); r.code != 3 || !strings.Contains(r.stdout, "access denied") || !strings.Contains(r.stdout, want) || !strings.Contains(r.stderr, "no node answered") {
			t.Errorf("%v: exit %d\n%s%s", args, r.code, r.stdout, r.stderr)
		}
	}
}
