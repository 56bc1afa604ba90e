package admin

import (
	"errors"
	"testing"

	"github.com/flaked/flaked/node"
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
	const (
		worker = "[+] worker: 7, serving\n"
		lease  = "[+] lease: 24h0m0s left\n"
		bound  = "[+] reserved bound: 2.5s left\n"
		dir    = "[+] state directory: ok\n"
		clock  = "[+] clock: -1.5ms +- 2ms against ZooKeeper's leader, +3.2ms against the worst of 5 voters\n"
		zk     = "[+] zookeeper: last heartbeat 812ms ago\n"
	)
	for _, row := range []struct {
		name   string
		change func(*node.Snapshot)
		err    error
		want   string
	}{
		{"well", func(*node.Snapshot) {}, nil, worker + lease + bound + dir + clock + zk + "ok\n"},
		{"just started", func(s *node.Snapshot) {
			*s = node.Snapshot{Phase: node.Starting, Disk: node.DiskSnapshot{OK: true}}
		}, errors.New("-NOTREADY starting reason=no-worker-yet"),
			"[-] worker: none yet, starting\n" + dir + "[+] clock: not compared yet\n[!] zookeeper: no heartbeat yet\n-NOTREADY starting reason=no-worker-yet\n"},
		{"the clock is behind", func(s *node.Snapshot) {
			s.Ready, s.Code, s.Reason, s.Clock.BehindMs = false, "CLOCK", "the clock is behind", 1500
		}, errors.New("-CLOCK the clock is behind"),
			"[-] worker: 7, serving: -CLOCK the clock is behind\n" + lease + bound + dir + "[-] clock: 1.5s behind the last ID\n" + zk + "-CLOCK the clock is behind\n"},
		{"the clock is wrong", func(s *node.Snapshot) {
			s.Ready, s.Phase, s.Code, s.Reason, s.Clock.Wrong, s.Clock.Against = false, node.Refusing, "CLOCK", "it is wrong", true, 4
		}, errors.New("-CLOCK it is wrong"),
			"[-] worker: 7, refusing: -CLOCK it is wrong\n" + lease + bound + dir + "[-] clock: wrong according to 4 of 5 voters: offset -1.5ms\n" + zk + "-CLOCK it is wrong\n"},
		{"a lease that is over", func(s *node.Snapshot) {
			s.LeaseLeftMs = new(int64(-2000))
		}, errors.New("-FENCED over"), worker + "[-] lease: -2s left\n" + bound + dir + clock + zk + "-FENCED over\n"},
		{"cut off, and serving", func(s *node.Snapshot) { s.ZooKeeper.Error = "no answer\nat all" }, nil,
			worker + lease + bound + dir + clock + "[!] zookeeper: no answer at all\nok\n"},
		{"a full disk, and serving", func(s *node.Snapshot) { s.Disk = node.DiskSnapshot{Error: "no space left"} }, nil,
			worker + lease + bound + "[!] state directory: no space left\n" + clock + zk + "ok\n"},
		{"a leap", func(s *node.Snapshot) { s.Clock.UnfollowedLeapMs = 4000 }, nil,
			worker + lease + bound + dir + "[!] clock: leapt 4s ahead, not confirmed by any other clock\n" + zk + "ok\n"},
		{"an offset", func(s *node.Snapshot) { s.Degraded = []string{node.TroubleOffset} }, nil,
			worker + lease + bound + dir + "[!]" + clock[3:] + zk + "ok\n"},
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
