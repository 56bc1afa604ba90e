package clients

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestRedisCLI(t *testing.T) {
	path := program(t, "redis-cli")
	host, port := serve(t)
	for _, version := range []string{"-2", "-3"} {
		cli := func(in string, args ...string) string {
			t.Helper()
			return run(t, func(ctx context.Context) *exec.Cmd {
				cmd := exec.CommandContext(ctx, path, append([]string{version, "-h", host, "-p", port}, args...)...)
				cmd.Stdin = strings.NewReader(in)
				return cmd
			})
		}
		want := func(got, want string) {
			t.Helper()
			if !regexp.MustCompile("^(?:" + want + ")$").MatchString(strings.TrimSpace(got)) {
				t.Errorf("%s: got %q, want %s", version, got, want)
			}
		}
		ids(t, cli("", "GET")+cli("", "GET", "order", "COUNT", "5")+cli("", "MGET", "a", "b")+cli("", "GET", "order"), 9)
		ids(t, cli(strings.Repeat("GET\nget order\nGET 3\nGET order COUNT 2\n", 20)), 100)
		want(cli("", "--no-raw", "GET"), `"\d{10,19}"`)
		want(cli("", "--no-raw", "GET", "order", "COUNT", "0"), `\(error\) ERR a count must be 1 to 10000, digits only`)
		want(cli("", "--no-raw", "GET", "5"), `"\d+"`)
		want(cli("", "--no-raw", "MGET", "1", "2"), `1\) "\d+"\n2\) "\d+"`)
		want(cli("", "--no-raw", "GET", "order", "count", "2"), `1\) "\d+"\n2\) "\d+"`)
		want(cli("", "PING"), "PONG")
		want(cli("", "PING", "a b"), "a b")
		want(cli("", "READY"), "OK")
		want(cli("", "DECODE", "4194304"), "id=4194304 .*timestamp_ms=.* worker=0 sequence=0")
		want(cli("", "TIME"), `\d{10}\n\d{1,6}`)
		want(cli("", "INFO", "server"), `# Server\r?\n(?s:.*)state:serving`)
		want(cli("", "STATS"), `(?s:.*)ids:\d+(?s:.*)`)
		want(cli("", "-n", "0", "PING"), "PONG")
		want(cli("GET order COUNT 0\nPING\nQUIT\n"), "ERR a count must be .*\n+PONG(\nOK)?")
	}
	// --pipe sends its input as it is, and an ECHO at the end.
	got := run(t, func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, path, "-h", host, "-p", port, "--pipe")
		cmd.Stdin = strings.NewReader(strings.Repeat("*1\r\n$3\r\nGET\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", 5000))
		return cmd
	})
	if !strings.Contains(got, "errors: 0, replies: 10000") {
		t.Errorf("--pipe: %q", got)
	}
}

func TestRedisBenchmark(t *testing.T) {
	path := program(t, "redis-benchmark")
	host, port := serve(t)
	for _, bc := range []struct {
		args string
		ids  int // at least: it ends what is under way
	}{
		{"-t get -n 20000", 20_000},
		{"-t get -n 50000 -P 100 -r 1000000", 50_000},
		{"-3 -t get -n 20000 -P 16", 20_000},
		{"-n 20000 -P 16 GET", 20_000},
		{"-n 1000 GET order COUNT 20", 20_000},
		{"-n 1000 -P 10 MGET a b c", 3_000},
		{"-t ping_mbulk -n 10000 -P 10", 0},
	} {
		before := issued(t, host, port)
		out := run(t, func(ctx context.Context) *exec.Cmd {
			return exec.CommandContext(ctx, path, append([]string{"-h", host, "-p", port, "-c", "10", "--csv"}, strings.Fields(bc.args)...)...)
		})
		// redis-benchmark shows errors and no other replies: the node knows how many
		// IDs there were.
		if got := issued(t, host, port) - before; got < bc.ids || strings.Contains(out, "rror") {
			t.Errorf("redis-benchmark %s: %d IDs, want %d\n%s", bc.args, got, bc.ids, out)
		}
	}
}

