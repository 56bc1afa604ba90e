package lineproto

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// readInfo asks for sections of INFO, and returns the fields of each by its title.
func readInfo(t *testing.T, nc net.Conn, sections ...string) map[string]map[string]string {
	t.Helper()
	if _, err := io.WriteString(nc, request(append([]string{"INFO"}, sections...)...)); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(nc)
	header, err := in.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	size, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(header, "$")))
	if err != nil {
		t.Fatal(err)
	}
	text := make([]byte, size+2)
	if _, err := io.ReadFull(in, text); err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]string{}
	var fields map[string]string
	for line := range strings.SplitSeq(strings.TrimRight(string(text), "\r\n"), "\r\n") {
		title, isTitle := strings.CutPrefix(line, "# ")
		name, value, isField := strings.Cut(line, ":")
		switch {
		case isTitle:
			fields = map[string]string{}
			found[title] = fields
		case isField:
			fields[name] = value
		case line != "":
			t.Errorf("neither a title nor a field: %q", line)
		}
	}
	return found
}

// Spring's health indicator, redis_exporter, telegraf and Datadog's agent read these fields.
func TestInfoHasWhatHealthChecksRead(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newTestServer(t, Config{MaxConns: 77})
	s.began = s.began.Add(-25 * time.Hour)
	serveOn(t, s, l)
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ask(t, nc, "GET\nPING\nFOO\n", "1000\nPONG\n-ERR unknown command \"FOO\", HELP lists them\n")
	all := readInfo(t, nc)
	for section, fields := range map[string]map[string]string{
		"Server": {
			"redis_version": redisVersion, "redis_mode": "standalone", "flaked_version": "1.2.3",
			"process_id": fmt.Sprint(os.Getpid()), "tcp_port": fmt.Sprint(l.Addr().(*net.TCPAddr).Port),
			"uptime_in_days": "1", "worker": "7", "state": "serving",
		},
		"Clients": {"connected_clients": "1", "maxclients": "77", "blocked_clients": "0"},
		"Stats": {
			"total_connections_received": "1", "total_commands_processed": "3", "rejected_connections": "0",
			"ids": "1", "worker": "7",
		},
		"Replication": {"role": "master", "connected_slaves": "0"},
	} {
		for name, want := range fields {
			if got, ok := all[section][name]; !ok || got != want {
				t.Errorf("%s: %s is %q, want %q", section, name, got, want)
			}
		}
	}
	if up, err := strconv.Atoi(all["Server"]["uptime_in_seconds"]); err != nil || up < 25*60*60 {
		t.Errorf("uptime_in_seconds is %q", all["Server"]["uptime_in_seconds"])
	}
	if used, err := strconv.ParseUint(all["Memory"]["used_memory"], 10, 64); err != nil || used < 1<<20 {
		t.Errorf("used_memory is %q", all["Memory"]["used_memory"])
	}
	for _, test := range []struct{ asked, titles []string }{
		{[]string{"server"}, []string{"Server"}},
		{[]string{"stats", "CLIENTS"}, []string{"Clients", "Stats"}},
		{[]string{"all"}, []string{"Clients", "Memory", "Replication", "Server", "Stats"}},
	} {
		var titles []string
		for title := range readInfo(t, nc, test.asked...) {
			titles = append(titles, title)
		}
		if slices.Sort(titles); !slices.Equal(titles, test.titles) {
			t.Errorf("INFO %v has %v, want %v", test.asked, titles, test.titles)
		}
	}
}
