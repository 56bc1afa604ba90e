//go:build unix

package zktest

import (
	"bufio"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { Main(m) }

// connect returns a new client, which is closed when the test ends. After a wipe or a
// restore a test needs a new client, because an old one never reconnects.
func connect(t *testing.T, addrs []string) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect(addrs, time.Second, zk.WithLogger(discard{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		for range events {
		}
	})
	return conn
}

// set writes value, and creates the znode if it does not exist. It retries for 20 s,
// because the ensemble may be electing a leader.
func set(t *testing.T, conn *zk.Conn, path, value string) {
	t.Helper()
	var err error
	ok := Poll(20*time.Second, func() bool {
		_, err = conn.Set(path, []byte(value), -1)
		if errors.Is(err, zk.ErrNoNode) {
			_, err = conn.Create(path, []byte(value), 0, zk.WorldACL(zk.PermAll))
		}
		return err == nil
	})
	if !ok {
		t.Fatalf("writing %s: %v", path, err)
	}
}

// get returns a znode's value, or "absent". It retries for 20 s while there is no
// connection: a busy machine may take longer than the session timeout of 1 s.
func get(t *testing.T, conn *zk.Conn, path string) string {
	t.Helper()
	var value []byte
	var err error
	ok := Poll(20*time.Second, func() bool {
		// A follower may lag behind a write that another server has answered.
		if _, err = conn.Sync(path); err == nil || errors.Is(err, zk.ErrNoNode) {
			value, _, err = conn.Get(path)
		}
		return err == nil || errors.Is(err, zk.ErrNoNode)
	})
	switch {
	case !ok:
		t.Fatalf("reading %s: %v", path, err)
	case err != nil:
		return "absent"
	}
	return string(value)
}

func want(t *testing.T, conn *zk.Conn, path, value string) {
	t.Helper()
	if got := get(t, conn, path); got != value {
		t.Errorf("%s is %q, want %q", path, got, value)
	}
}

func TestSingleSurvivesRestartsAndRestores(t *testing.T) {
	t.Parallel()
	ens := Single(t)
	if got := ens.Leader(t); got != 0 {
		t.Errorf("Leader is %d, want 0", got)
	}

	set(t, connect(t, ens.Addrs()), "/a", "old")
	snapshot := ens.Snapshot(t)
	set(t, connect(t, ens.Addrs()), "/a", "new")

	ens.Stop(0)
	ens.Start(0)
	ens.WaitServing(t)
	want(t, connect(t, ens.Addrs()), "/a", "new")

	ens.Kill(0)
	ens.Start(0)
	ens.WaitServing(t)
	want(t, connect(t, ens.Addrs()), "/a", "new")

	ens.Restore(t, snapshot)
	want(t, connect(t, ens.Addrs()), "/a", "old")

	ens.Wipe(t)
	want(t, connect(t, ens.Addrs()), "/a", "absent")
}

func TestThreeElectsANewLeader(t *testing.T) {
	t.Parallel()
	ens := Three(t)
	if n := len(strings.Split(ens.Addr(), ",")); n != 3 {
		t.Fatalf("Addr %q has %d addresses, want 3", ens.Addr(), n)
	}

	conn := connect(t, ens.Addrs())
	set(t, conn, "/a", "1")
	snapshot := ens.Snapshot(t)

	conn = connect(t, ens.Addrs())
	set(t, conn, "/a", "2")
	dead := ens.Leader(t)
	ens.Kill(dead)
	ens.WaitServing(t)
	if now := ens.Leader(t); now == dead {
		t.Errorf("server %d leads, which is dead", now)
	}
	set(t, conn, "/a", "3") // in the same session
	ens.Start(dead)
	ens.WaitServing(t)
	want(t, connect(t, ens.Addrs()[dead:dead+1]), "/a", "3")

	ens.Restore(t, snapshot)
	want(t, connect(t, ens.Addrs()), "/a", "1")

	ens.Wipe(t)
	want(t, connect(t, ens.Addrs()), "/a", "absent")
}

// A frozen server accepts connections and does not answer. If it was the leader, the
// other two elect a new one.
func TestFrozenServerAcceptsButDoesNotAnswer(t *testing.T) {
	t.Parallel()
	ens := Three(t)
	frozen := ens.Leader(t)
	ens.Freeze(frozen)

	conn, err := net.DialTimeout("tcp", ens.Addrs()[frozen], time.Second)
	if err != nil {
		t.Fatalf("a frozen server does not accept: %v", err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := conn.Write([]byte("srvr")); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a frozen server answers: %d bytes, %v", n, err)
	}

	ens.WaitServing(t)
	if now := ens.Leader(t); now == frozen {
		t.Errorf("server %d leads, which is frozen", now)
	}
	ens.Thaw(frozen)
	ens.WaitServing(t)

	// A frozen server can be stopped and killed.
	ens.Freeze(frozen)
	ens.Stop(frozen)
	ens.Start(frozen)
	ens.WaitServing(t)
	ens.Freeze(frozen)
	ens.Kill(frozen)
	ens.Wipe(t)
}

func TestChrootsOfTheSharedServerDiffer(t *testing.T) {
	a, b := Chroot(t, Shared(t)), Chroot(t, Shared(t))
	addrA, pathA, _ := strings.Cut(a, "/")
	addrB, pathB, _ := strings.Cut(b, "/")
	if addrA != addrB || addrA != Shared(t).Addr() {
		t.Errorf("%s and %s are not the shared server", addrA, addrB)
	}
	if pathA == pathB || !strings.HasPrefix(pathA, "TestChrootsOfTheSharedServerDiffer-") {
		t.Errorf("the chroots are %q and %q", pathA, pathB)
	}
	conn := connect(t, []string{addrA})
	want(t, conn, "/"+pathA, "")
	want(t, conn, "/"+pathB, "")
}

// A test must not break a server that other tests share.
func TestKillOfTheSharedServerFails(t *testing.T) {
	rec := &recorder{TB: t}
	ens := Shared(t)
	ens.tb = rec
	ens.Kill(0)
	if rec.errors != 1 {
		t.Errorf("Kill reported %d errors, want 1", rec.errors)
	}
	ens.WaitServing(t)
}

func TestMisuseIsReported(t *testing.T) {
	t.Parallel()
	rec := &recorder{TB: t}
	ens := Single(t)
	ens.tb = rec
	for name, misuse := range map[string]func(){
		"no such server":      func() { ens.Kill(1) },
		"runs already":        func() { ens.Start(0) },
		"is not frozen":       func() { ens.Thaw(0) },
		"a negative number":   func() { ens.Stop(-1) },
		"frozen already":      func() { ens.Freeze(0); ens.Freeze(0); ens.Thaw(0) },
		"killed already":      func() { ens.Kill(0); ens.Kill(0); ens.Start(0) },
		"not there to freeze": func() { ens.Kill(0); ens.Freeze(0); ens.Start(0) },
	} {
		rec.errors = 0
		misuse()
		if rec.errors != 1 {
			t.Errorf("%s: %d errors reported, want 1", name, rec.errors)
		}
	}
	ens.WaitServing(t)
}

// recorder counts the errors reported to it, so that they do not fail the test.
type recorder struct {
	testing.TB
	errors int
}

func (r *recorder) Errorf(string, ...any) { r.errors++ }

func TestNoQuorumFailsAtOnce(t *testing.T) {
	t.Parallel()
	ens := Three(t)
	ens.Kill(0)
	ens.Kill(1)
	start := time.Now()
	err := ens.cluster.await()
	if err == nil || !strings.Contains(err.Error(), "no quorum") {
		t.Errorf("await says %v, want no quorum", err)
	}
	if d := time.Since(start); d > Timeout/2 {
		t.Errorf("it took %v to see it", d)
	}
}

// await reports a server that ends by itself, with its log, and does not wait for it.
func TestEndedServerIsReported(t *testing.T) {
	t.Parallel()
	ens := Single(t)
	ens.Kill(0)
	if err := os.WriteFile(ens.cluster.servers[0].Config(), []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ens.Start(0)
	err := ens.cluster.await()
	if err == nil || !strings.Contains(err.Error(), "ended by itself") || !strings.Contains(err.Error(), "dataDir is not set") {
		t.Errorf("await says %v", err)
	}
}

// await does not take another ZooKeeper on the port for its own.
func TestAwaitRejectsAnotherServerOnThePort(t *testing.T) {
	t.Parallel()
	ours, other := Single(t), Single(t)
	ours.Kill(0)
	server := &ours.cluster.servers[0].Server
	server.Client = other.cluster.servers[0].Client
	if err := server.Configure([]*Server{server}); err != nil {
		t.Fatal(err)
	}
	ours.Start(0)
	if err := ours.cluster.await(); err == nil || !strings.Contains(err.Error(), "Address already in use") {
		t.Errorf("await says %v", err)
	}
}

func TestNoGoroutinesLeft(t *testing.T) {
	// Ignore goroutines that earlier tests, of the shared server, left.
	before := goleak.IgnoreCurrent()
	ens := Single(t)
	Chroot(t, ens)
	ens.Freeze(0)
	ens.Thaw(0)
	ens.Stop(0)
	ens.Start(0)
	ens.Wipe(t)
	goleak.VerifyNone(t, before)
}

const helperEnv = "FLAKED_ZKTEST_HELPER"

// TestHelper is not a test. TestServersDieWithTheTestBinary runs it in a process of its own,
// and kills that process.
func TestHelper(t *testing.T) {
	if os.Getenv(helperEnv) == "" {
		t.Skip("runs only within TestServersDieWithTheTestBinary")
	}
	os.Stdout.WriteString("addr " + Single(t).Addr() + "\n")
	select {}
}

func TestServersDieWithTheTestBinary(t *testing.T) {
	t.Parallel()
	require(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^TestHelper$", "-test.v")
	// The helper's files are in a directory of this test, which is removed at the end.
	cmd.Env = append(os.Environ(), helperEnv+"=1", "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })

	var addr string
	for lines := bufio.NewScanner(out); addr == "" && lines.Scan(); {
		addr, _ = strings.CutPrefix(lines.Text(), "addr ")
		if addr == lines.Text() {
			addr = ""
		}
	}
	if addr == "" {
		t.Fatal("the helper started no server")
	}
	cmd.Process.Kill()
	gone := Poll(10*time.Second, func() bool {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	if !gone {
		t.Errorf("the server at %s outlives the process that started it", addr)
	}
}
