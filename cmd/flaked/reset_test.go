package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/flaked/flaked/localcache"
)

func TestResetIdentity(t *testing.T) {
	rec := exampleRecord()
	rec.Stopped = true
	dir, cache := stateDir(t, rec)
	t.Setenv("FLAKED_STATE_DIR", dir)
	const inUse = "Stop the node first. Nothing was changed"
	call(t, "", "reset-identity", "--yes").wants(t, exitFailure, "", inUse)
	cache.Close()

	ask := call(t, "reset\n", "reset-identity")
	ask.wants(t, exitUsage, "", "this will be discarded for good: the identity in "+dir+", with worker 7 of cluster prod. Nothing was changed. To go on, add --yes")
	t.Setenv("FLAKED_YES", "true")
	call(t, "", "reset-identity").wants(t, exitUsage, "", "add --yes")
	if l, _, err := localcache.Inspect(dir); err != nil || l.Status != localcache.StatusRecord {
		t.Fatalf("%+v, %v", l, err)
	}

	done := call(t, "", "reset-identity", "--yes")
	for _, want := range []string{
		"discarded the identity in " + dir + ": a node that starts there is a new one\n",
		"backup: " + filepath.Join(dir, "flaked.state.reset-20"),
		"worker 7 of cluster prod stays held in ZooKeeper, as stopped, until its lease expires: 2026-11-20T18:40:00.000Z (",
		"to free the worker earlier, if there is no other copy of the state: flaked workers release 7 --lower-bound --cluster prod --state-dir " + dir + "\n",
	} {
		done.wants(t, exitOK, want, "environment variable FLAKED_YES is ignored")
	}
	call(t, "", "reset-identity", "--yes").wants(t, exitFailure, "", "--state-dir "+dir+": no state found. Correct the path")
	call(t, "", "state", "show").wants(t, exitFailure, "", "--state-dir "+dir+": no state found. Correct the path")
}

func TestResetIdentityOfCopiedCorruptAndEmptyState(t *testing.T) {
	dir, cache := stateDir(t, exampleRecord())
	cache.Close()
	file := filepath.Join(dir, "flaked.state")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("a copy", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("inodes")
		}
		copied := t.TempDir()
		if err := os.Chmod(copied, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(copied, "flaked.state"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		r := call(t, "", "reset-identity", "--yes", "--state-dir", copied)
		r.wants(t, exitOK, "this was a copy of another node's state: do not release the worker, because the other node may be running\n", "")
		if strings.Contains(r.stdout, "--lower-bound") {
			t.Error("it says how to free the other's worker")
		}
	})
	t.Run("rubbish", func(t *testing.T) {
		if err := os.WriteFile(file, []byte("rubbish"), 0o600); err != nil {
			t.Fatal(err)
		}
		call(t, "", "reset-identity", "--state-dir", dir).wants(t, exitUsage, "", "this will be discarded for good: the content of "+dir+", which cannot be read. Nothing")
		call(t, "", "reset-identity", "--yes", "--state-dir", dir).wants(t, exitOK, "the state could not be read, so its worker is unknown", "")
	})
	t.Run("nothing", func(t *testing.T) {
		dir, cache := stateDir(t, exampleRecord())
		if err := cache.Invalidate(); err != nil {
			t.Fatal(err)
		}
		cache.Close()
		call(t, "", "reset-identity", "--state-dir", dir).wants(t, exitOK, "no node would resume the state in "+dir+": a node that starts there is a new one. Nothing was changed.\n", "")
		r := call(t, "", "reset-identity", "--state-dir", dir, "-o", "json")
		var report resetReport
		if err := json.Unmarshal([]byte(r.stdout), &report); err != nil || len(report.Directories) != 1 || report.Directories[0].Reset || report.Directories[0].Record.Worker != 7 {
			t.Errorf("%v: %+v", err, r)
		}
	})
	call(t, "", "reset-identity", "--state-dir", filepath.Join(dir, "nowhere"), "--yes").wants(t, exitFailure, "", "nowhere: no state found. Correct the path")
}