// issued returns how many IDs the node has answered with, by its STATS.
func issued(t *testing.T, host, port string) int {
	t.Helper()
	c, err := net.Dial("tcp", net.JoinHostPort(host, port))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	fmt.Fprint(c, "STATS\nQUIT\n")
	stats, err := io.ReadAll(c)
	_, rest, ok := strings.Cut(string(stats), "\nids ")
	text, _, _ := strings.Cut(rest, "\n")
	n, bad := strconv.Atoi(text)
	if err != nil || !ok || bad != nil {
		t.Fatalf("STATS: %q, %v", stats, err)
	}
	return n
}

func TestGoRedis(t *testing.T) { testGo(t, "goredis", 2*(1+100+3+1+1000+2+32*50)) }

// rueidis, valkey-go and redigo.
func TestOtherGoClients(t *testing.T) { testGo(t, "goclients", 1+100+3+50+1+3+1+100+3+3) }

// testGo runs the program in dir, which is a module of its own.
func testGo(t *testing.T, dir string, n int) {
	path := filepath.Join(t.TempDir(), dir)
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if os.Getenv("FLAKED_TEST_CLIENTS") == "" {
		build.Env = append(build.Env, "GOPROXY=off") // a test that was not asked for fetches nothing
	}
	out, err := build.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go build: %w\n%s", err, out)
	}
	require(t, "Go clients", err)
	host, port := serve(t)
	got := run(t, func(ctx context.Context) *exec.Cmd {
		return exec.CommandContext(ctx, path, net.JoinHostPort(host, port))
	})
	ids(t, got, n)
}

func TestNodeRedis(t *testing.T) { testJavaScript(t, "node-redis.js", 2*(1+100+1+3+1000+1)) }
func TestIORedis(t *testing.T)   { testJavaScript(t, "ioredis.js", 2*(1+100+1+3+1000+1000+1)) }
func TestValkeyGlide(t *testing.T) {
	testJavaScript(t, "valkey-glide.js", 1+1+3+100+2*100)
}

func TestRedisRB(t *testing.T) {
	ruby := program(t, "ruby")
	require(t, "redis-rb", exec.Command(ruby, "-e", "require 'redis'").Run())
	testProgram(t, 1+1+3+100+1000+3, ruby, filepath.Join("ruby", "redis.rb"))
}

func TestRedisPyDefaults(t *testing.T) {
	python, err := withRedisPy()
	require(t, "redis-py", err)
	testProgram(t, 1+3+100+1000+1000, python, filepath.Join("python", "defaults.py"))
}

func TestHiredis(t *testing.T) {
	cc := program(t, "cc")
	path := filepath.Join(t.TempDir(), "hiredis")
	out, err := exec.Command(cc, "-o", path, filepath.Join("c", "hiredis.c"), "-lhiredis").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("cc: %w\n%s", err, out)
	}
	require(t, "hiredis", err)
	testProgram(t, 1+3+100+1000, path)
}

// testProgram runs a program with the host and the port of a node.
func testProgram(t *testing.T, n int, command ...string) {
	host, port := serve(t)
	got := run(t, func(ctx context.Context) *exec.Cmd {
		return exec.CommandContext(ctx, command[0], append(command[1:], host, port)...)
	})
	ids(t, got, n)
}

func TestPHPRedis(t *testing.T) {
	php := program(t, "php")
	require(t, "phpredis", exec.Command(php, "-r", "exit(extension_loaded('redis') ? 0 : 1);").Run())
	testProgram(t, 1+1+1+3+100+1000+1+2+1, php, filepath.Join("php", "phpredis.php"))
}

func testJavaScript(t *testing.T, script string, n int) {
	node := program(t, "node")
	_, err := os.Stat("node/node_modules")
	require(t, "JavaScript clients", err)
	testProgram(t, n, node, filepath.Join("node", script))
}
