package main

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/ops/doctor"
	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/localcache"
)

// consult calls doctor for a node with free ports.
func consult(t *testing.T, args ...string) (doctor.Report, result) {
	t.Helper()
	r := call(t, "", append([]string{"doctor", "-o", "json", "--timeout", "20s", "--listen", "127.0.0.1:0",
		"--admin", "127.0.0.1:0"}, args...)...)
	var report doctor.Report
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
		t.Fatalf("%v: exit code %d: %s%s", err, r.code, r.stdout, r.stderr)
	}
	return report, r
}

// finding checks the first finding of a check. An empty level allows any level but Fail, as
// machines that run tests are slow at times.
func finding(t *testing.T, r doctor.Report, check string, level doctor.Level, text string) {
	t.Helper()
	i := slices.IndexFunc(r.Findings, func(f doctor.Finding) bool { return f.Check == check })
	if i < 0 {
		t.Errorf("there is no %s in %+v", check, r.Findings)
	} else if f := r.Findings[i]; f.Level != level && (level != "" || f.Level == doctor.Fail) ||
		!strings.Contains(f.Text+". "+f.Advice, text) {
		t.Errorf("%+v, want %s and %q", f, level, text)
	}
}

func TestDoctorWithZooKeeper(t *testing.T) {
	t.Setenv("FLAKED_ZK", zktest.Chroot(t, zktest.Shared(t)))
	dir := filepath.Join(t.TempDir(), "state")
	t.Setenv("FLAKED_STATE_DIR", dir)
	report, r := consult(t)
	finding(t, report, "zookeeper", "", " serves, and answers in ")
	finding(t, report, "state-dir", doctor.OK, "does not exist yet")
	finding(t, report, "ports", doctor.OK, "is free to listen on")
	finding(t, report, "cluster", doctor.Fail, "flaked cluster init")
	if r.code != exitFailure || !strings.Contains(r.stderr, "1 failure") {
		t.Errorf("exit code %d: %s", r.code, r.stderr)
	}
	report, _ = consult(t, "--bootstrap")
	finding(t, report, "cluster", doctor.OK, "the node creates it")

	call(t, "", "cluster", "init", "--lease", "1h").wants(t, exitOK, "created cluster default: ", "")
	for _, row := range []struct{ flag, value, text string }{
		{"--lease", "2h", "--lease 2h0m0s differs from the cluster's "},
		{"--layout", "twitter", " differs from the cluster's "},
		{"--borrow", "1s", "--borrow 1s differs from the cluster's "},
		{"--heartbeat", "1m", "which is more than the confirming time, 12s. Give --heartbeat 6s or less"},
	} {
		report, _ := consult(t, row.flag, row.value)
		finding(t, report, "cluster", doctor.Fail, row.text)
	}
	cache, err := localcache.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close()
	report, r = consult(t)
	finding(t, report, "cluster", doctor.OK, "this node's settings match")
	finding(t, report, "ports", doctor.Warn, "though a node runs here")
	if r.code != exitDegraded {
		t.Errorf("exit code %d: %+v", r.code, report)
	}
	table := call(t, "", "doctor", "--listen", "127.0.0.1:0", "--admin", "off")
	if table.code == exitFailure || !strings.Contains(table.stdout, "\nok    cluster          default (") {
		t.Errorf("exit code %d: %s", table.code, table.stdout)
	}
}

// A node that other machines can reach needs a token or a certificate, and serve refuses to start without.
func TestDoctorSaysThatServeRefusesAnOpenPort(t *testing.T) {
	for flags, want := range map[string]doctor.Level{"": doctor.Fail, "--allow-open": doctor.OK,
		"--token-file tokens": doctor.OK, "--tls-cert c --tls-key k --tls-client-ca a": doctor.OK} {
		r := call(t, "", append([]string{"doctor", "-o", "json", "--timeout", "300ms", "--zk", nobody, "--state-dir",
			filepath.Join(t.TempDir(), "state"), "--listen", "0.0.0.0:0", "--admin", "off"}, strings.Fields(flags)...)...)
		var report doctor.Report
		if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
			t.Fatalf("%s: %v: %s%s", flags, err, r.stdout, r.stderr)
		}
		text := "0.0.0.0:0 is free to listen on"
		if want == doctor.Fail {
			text = "--listen 0.0.0.0:0 can be reached from other machines"
		}
		finding(t, report, "ports", want, text)
	}
}

// A node does not start if it cannot use its files with tokens and certificates.
func TestDoctorReadsTokensAndCertificates(t *testing.T) {
	dir := t.TempDir()
	good, none, empty := filepath.Join(dir, "good"), filepath.Join(dir, "none"), filepath.Join(dir, "empty")
	if err := errors.Join(os.WriteFile(good, []byte("0123456789abcdef\n"), 0o600), os.WriteFile(empty, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for flags, want := range map[string]string{
		"--token-file " + good:                      "",
		"--token-file " + none:                      "file " + none + " not found",
		"--token-file " + empty:                     "no token found",
		"--peer-token-file " + none:                 "file " + none + " not found",
		"--tls-cert " + good + " --tls-key " + good: "PEM",
	} {
		report, _ := consult(t, append(strings.Fields(flags), "--zk", nobody, "--state-dir", filepath.Join(dir, "state"),
			"--timeout", "300ms")...)
		level := doctor.Fail
		if want == "" {
			level, want = doctor.OK, "can use"
		}
		finding(t, report, "credentials", level, want)
	}
}

// Without ZooKeeper doctor says so, and does not wait for one. Of two servers, one stays silent, and nobody is at the
// other.
func TestDoctorWithoutZooKeeper(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	dir := filepath.Join(t.TempDir(), "state")
	begin := time.Now()
	report, r := consult(t, "--zk", silent.Addr().String()+","+nobody, "--state-dir", dir,
		"--timeout", "700ms")
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	finding(t, report, "zookeeper", doctor.Fail, "gives no session in time")
	finding(t, report, "session", doctor.Fail, "no session within 700ms")
	finding(t, report, "state-dir", doctor.OK, "does not exist yet")
	if r.code != exitUnreachable || !strings.Contains(r.stderr, "ZooKeeper cannot be reached") {
		t.Errorf("exit code %d: %s", r.code, r.stderr)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("it made the state directory: %v", err)
	}

	// A failure of this machine counts for more than ZooKeeper's.
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o755), os.WriteFile(filepath.Join(dir, "notes"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	report, r = consult(t, "--zk", nobody, "--state-dir", dir, "--timeout", "300ms")
	finding(t, report, "state-dir", doctor.Fail, "chmod 700")
	if r.code != exitFailure {
		t.Errorf("exit code %d: %s", r.code, r.stderr)
	}
}
