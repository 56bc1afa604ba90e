//go:build unix

package zktest

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
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
