//go:build unix

package zktest

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// ThreeWithAdmin is Three, with servers that can put a snapshot back while they run. Those are
// ZooKeeper 3.9 and later, with Jetty. FLAKED_TEST_ZK_ADMIN has their classpath. Without it the
// test is skipped.
func ThreeWithAdmin(t testing.TB) *Ensemble {
	t.Helper()
	prog := require(t)
	if prog.Classpath = os.Getenv("FLAKED_TEST_ZK_ADMIN"); prog.Classpath == "" {
		t.Skip("needs ZooKeeper 3.9 with Jetty: " +
			"set FLAKED_TEST_ZK_ADMIN to what scripts/get-zk-admin.sh prints, and /*")
	}
	prog.Admin = true
	prog.Properties = []string{
		"-Dzookeeper.admin.snapshot.enabled=true", "-Dzookeeper.admin.snapshot.intervalInMS=0",
		"-Dzookeeper.admin.restore.enabled=true", "-Dzookeeper.admin.restore.intervalInMS=0",
	}
	return startProgram(t, prog, 3)
}

// AdminSnapshot returns a snapshot of server i, taken over its admin port.
func (e *Ensemble) AdminSnapshot(t testing.TB, i int) []byte {
	t.Helper()
	return e.cluster.servers[i].callAdmin(t, "GET", "snapshot?streaming=true", nil)
}

// AdminRestore puts the snapshot back on all servers, which run on.
func (e *Ensemble) AdminRestore(t testing.TB, snapshot []byte) {
	t.Helper()
	for _, s := range e.cluster.servers {
		s.callAdmin(t, "POST", "restore", snapshot)
	}
}

func (s *server) callAdmin(t testing.TB, method, command string, body []byte) []byte {
	t.Helper()
	req, err := http.NewRequest(method, fmt.Sprintf("http://127.0.0.1:%d/commands/%s", s.admin, command),
		bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "digest anybody:x")
	req.Header.Set("Content-Type", "application/octet-stream")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	reply, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v\n%s", command, res.Status, err, reply)
	}
	return reply
}

// Clock is the wall clock of an ensemble's servers. It shows true time until it is set.
type Clock struct {
	tb   testing.TB
	file string // its modification time has the offset
}

// clockClass is the source of the class that replaces ZooKeeper's own.
//
//go:embed clock/org/apache/zookeeper/common/Time.java
var clockClass []byte

// ThreeOnClock is Three, with servers whose wall clock the test can set. It needs a Java compiler.
func ThreeOnClock(t testing.TB) (*Ensemble, *Clock) {
	t.Helper()
	prog := require(t)
	dir := t.TempDir()
	c := &Clock{t, filepath.Join(dir, "offset")}
	source := filepath.Join(dir, "Time.java")
	if err := errors.Join(os.WriteFile(source, clockClass, 0o600), os.WriteFile(c.file, nil, 0o600)); err != nil {
		t.Fatalf("zktest: %v", err)
	}
	compile := exec.Command("javac", "-cp", prog.Classpath, "-d", filepath.Join(dir, "clock"), source)
	if said, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("zktest: javac: %v: %s. apt-get install default-jdk-headless", err, said)
	}
	c.Set(0)
	prog.Classpath = filepath.Join(dir, "clock") + ":" + prog.Classpath
	prog.Properties = []string{"-Dflaked.clock=" + c.file}
	return startProgram(t, prog, 3), c
}

// clockZero is the modification time of the file that stands for true time.
var clockZero = time.UnixMilli(1_000_000_000_000)

// Set makes the servers' wall clocks show true time plus offset. When Set returns, the servers read
// the new time. Messages in their logs show true time.
func (c *Clock) Set(offset time.Duration) {
	c.tb.Helper()
	at := clockZero.Add(offset)
	if err := os.Chtimes(c.file, at, at); err != nil {
		c.tb.Fatalf("zktest: %v", err)
	}
}
