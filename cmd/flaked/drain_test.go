package main

import (
	"os"
	"path/filepath"
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
			Owner: coordinator.Owner{Node: "n1", Worker: 7}, Term: 3, Nonce: "secret", EverConfirmed: true,
			Floor: 1795196800000, ReservedUntil: 1795196812128, LeaseUntil: 1795200000000,
		},
		ServedMs: 65_000,
	}
}

func TestDrainWithoutANode(t *testing.T) {
	dir, cache := stateDir(t, exampleRecord())
	cache.Close()
	call(t, "", "drain", "--state-dir", dir).wants(t, exitUnreachable, "", "no running node uses "+dir)
	none := filepath.Join(t.TempDir(), "none")
	call(t, "", "drain", "--state-dir", none).wants(t, exitFailure, "",
		"--state-dir "+none+": no state found. Correct the path")
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
