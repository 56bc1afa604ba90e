//go:build unix

package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/flaked/flaked/internal/testkit/ownclock"
)

// Build is one way to build the binary, and the result. The first test that calls binary builds
// it, once per test process.
type Build struct {
	Name string
	Args []string
	Tree func() (string, error) // returns the directory of the source; nil for this one

	once sync.Once
	path string
	err  error
}

// These are package-level because they live as long as the test process.
var (
	// Shipped is built like `make build` does. It ignores the arguments of testTimes.
	Shipped = &Build{Name: "flaked",
		Args: []string{"-trimpath", "-ldflags", "-X main.version=" + TestVersion}}
	// Clocked is shipped with the tag that lets a test shorten times (testTimes) and step the wall clock (ownclock).
	Clocked = &Build{Name: "flaked-clocked", Args: append([]string{"-tags", ownclock.Tag}, Shipped.Args...)}
	// BuildDir returns the directory of the builds.
	BuildDir = sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp("", "flaked-e2e-")
		if err == nil {
			err = os.Chmod(dir, 0o755)
		}
		return dir, err
	})
)

const TestVersion = "v0.0.0-e2e"

// emulators name the programs that run binaries of other processors. FLAKED_TEST_GOARCH chooses
// one of these processors for the shipped binary. 386 needs no emulator on amd64.
var emulators = map[string]string{
	"386": "", "arm": "qemu-arm-static", "arm64": "qemu-aarch64-static", "s390x": "qemu-s390x-static",
}

func (b *Build) Binary(t testing.TB) string {
	t.Helper()
	b.once.Do(func() { b.path, b.err = b.make() })
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.path
}

func (b *Build) make() (string, error) {
	dir, err := BuildDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, b.Name)
	args := append([]string{"build", "-o", path}, b.Args...)
	cmd := exec.Command("go", append(args, "github.com/flaked/flaked/cmd/flaked")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b.Tree != nil {
		if cmd.Dir, err = b.Tree(); err != nil {
			return "", err
		}
	}
	arch := os.Getenv("FLAKED_TEST_GOARCH")
	emulator, known := emulators[arch]
	if arch != "" && !known {
		return "", fmt.Errorf("harness: FLAKED_TEST_GOARCH=%s is unknown", arch)
	}
	if arch != "" {
		cmd.Env = append(cmd.Env, "GOARCH="+arch)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("harness: go %s: %w\n%s", strings.Join(cmd.Args[1:], " "), err, out)
	}
	if emulator == "" {
		return path, nil
	}
	return emulated(path, emulator)
}

// emulated writes a script that runs the binary at path, and returns the script's path. The
// script ends in exec, so that signals reach the emulator.
func emulated(path, emulator string) (string, error) {
	script := path + "-emulated"
	return script, os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\nexec %s '%s' \"$@\"\n", emulator, path), 0o755)
}

func RemoveBuilds() {
	if dir, err := BuildDir(); err == nil {
		os.RemoveAll(dir)
	}
}
