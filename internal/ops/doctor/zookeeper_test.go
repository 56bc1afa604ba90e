package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/localcache"
)

func TestMain(m *testing.M) { zktest.Main(m) }

func TestDoctorReportsMissingServers(t *testing.T) {
	t.Parallel()
	ens := zktest.Three(t)
	look := func(connect string, timeout time.Duration) Report {
		return Run(t.Context(), Config{
			ZK: store.ZKConfig{Connect: connect, Cluster: "x"}, Bootstrap: true,
			StateDir: filepath.Join(t.TempDir(), "state"), Timeout: timeout,
		})
	}
	const patience = 20 * time.Second
	all := ens.Addr()
	r := look(all, patience)
	at(t, r.Findings, "session").wants(t, "all three", OK, "a quorum of the 3 servers")
	if n := serving(r); n != 3 {
		t.Errorf("%d of 3 servers serve: %+v", n, r.Findings)
	}
	at(t, look(ens.Addrs()[0], patience).Findings, "session").wants(t, "one is named", Warn,
		"the ensemble has 3 servers, and --zk names one")

	follower := (ens.Leader(t) + 1) % 3
	ens.Kill(follower)
	r = look(all, patience)
	if serving(r) != 2 || r.Summary.Warn == 0 || r.Summary.Fail > 0 {
		t.Errorf("one of three is down: %+v", r.Findings)
	}
	ens.Kill((follower + 1) % 3)
	r = look(all, time.Second)
	at(t, r.Findings, "session").wants(t, "two of three are down", Fail, "has a quorum")
	if !r.Summary.Unreachable { // the last server may not know yet, and answer
		t.Errorf("two of three are down: %+v", r.Findings)
	}
}

// serving counts the servers that answer, quickly or slowly.
func serving(r Report) (n int) {
	for _, f := range r.Findings {
		if f.Check == "zookeeper" && strings.Contains(f.Text, " serves, ") {
			n++
		}
	}
	return n
}

func TestRootIsWarnedOfAnotherUsersDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	dir := filepath.Join(t.TempDir(), "state")
	c, err := localcache.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	d := examineDir(dir)
	judgeDir(d, Config{}).wants(t, "another's", Warn, "sudo -u '#12345'")
	if !d.look.Locked {
		t.Errorf("%+v", d.look)
	}
}
