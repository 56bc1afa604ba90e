package e2e

import (
	"fmt"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/ownclock"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// flaked doctor reports a clock that differs from those of ZooKeeper and of the nodes. It also
// reports a clock that is behind the IDs that a node of this machine has issued.
func TestDoctorSeesAClockThatIsOff(t *testing.T) {
	t.Parallel()
	ownclock.Require(t)
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	s.startedTogether(2)
	ours := s.started().ready()
	ours.proc.signal(syscall.SIGTERM)
	ours.proc.exit()
	for _, row := range []struct {
		off                    time.Duration
		zookeeper, peers, here string
		code                   int
	}{
		{0, "ok", "ok", "ok", -1}, // 4 if no service synchronises the machine's clock
		{9 * time.Second, "fail", "fail", "ok", 1},
		{-30 * time.Second, "fail", "fail", "fail", 1},
		{3 * time.Second, "warn", "warn", "ok", 4},
	} {
		clock := new(ownclock.Clock)
		clock.Set(row.off)
		p := launch(t, fmt.Sprintf("doctor, %s off", row.off), clock, s.build.binary(t), "doctor", "--zk", s.connect, "--state-dir", ours.dir,
			"--heartbeat", "200ms", "--listen", "127.0.0.1:0", "--admin", "off", "--timeout", "20s")
		code := p.exit()
		if row.code >= 0 && code != row.code || code != 0 && code != 1 && code != 4 {
			t.Errorf("%s off: exit code %d, want %d", row.off, code, row.code)
		}
		for check, want := range map[string]string{"clock-zookeeper": row.zookeeper, "clock-peers": row.peers, "clock-state": row.here} {
			if !regexp.MustCompile(`(?m)^` + want + ` +` + check + ` `).MatchString(p.log()) {
				t.Errorf("%s off: no line with %s %s in\n%s", row.off, want, check, p.log())
			}
		}
	}
}
