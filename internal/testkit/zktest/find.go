package zktest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// program holds the path of the Java binary and ZooKeeper's classpath.
type program struct {
	java      string
	classpath string
}

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

// debianJars are the jars that the classpath must name. The manifest of
// zookeeper.jar names the others.
var debianJars = []string{"/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-simple.jar"}

// find returns the program that FLAKED_ZK_JAVA and FLAKED_ZK_CLASSPATH name. If one
// of them is not set, find looks for Java in JAVA_HOME, in PATH and where Debian
// installs it, and for the jars where Debian installs them.
func find(getenv func(string) string) (program, error) {
	prog := program{java: getenv("FLAKED_ZK_JAVA"), classpath: getenv("FLAKED_ZK_CLASSPATH")}
	if prog.classpath == "" {
		for _, jar := range debianJars {
			if _, err := os.Stat(jar); err != nil {
				return program{}, fmt.Errorf("found no ZooKeeper jars: %w", err)
			}
		}
		prog.classpath = strings.Join(debianJars, ":")
	}
	if prog.java == "" {
		candidates := []string{"java", "/usr/lib/jvm/default-java/bin/java"}
		if home := getenv("JAVA_HOME"); home != "" {
			candidates = append([]string{filepath.Join(home, "bin/java")}, candidates...)
		}
		for _, c := range candidates {
			if path, err := exec.LookPath(c); err == nil {
				prog.java = path
				break
			}
		}
		if prog.java == "" {
			return program{}, errors.New("found no Java")
		}
	}
	return prog, nil
}
