package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"context"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/worker"
)

// These tests use the node with Redis clients that people use. scripts/get-clients.sh fetches them. If one is missing,
// its test is skipped, or fails with FLAKED_TEST_CLIENTS=require, which `make nightly` sets.

// requireClient skips or fails the test if err says that a client is missing.
func requireClient(t *testing.T, client string, err error) {
	t.Helper()
	switch {
	case err == nil:
	case os.Getenv("FLAKED_TEST_CLIENTS") == "require":
		t.Fatalf("FLAKED_TEST_CLIENTS=require, but no %s: %v; scripts/get-clients.sh gets it", client, err)
	default:
		t.Skipf("no %s: %v; scripts/get-clients.sh gets it", client, err)
	}
}

// served returns a node that serves, and its host and port.
func served(t *testing.T) (n *harness.Node, host, port string) {
	t.Helper()
	n = harness.NewSite(t, zktest.Chroot(t, zktest.Shared(t))).Started().Ready()
	_, addr, err := n.Address()
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ = net.SplitHostPort(addr)
	return n, host, port
}

// runClient runs a client to its end and returns what it printed.
func runClient(t *testing.T, in, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(in)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%q: %v\n%s%.2000s", cmd.Args, err, stderr.String(), stdout.String())
	}
	return stdout.String()
}

// hasIDs fails the test unless out is count IDs, one a line. It adds them to the history.
func hasIDs(n *harness.Node, out string, count int) {
	n.Site.T.Helper()
	var ids []worker.ID
	for line := range strings.Lines(out) {
		id, err := worker.ParseID(strings.TrimSpace(line))
		if err != nil {
			n.Site.T.Fatalf("%q: %v", line, err)
		}
		ids = append(ids, id)
	}
	n.Site.IDs.Record(harness.Answer{Got: n.Site.IDs.Now()}, ids...)
	if len(ids) != count {
		n.Site.T.Errorf("%d IDs, not %d", len(ids), count)
	}
}

func TestRedisCLI(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("redis-cli")
	requireClient(t, "redis-cli", err)
	n, host, port := served(t)
	for _, version := range []string{"-2", "-3"} {
		cli := func(in string, args ...string) string {
			t.Helper()
			return runClient(t, in, path, append([]string{version, "-h", host, "-p", port}, args...)...)
		}
		hasIDs(n, cli("", "GET")+cli("", "GET", "order", "COUNT", "5")+cli("", "MGET", "a", "b")+cli("", "GET",
			"order"), 9)
		hasIDs(n, cli(strings.Repeat("GET\nget order\nGET 3\nGET order COUNT 2\n", 20)), 100)
		for command, want := range map[string]string{
			"--no-raw GET":               `"\d{10,19}"`,
			"--no-raw GET order COUNT 0": `\(error\) ERR a count must be 1 to 10000, digits only`,
			"--no-raw GET 5":             `"\d+"`,
			"--no-raw MGET 1 2":          `1\) "\d+"\n2\) "\d+"`,
			"--no-raw GET order count 2": `1\) "\d+"\n2\) "\d+"`,
			"PING":                       "PONG",
			"PING ab":                    "ab",
			"READY":                      "OK",
			"DECODE 4194304":             "id=4194304 .*timestamp_ms=.* worker=0 sequence=0",
			"TIME":                       `\d{10}\n\d{1,6}`,
			"INFO server":                `# Server\r?\n(?s:.*)state:serving(?s:.*)`,
			"STATS":                      `(?s:.*)ids:\d+(?s:.*)`,
			"-n 0 PING":                  "PONG",
		} {
			got := strings.TrimSpace(cli("", strings.Fields(command)...))
			if !regexp.MustCompile("^(?:" + want + ")$").MatchString(got) {
				t.Errorf("%s %s: got %q, want %s", version, command, got, want)
			}
		}
		got := cli("GET order COUNT 0\nPING\nQUIT\n")
		if !regexp.MustCompile("^ERR a count must be .*\n+PONG").MatchString(got) {
			t.Errorf("%s: %q", version, got)
		}
	}
	// --pipe sends its input as it is, and an ECHO at the end.
	requests := strings.Repeat("*1\r\n$3\r\nGET\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", 5000)
	if got := runClient(t, requests, path, "-h", host, "-p", port, "--pipe"); !strings.Contains(got,
		"errors: 0, replies: 10000") {
		t.Errorf("--pipe: %q", got)
	}
}

func TestRedisBenchmark(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("redis-benchmark")
	requireClient(t, "redis-benchmark", err)
	n, host, port := served(t)
	issued := func() int { ids, _ := strconv.Atoi(n.Stat("ids")); return ids }
	for args, want := range map[string]int{ // at least: it ends what is under way
		"-t get -n 20000":                   20_000,
		"-t get -n 50000 -P 100 -r 1000000": 50_000,
		"-3 -t get -n 20000 -P 16":          20_000,
		"-n 20000 -P 16 GET":                20_000,
		"-n 1000 GET order COUNT 20":        20_000,
		"-n 1000 -P 10 MGET a b c":          3_000,
		"-t ping_mbulk -n 10000 -P 10":      0,
	} {
		before := issued()
		out := runClient(t, "", path, append([]string{"-h", host, "-p", port, "-c", "10", "--csv"},
			strings.Fields(args)...)...)
		// redis-benchmark shows errors and no other replies: the node knows how many
		// IDs there were.
		if got := issued() - before; got < want || strings.Contains(out, "rror") {
			t.Errorf("redis-benchmark %s: %d IDs, want %d\n%s", args, got, want, out)
		}
	}
}

// The programs of examples, each with two addresses: one where no node listens, and one
// of a node.
func TestExamplesOfClients(t *testing.T) {
	t.Parallel()
	// Debian's redis-py is for Debian's Python, and another Python may be before it on PATH.
	python := "python3"
	err := exec.Command(python, "-c", "import redis").Run()
	if err != nil {
		python = "/usr/bin/python3"
		err = exec.Command(python, "-c", "import redis").Run()
	}
	t.Run("python", func(t *testing.T) {
		requireClient(t, "redis-py", err)
		runsExample(t, python, "../../../examples/python/ids.py")
	})
	t.Run("node", func(t *testing.T) {
		node, err := exec.LookPath("node")
		if err == nil {
			_, err = os.Stat("../../../examples/node/node_modules")
		}
		requireClient(t, "ioredis", err)
		runsExample(t, node, "../../../examples/node/ids.js")
	})
}

func runsExample(t *testing.T, command ...string) {
	t.Helper()
	n, host, port := served(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	hasIDs(n, runClient(t, "", command[0], append(command[1:], "1000", nobody, net.JoinHostPort(host, port))...), 1000)
}
