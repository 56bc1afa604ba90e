package deploy

import (
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// A machine is a container with Debian and systemd as init. It shares the host's network.
type machine struct {
	t    testing.TB
	name string
}

// newMachine starts a machine with the release's Debian package, and with that of a later version, in /debs.
func newMachine(t testing.TB, later string) *machine {
	t.Helper()
	debs, out := t.TempDir(), t.TempDir()
	do(t, "cp", filepath.Join(dist(t), distFile(t, "flaked_*_"+runtime.GOARCH+".deb")), debs+"/release.deb")
	do(t, "scripts/release.sh", later, "1", out, "linux/"+runtime.GOARCH)
	do(t, "sh", "-c", `mv "$0"/*.deb "$1"`, out, debs+"/later.deb")
	m := &machine{t, unique(t, "systemd")}
	removed(t, m.name)
	podman(t, "run", "--detach", "--name", m.name, "--network", "host", "--systemd", "always", "--privileged", "-v",
		debs+":/debs:ro", "localhost/flaked-systemd")
	until(t, 30*time.Second, "systemd is up", func() error {
		out, err := m.try("systemctl is-system-running")
		if out = strings.TrimSpace(out); out == "running" || out == "degraded" {
			return nil
		}
		return fmt.Errorf("%s %w", out, err)
	})
	return m
}

func (m *machine) try(script string) (string, error) {
	return try(m.t.Context(), ".", "podman", "exec", "-e", "DEBIAN_FRONTEND=noninteractive", m.name, "bash", "-c",
		script)
}

func (m *machine) do(script string) string {
	m.t.Helper()
	out, err := m.try(script)
	if err != nil {
		m.t.Fatalf("%v\njournal:\n%s", err, m.journal(""))
	}
	return out
}

// show returns a property of the unit.
func (m *machine) show(property string) string {
	m.t.Helper()
	return strings.TrimSpace(m.do("systemctl show --value -p " + property + " flaked"))
}

// journal returns what the unit wrote, with flags for journalctl.
func (m *machine) journal(flags string) string {
	out, err := m.try("journalctl -u flaked -o cat --no-pager " + flags)
	if err != nil {
		return err.Error()
	}
	return out
}

// restartedAfter does something to the node, and waits until systemd has started another process
// in its place that serves.
func (m *machine) restartedAfter(what, script, address string) {
	m.t.Helper()
	before := m.show("MainPID")
	m.do(script)
	until(m.t, 60*time.Second, "systemd restarts the node after "+what, func() error {
		if now := m.show("MainPID"); now == "0" || now == before {
			return fmt.Errorf("state %s, result %s, process %s", m.show("ActiveState"), m.show("Result"), now)
		}
		return nil
	})
	ready(m.t, address)
}

// service is a machine with the package installed, configured and started.
type service struct {
	*machine
	address string
	worker  string
	ids     *collector
}

// sameWorker reports a node that has another worker than at first.
func (s *service) sameWorker(after string) {
	s.t.Helper()
	hasWorker(s.t, s.address, s.worker, after)
	s.ids.more(s.t, s.address)
}

// TestPackageUnderSystemd installs the package, and does to the unit what happens to units.
func TestPackageUnderSystemd(t *testing.T) {
	needsEngine(t)
	zk := zktest.Chroot(t, zktest.Shared(t))
	m := newMachine(t, "99.0.0")
	m.do("dpkg -i /debs/release.deb")
	if out := m.do("systemctl is-enabled flaked || true"); strings.TrimSpace(out) != "disabled" {
		t.Errorf("after the installation the unit is %s", out)
	}
	doctorBeforeTheFirstStart(m, zk)
	refusesToStartWithoutSettings(m)

	address, own := freeAddress(t), freeAddress(t)
	m.do(fmt.Sprintf("printf '%%s\\n' 'zk: %s' 'cluster: package' 'heartbeat: 200ms' 'admin: %s'"+
		" 'listen: [%q, \"unix:/run/flaked/flaked.sock\"]' >> /etc/flaked.yaml", zk, own, address))
	m.do("flaked cluster init --zk " + zk + " --cluster package --confirm-time 800ms")
	m.do("systemctl enable --now flaked") // returns when the node gives out IDs
	if err := isReady(address); err != nil {
		t.Errorf("systemctl start has returned, and the node does not serve: %v", err)
	}
	s := &service{m, address, workerOf(t, address), collect(t, address)}
	s.ids.more(t, address)

	directories(s)
	s.restartedAfter("kill -9", "systemctl kill -s KILL flaked", address)
	s.sameWorker("kill -9")
	s.restartedAfter("a crash", "systemctl kill -s ABRT flaked", address)
	s.sameWorker("a crash")
	s.restartedAfter("systemctl restart", "systemctl restart flaked", address)
	s.sameWorker("systemctl restart")
	watchdog(s)
	s.restartedAfter("an upgrade", "dpkg -i /debs/later.deb", address)
	s.sameWorker("an upgrade")
	if out := m.do("/proc/$(systemctl show --value -p MainPID flaked)/exe --version"); !strings.HasPrefix(out,
		"flaked 99.0.0\n") {
		t.Errorf("after the upgrade there runs %q", out)
	}
	removal(s)
	s.ids.unique(t)
}

// doctorBeforeTheFirstStart runs doctor on the package as it was installed, before systemd has created a directory.
func doctorBeforeTheFirstStart(m *machine, zk string) {
	m.t.Helper()
	if got := strings.TrimSpace(m.do("stat -c '%a %U:%G' /var/lib/flaked")); got != "700 flaked:flaked" {
		m.t.Errorf("after the installation the state directory is %s", got)
	}
	// The cluster does not exist yet, so doctor fails.
	out, _ := m.try("runuser -u flaked -- flaked doctor --config /etc/flaked.yaml --zk " + zk)
	for _, check := range []string{"state-dir", "durability"} {
		if !regexp.MustCompile(`(?m)^ok +` + check + ` +.*/var/lib/flaked `).MatchString(out) {
			m.t.Errorf("doctor does not find %s of /var/lib/flaked right:\n%s", check, out)
		}
	}
}

func refusesToStartWithoutSettings(m *machine) {
	m.t.Helper()
	if _, err := m.try("systemctl start flaked"); err == nil {
		m.t.Error("the unit starts without settings")
	}
	if code, restarts := m.show("ExecMainStatus"), m.show("NRestarts"); code != "2" || restarts != "0" ||
		m.show("ActiveState") != "failed" {
		m.t.Errorf("without settings: exit code %s, %s restarts, state %s", code, restarts, m.show("ActiveState"))
	}
	if log := m.journal("-p err"); !strings.Contains(log, "flaked: --zk is required") {
		m.t.Errorf("journalctl -p err does not say that --zk is required:\n%s", log)
	}
}

// directories checks owner and mode of the directories that the unit asks for, and the socket.
func directories(s *service) {
	s.t.Helper()
	got := strings.TrimSpace(s.do("stat -c '%n %a %U:%G' /var/lib/flaked /run/flaked"))
	if got != "/var/lib/flaked 700 flaked:flaked\n/run/flaked 755 flaked:flaked" {
		s.t.Errorf("directories: %s", got)
	}
	if out := s.do("flaked get 3 --addr unix:/run/flaked/flaked.sock"); strings.Count(out, "\n") != 3 {
		s.t.Errorf("get over the unix socket: %q", out)
	}
	if out := s.do("systemctl status flaked"); !strings.Contains(out, `Status: "serving worker `+s.worker) {
		s.t.Errorf("systemctl status:\n%s", out)
	}
}

// watchdog stops the process, so that it sends no watchdog messages. systemd aborts and restarts
// it. The unit's 30 s are 2 s here.
func watchdog(s *service) {
	s.t.Helper()
	s.do("mkdir -p /etc/systemd/system/flaked.service.d")
	s.do("printf '[Service]\\nWatchdogSec=2s\\n' > /etc/systemd/system/flaked.service.d/test.conf")
	s.do("systemctl daemon-reload && systemctl restart flaked")
	ready(s.t, s.address)
	s.restartedAfter("SIGSTOP", "systemctl kill -s STOP flaked", s.address)
	s.sameWorker("SIGSTOP")
	if log := s.do("journalctl -u flaked --no-pager"); !strings.Contains(log, "Watchdog timeout") {
		s.t.Errorf("the journal has no watchdog timeout:\n%s", log)
	}
	s.do("rm -r /etc/systemd/system/flaked.service.d && systemctl daemon-reload && systemctl restart flaked")
	ready(s.t, s.address)
}

// removal stops the unit, then removes and purges the package.
func removal(s *service) {
	s.t.Helper()
	s.do("systemctl stop flaked")
	if result, code := s.show("Result"), s.show("ExecMainStatus"); result != "success" || code != "0" {
		s.t.Errorf("after systemctl stop: result %s, exit code %s", result, code)
	}
	s.do("systemctl start flaked")
	s.sameWorker("stop and start")
	s.do("dpkg -r flaked")
	if _, err := ask(s.address, "GET"); err == nil {
		s.t.Error("the node serves after dpkg -r")
	}
	s.do("test ! -e /usr/bin/flaked && test -e /etc/flaked.yaml && test -e /var/lib/flaked")
	s.do("dpkg -P flaked")
	s.do("! systemctl cat flaked")
	if left := s.do("find / -xdev -name '*flaked*' ! -path '/proc/*'"); left != "" {
		s.t.Errorf("dpkg -P leaves %s", left)
	}
}
