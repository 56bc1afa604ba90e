// Package clients tests the shipped binary with Redis clients that people use: redis-cli,
// redis-benchmark, redis-py (examples/python) and ioredis (examples/node).
//
// scripts/get-clients.sh fetches the clients. If one is missing, its test is skipped.
// With FLAKED_TEST_CLIENTS=require, which `make nightly` sets, the test fails instead. The
// tests also need FLAKED_TEST_ZK=require, like all tests on zktest.
package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// patience is the longest that a test waits for anything.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	code := zktest.Run(m)
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// built is the binary, which all tests share. It is package-level state, because the
// binary lives as long as the tests.
var built struct {
	once sync.Once
	dir  string
	err  error
}

func binary(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "flaked-clients-"); built.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-trimpath", "-o", built.dir, "github.com/flaked/flaked/cmd/flaked")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "flaked")
}

// require skips the test if err says that a client is missing. With
// FLAKED_TEST_CLIENTS=require it fails the test instead.
func require(t *testing.T, client string, err error) {
	t.Helper()
	switch mode := os.Getenv("FLAKED_TEST_CLIENTS"); {
	case mode != "" && mode != "require":
		t.Fatalf("FLAKED_TEST_CLIENTS is %q; it is \"require\" or not set", mode)
	case err == nil:
	case mode == "require":
		t.Fatalf("FLAKED_TEST_CLIENTS=require, but no %s: %v; scripts/get-clients.sh gets it", client, err)
	default:
		t.Skipf("no %s: %v; scripts/get-clients.sh gets it", client, err)
	}
}

func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	require(t, name, err)
	return path
}

// serve starts a node on a ZooKeeper, waits until it serves, and returns its address.
func serve(t *testing.T) (host, port string) {
	t.Helper()
	zk := zktest.Chroot(t, zktest.Shared(t))
	dir := t.TempDir()
	logFile := filepath.Join(dir, "log")
	log, err := os.Create(logFile)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary(t), "serve", "--zk", zk, "--bootstrap", "--heartbeat", "200ms",
		"--confirm-time", "800ms",
		"--listen", "127.0.0.1:0", "--admin", "off", "--state-dir", filepath.Join(dir, "state"), "--log-format", "json")
	cmd.Env = environ()
	cmd.Stdout, cmd.Stderr = log, log
	err = cmd.Start()
	log.Close() // the child has its own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text, _ := os.ReadFile(logFile); t.Failed() || bytes.Contains(text, []byte("panic:")) {
			t.Errorf("--- the node's log\n%s", text)
		}
	})

	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		if addr := listening(logFile); addr != "" && ready(addr) {
			host, port, _ = net.SplitHostPort(addr)
			return host, port
		}
	}
	t.Fatal("the node does not serve")
	return "", ""
}

// environ returns our environment without FLAKED_ variables, which flaked would take
// for its flags.
func environ() (env []string) {
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "FLAKED_") {
			env = append(env, v)
		}
	}
	return env
}

// listening returns the address in the node's log, with the port that the kernel chose.
// It returns "" if there is none yet.
func listening(path string) (addr string) {
	text, _ := os.ReadFile(path)
	for line := range bytes.Lines(text) {
		var entry struct {
			Message string `json:"@message"`
			Addr    string `json:"address"`
		}
		if json.Unmarshal(line, &entry) == nil && entry.Message == "listening" {
			addr = entry.Addr
		}
	}
	return addr
}

func ready(addr string) bool {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	fmt.Fprint(c, "READY\n")
	var reply [3]byte
	n, _ := c.Read(reply[:])
	return string(reply[:n]) == "OK\n"
}

// run runs a client to its end and returns what it printed.
func run(t *testing.T, cmd func(ctx context.Context) *exec.Cmd) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := cmd(ctx)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		t.Fatalf("%q: %v\n%s%.2000s", c.Args, err, stderr.String(), stdout.String())
	}
	return stdout.String()
}

// ids fails unless out is n IDs, one a line, all different.
func ids(t *testing.T, out string, n int) {
	t.Helper()
	seen := make(map[int64]bool)
	for line := range strings.Lines(out) {
		id, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil || id <= 0 || seen[id] {
			t.Fatalf("%q is no ID, or one that was there before", line)
		}
		seen[id] = true
	}
	if len(seen) != n {
		t.Fatalf("%d IDs, not %d", len(seen), n)
	}
}
