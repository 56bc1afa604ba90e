package web

import (
	"errors"
	"testing"

	"github.com/flaked/flaked/internal/core/node"
)

// serving returns a worker that serves and has no problem.
func serving() node.Snapshot {
	return node.Snapshot{
		Worker: new(7), Phase: node.Serving, Ready: true, Confirmed: true,
		LeaseLeftMs: new(int64(86400000)), ReservedLeftMs: new(int64(2500)),
		Clock: node.ClockSnapshot{
			OffsetMs: new(-1.5), UncertaintyMs: new(2.0), WorstMs: new(3.25), WorstUncertaintyMs: new(4.0), Voters: 5,
		},
		ZooKeeper: node.ZooKeeperSnapshot{OK: true, Session: true, HeartbeatAgeMs: new(int64(812)), HeartbeatMs: 3000},
		Disk:      node.DiskSnapshot{OK: true},
	}
}

func TestReadyzVerbose(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*node.Snapshot)
		err    error
		want   string
	}{
		{"well", func(*node.Snapshot) {}, nil,
			"[+] worker: 7, serving\n[+] lease: 24h0m left\n[+] reserved bound: 2.5s left\n[+] state directory: " +
				"ok\n[+] clock: -1.5ms +/- 2ms\n[+] zookeeper: last heartbeat 812ms ago\nok\n"},
		{"ZooKeeper has just stopped", func(s *node.Snapshot) { s.ZooKeeper.Session = false }, nil,
			"[+] worker: 7, serving\n[+] lease: 24h0m left\n[+] reserved bound: 2.5s left\n[+] state directory: " +
				"ok\n[+] clock: -1.5ms +/- 2ms\n[!] zookeeper: no connection, last heartbeat 812ms ago\nok\n"},
		{"just started", func(s *node.Snapshot) {
			*s = node.Snapshot{Phase: node.Starting, Cause: node.CauseNoWorkerYet, Disk: node.DiskSnapshot{OK: true}}
		}, errors.New("-NOTREADY starting reason=no-worker-yet"),
			"[-] worker: none, starting\n[+] state directory: ok\n[+] clock: not compared yet\n[!] zookeeper: no " +
				"connection, no heartbeat yet\nStarting: no worker acquired yet. Clients get IDs from " +
				"other nodes only. Wait. If this lasts, the node's log says " +
				"why.\n-NOTREADY starting " +
				"reason=no-worker-yet\n"},
		{"all is wrong", func(s *node.Snapshot) {
			s.Ready, s.Cause, s.Clock.BehindMs, s.LeaseLeftMs = false, node.CauseClockBehind, 1500, new(int64(-2000))
			s.ZooKeeper.Error, s.Disk = "no answer\nat all", node.DiskSnapshot{Error: "no space left"}
		}, errors.New("-CLOCK the clock is behind"),
			"[-] worker: 7, serving\n[-] lease: -2.0s left\n[+] reserved bound: 2.5s left\n[!] state directory: no " +
				"space left\n[!] clock: -1.5ms +/- 2ms\n[!] zookeeper: no answer at all\n" +
				"The machine's clock went back. It is behind the last ID by 2.0s. Clients get IDs " +
				"from other nodes only. Check with chronyc tracking. If " +
				"the clock is right now, wait. Else set it right. The node then serves again by itself. Do not restart it.\n-CLOCK the clock " +
				"is behind\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := serving()
			row.change(&s)
			addr, _ := start(t, Config{Ready: func() error { return row.err }, Node: func() node.Snapshot { return s }})
			code, _, body := do(t, "GET", "http://"+addr+"/readyz?verbose")
			if want := map[bool]int{true: 200, false: 503}[row.err == nil]; code != want || body != row.want {
				t.Errorf("%d\n%s\nwant %d\n%s", code, body, want, row.want)
			}
		})
	}
}
