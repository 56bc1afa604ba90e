//go:build unix

package zktest

import (
	_ "embed"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

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
