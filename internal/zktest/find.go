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

// program is what runs a server: the Java binary and ZooKeeper's classpath.
type program struct {
	java      string
	classpath string
}

// require returns the program, skips the test where ZooKeeper was not asked
// for, and fails it where it was asked for and is missing.
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

// debianJars is enough: the manifest of zookeeper.jar names the rest.
var debianJars = []string{"/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-simple.jar"}

// find looks where scripts/zk-dev.sh said, then where Debian puts things.
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
