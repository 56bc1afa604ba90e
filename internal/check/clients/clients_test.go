package clients

import (
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
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
		ids(t, cli("", "GET")+cli("", "GET", "order", "COUNT", "5")+cli("", "MGET", "a", "b")+cli("", "GET", "order"),
			9)
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
			return exec.CommandContext(ctx, path,
				append([]string{"-h", host, "-p", port, "-c", "10", "--csv"}, strings.Fields(bc.args)...)...)
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
