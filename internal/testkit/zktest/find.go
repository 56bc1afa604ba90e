//go:build unix

package zktest

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// require returns the program that runs a server. It skips the test if
// FLAKED_TEST_ZK is not set. It fails the test if FLAKED_TEST_ZK is "require" and
// ZooKeeper or Java is missing.
func require(t testing.TB) program {
	t.Helper()
	switch mode := os.Getenv("FLAKED_TEST_ZK"); mode {
	case "require":
	case "":
		t.Skip("needs a real ZooKeeper: run `make test`, or set FLAKED_TEST_ZK=require")
	default:
		t.Fatalf("zktest: FLAKED_TEST_ZK is %q; it is \"require\" or not set", mode)
	}
	prog, err := find(os.Getenv)
	if err != nil {
		t.Fatalf("zktest: FLAKED_TEST_ZK=require, but %v; `make test` installs what is missing", err)
	}
	return prog
}

// find returns the program that FLAKED_ZK_JAVA and FLAKED_ZK_CLASSPATH name. If one of
// them is not set, find takes java from PATH, and the jars that Debian installs. The
// manifest of zookeeper.jar names the jars that the classpath does not.
func find(getenv func(string) string) (program, error) {
	prog := program{Java: getenv("FLAKED_ZK_JAVA"), Classpath: getenv("FLAKED_ZK_CLASSPATH")}
	if prog.Classpath == "" {
		const jars = "/usr/share/java/"
		if _, err := os.Stat(jars + "zookeeper.jar"); err != nil {
			return prog, fmt.Errorf("found no ZooKeeper jars: %w", err)
		}
		prog.Classpath = jars + "zookeeper.jar:" + jars + "slf4j-simple.jar"
	}
	var err error
	prog.Java, err = exec.LookPath(cmp.Or(prog.Java, "java"))
	return prog, err
}
