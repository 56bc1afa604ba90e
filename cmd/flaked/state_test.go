package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/localcache"
)

// stateDir returns a new state directory with a record in it, and its open cache.
func stateDir(t *testing.T, rec node.LocalRecord) (string, *localcache.Cache) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	return dir, stateIn(t, dir, rec)
}

// stateIn puts a record into a state directory, and returns its open cache.
func stateIn(t *testing.T, dir string, rec node.LocalRecord) *localcache.Cache {
	t.Helper()
	kept, err := rec.Encode()
	if err != nil {
		t.Fatal(err)
	}
	cache, err := localcache.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cache.Close() })
	if _, err := cache.Save(kept); err != nil {
		t.Fatal(err)
	}
	return cache
}

func exampleRecord() node.LocalRecord {
	return node.LocalRecord{
		ClusterName: "prod", Cluster: coordinator.Cluster{UUID: "c1", Layout: "time=41@1ms"},
		Claim: coordinator.Claim{
			Node: "n1", Worker: 7, Term: 3, Nonce: "secret", Confirmed: true,
			Floor: 1795196800000, ReservedUntil: 1795196812128, LeaseUntil: 1795200000000,
		},
		ServedMs: 65_000,
	}
}

func TestStateShow(t *testing.T) {
	dir, cache := stateDir(t, exampleRecord())
	held := call(t, "", "state", "show", "--state-dir", dir)
	held.wants(t, exitOK, "worker          7\n", "")
	if runtime.GOOS == "linux" {
		held.wants(t, exitOK, "in use          yes, by a running node\n", "")
	}
	cache.Close()

	r := call(t, "", "state", "show", "--state-dir", dir)
	for _, want := range []string{
		"directory       " + dir + "\n", "status          a node's record\n",
		"fingerprint     matches this machine and file\n", "cluster         prod (c1)\n",
		"term            3\n", "confirmed       yes, it may start without ZooKeeper\n",
		"stopped         no, it runs, or ended without a clean stop\n",
		"reserved bound  2026-11-20T17:46:52.128Z (", "has served for  1m5s\n", "generation      2\n",
	} {
		r.wants(t, exitOK, want, "")
	}
	if strings.Contains(r.stdout, "secret") {
		t.Error("it shows the nonce")
	}
}

func TestStateShowJSONGolden(t *testing.T) {
	dir, cache := stateDir(t, exampleRecord())
	cache.Close()
	r := call(t, "", "state", "show", "--state-dir", dir, "-o", "json")
	want := `{"dir":` + quoted(dir) +
		`,"status":"record","locked":false,"damaged":false,"reason":"","fingerprint_changed":[],"record":` +
		`{"cluster":"prod","cluster_uuid":"c1","layout":"time=41@1ms","datacenter":0,"node":"n1","worker":7,"term":3,"grant_pending":false,"confirmed":true,"stopped":false,` +
		`"floor_ms":1795196800000,"reserved_until_ms":1795196812128,"lease_until_ms":1795200000000,"served_ms":65000,"generation":2}}`
	if r.code != 0 || compacted(t, r.stdout) != want {
		t.Errorf("%d\n%s\nwant\n%s", r.code, r.stdout, want)
	}
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func TestStateShowReportsUnusableState(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	call(t, "", "state", "show", "--state-dir", none).wants(t, exitFailure, "",
		"--state-dir "+none+": no state found. Correct the path")

	released, cache := stateDir(t, exampleRecord())
	if err := cache.Invalidate(); err != nil {
		t.Fatal(err)
	}
	cache.Close()
	call(t, "", "state", "show", "--state-dir", released).wants(t, exitOK, "released: the node released its worker", "")

	file := filepath.Join(released, "flaked.state")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.Mkdir(copied, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(copied, "flaked.state"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	call(t, "", "state", "show", "--state-dir", copied).wants(t, exitOK, "fingerprint     differs (inode", "")

	half := append(make([]byte, 4096), text[4096:]...)
	if err := os.WriteFile(file, half, 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := call(t, "", "state", "show", "--state-dir", released)
	damaged.wants(t, exitDegraded, "damaged         block 0", "one copy of the record is lost: block 0")
	damaged.wants(t, exitDegraded, "damaged         block 0", ". The other copy is valid.\n")

	if err := os.WriteFile(file, text[:100], 0o600); err != nil {
		t.Fatal(err)
	}
	r := call(t, "", "state", "show", "--state-dir", released, "-o", "json")
	r.wants(t, exitDegraded, `"record": null`, "the state is lost: the state file has 100 bytes")
	r.wants(t, exitDegraded, `"record": null`, ". A node started here will be a new one.\n")

	if err := os.WriteFile(none, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	call(t, "", "state", "show", "--state-dir", none).wants(t, exitFailure, "", "--state-dir "+none+": a part of the "+
		"path is not a directory")
}

func TestDefaultStateDir(t *testing.T) {
	if os.Geteuid() == 0 {
		if got := defaultStateDir(); got != "/var/lib/flaked" {
			t.Errorf("%q", got)
		}
		return
	}
	t.Setenv("XDG_STATE_HOME", "/x")
	if got := defaultStateDir(); got != "/x/flaked" {
		t.Errorf("%q", got)
	}
	t.Setenv("XDG_STATE_HOME", "relative")
	t.Setenv("HOME", "/home/me")
	if got := defaultStateDir(); got != "/home/me/.local/state/flaked" {
		t.Errorf("%q", got)
	}
}
