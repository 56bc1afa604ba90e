package zktest

import "testing"

func TestParseMode(t *testing.T) {
	for name, row := range map[string]struct{ srvr, mode string }{
		"leader":     {"Zookeeper version: 3.8.0\nMode: leader\nNode count: 5\n", "leader"},
		"electing":   {"This ZooKeeper instance is not currently serving requests\n", ""},
		"no reply":   {"", ""},
		"CRLF":       {"Mode: follower\r\n", "follower"},
		"other text": {"not a Mode: line\n", ""},
	} {
		if got := parseMode(row.srvr); got != row.mode {
			t.Errorf("%s: %q, want %q", name, got, row.mode)
		}
	}
}
