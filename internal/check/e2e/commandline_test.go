package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// refused fails the test unless a command was refused in the right way. It must end within 10 s,
// with the exit code, without output on stdout and without a crash. The last line of its stderr
// must match message. It is plain text, or for serve a line of the log in JSON.
func refused(t *testing.T, r harness.Result, code int, message string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(r.Stderr), "\n")
	last := lines[len(lines)-1]
	var entry struct {
		Level    string `json:"@level"`
		Message  string `json:"@message"`
		ExitCode int    `json:"exit_code"`
	}
	if json.Unmarshal([]byte(last), &entry) == nil {
		last = "flaked: " + entry.Message
		if entry.Level != "error" || entry.ExitCode != code {
			t.Errorf("the log ends with %+v, want an error with code %d", entry, code)
		}
	}
	if r.Code != code || !regexp.MustCompile("^flaked: .*"+message).MatchString(last) {
		t.Errorf("exit %d, want %d and a line like %q:\n%s", r.Code, code, message, r.Stderr)
	}
	if r.Stdout != "" {
		t.Errorf("on stdout: %q", r.Stdout)
	}
	if r.Took > 10*time.Second {
		t.Errorf("it took %s", r.Took)
	}
	if harness.Crashed.MatchString(r.Stderr) {
		t.Errorf("it crashed:\n%s", r.Stderr)
	}
}

// These starts are refused because of the cluster's settings or because of the machine.
func TestRefusedStarts(t *testing.T) {
	t.Parallel()
	connect := zktest.Chroot(t, zktest.Shared(t))
	s := harness.NewSite(t, connect)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	free := fmt.Sprintf("127.0.0.1:%d", freePorts(t))
	n := s.Started().Ready()
	n.Get(1)
	records := s.Records()
	before, _ := records.Cluster()

	serve := func(args ...string) harness.Result {
		dir := filepath.Join(t.TempDir(), "state")
		return harness.Execute(t, harness.Shipped.Binary(t),
			append([]string{"serve", "--zk", connect, "--listen", "127.0.0.1:0", "--heartbeat", "100ms", "--state-dir",
				dir}, args...)...)
	}
	for _, row := range []struct {
		name, message string
		args          []string
		code          int // 2 if the flag is wrong for every cluster
	}{
		{"no cluster of this name", `cluster not found .*"other".*flaked cluster init`,
			[]string{"--cluster", "other"}, 1},
		{"another layout", `--layout .* differs from the cluster's `, []string{"--layout", "twitter"}, 1},
		{"another lease", `--lease 1h0m0s differs from the cluster's 24h0m0s`, []string{"--lease", "1h"}, 1},
		{"heartbeat too slow", `1s is too long for the confirming time 800ms: .* Give --heartbeat 400ms or less`,
			[]string{"--heartbeat", "1s"}, 1},
		{"heartbeat too fast", `the heartbeat interval 1ms is too short\. Give --heartbeat 10ms or more`,
			[]string{"--heartbeat", "1ms"}, 2},
		{"port in use", `--listen ` + taken.Addr().String() + `: address already in use`,
			[]string{"--listen", taken.Addr().String()}, 1},
		{"admin port in use", `--admin ` + taken.Addr().String() + `: address already in use`,
			[]string{"--admin", taken.Addr().String()}, 1},
		{"one port for both", `--admin and --listen are both ` + free + `\. Give them different ports`,
			[]string{"--listen", free, "--admin", free}, 2},
		{"socket in no directory", `--listen unix:/nonexistent/s: directory /nonexistent not found\. Create it`,
			[]string{"--listen", "unix:/nonexistent/s"}, 1},
		{"no such host", `--listen nohost\.invalid:7609: host nohost\.invalid not found\. Correct the name`,
			[]string{"--allow-open", "--listen", "nohost.invalid:7609"}, 1},
		{"state directory below a file", `--state-dir ` + file + `/x: a part of the path is not a directory`,
			[]string{"--state-dir", file + "/x"}, 1},
		{"state directory where none can be", `--state-dir /proc/x: /proc/x cannot be created`,
			[]string{"--state-dir", "/proc/x"}, 1},
	} {
		t.Run(row.name, func(t *testing.T) { refused(t, serve(row.args...), row.code, row.message) })
	}
	if tickets := records.Tickets(); len(tickets) != 1 {
		t.Errorf("they left tickets behind: %q", tickets)
	}
	if after, _ := records.Cluster(); after != before {
		t.Errorf("they changed the cluster record: %+v, was %+v", after, before)
	}
	n.Get(1)
}
