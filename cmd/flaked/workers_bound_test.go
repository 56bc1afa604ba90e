package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/node"
	"github.com/flaked/flaked/zkstore"
)

// A node issued IDs while its clock was ahead and ZooKeeper could not be reached. Then its
// state was reset. If --lower-bound frees its worker, the next holder must begin above the
// bound in that state. If the bound is not certain, the command refuses.
func TestLowerBoundStaysAboveTheSetAsideState(t *testing.T) {
	store, cl := newCluster(t)
	_, claim := register(t, store, cl, "a")
	far := time.Now().Add(45 * time.Minute).UnixMilli()
	claim.Confirmed, claim.ReservedUntil, claim.LeaseUntil = true, far, far+1
	rec := node.LocalRecord{ClusterName: "default", Cluster: cl, Claim: claim}
	save := func(rec node.LocalRecord) (dir string) {
		dir, cache := stateDir(t, rec)
		cache.Close()
		return dir
	}
	const words = "a of worker 0 is gone for good"
	release := func(dir string) result {
		return call(t, "", "workers", "release", "0", "--lower-bound", "--state-dir", dir, "--confirm", words)
	}
	if s := readSlot(t, store, cl, 0); s.LeaseUntil <= far { // so that there is a bound to lower
		s.LeaseUntil = far + time.Hour.Milliseconds()
		put(t, store, "/workers/0000", s, false)
	}
	if err := store.Delete(t.Context(), "/live/0000", zkstore.AnyVersion); err != nil { // the node has ended
		t.Fatal(err)
	}

	call(t, "", "workers", "release", "0", "--state-dir", t.TempDir()).wants(t, exitUsage, "", "--state-dir needs --lower-bound")
	live := save(rec)
	release(live).wants(t, exitFailure, "", "is that of worker 0 and can still be resumed. Nothing was changed. Run `flaked reset-identity --state-dir "+live+"` first")

	other := rec
	other.Claim.Worker = 9
	dir := save(other)
	call(t, "", "reset-identity", "--yes", "--state-dir", dir).wants(t, exitOK, "worker 9 of cluster default", "")
	release(dir).wants(t, exitFailure, "", "no backup of worker 0 of this cluster found in "+dir+". Nothing was changed. Give the state directory of its node, or wait until its lease expires, ")

	spoilt := save(rec)
	file := filepath.Join(spoilt, "flaked.state")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text[100] ^= 1
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	r := call(t, "", "reset-identity", "--yes", "--state-dir", spoilt)
	r.wants(t, exitOK, "the state was damaged, so its reserved bound is unknown: do not release the worker before its lease expires\n", "")
	if strings.Contains(r.stdout, "--lower-bound") {
		t.Error("it says how to lower a bound that is not known")
	}
	release(spoilt).wants(t, exitFailure, "", "was damaged before it became a backup, so the reserved bound of worker 0 is unknown. Nothing was changed. Wait until its lease expires, ")
	release(filepath.Join(dir, "nowhere")).wants(t, exitFailure, "", "nowhere: no state found. Correct the path")
	if s := readSlot(t, store, cl, 0); s.Released {
		t.Fatalf("a refusal released it: %+v", s)
	}

	if runtime.GOOS == "linux" { // inodes
		text[100] ^= 1 // as it was
		copied := t.TempDir()
		if err := errors.Join(os.Chmod(copied, 0o700), os.WriteFile(filepath.Join(copied, "flaked.state"), text, 0o600)); err != nil {
			t.Fatal(err)
		}
		call(t, "", "reset-identity", "--yes", "--state-dir", copied).wants(t, exitOK, "this was a copy of another node's state", "")
		release(copied).wants(t, exitFailure, "", "was a copy of another node's state. That node may be running, and have a higher reserved bound. Nothing was changed.")
	}

	call(t, "", "reset-identity", "--yes", "--state-dir", live).wants(t, exitOK, "flaked workers release 0 --lower-bound --cluster default --state-dir "+live+"\n", "")
	release(live).wants(t, exitOK, "worker 0 is free. Its next holder begins at ", "")
	if s := readSlot(t, store, cl, 0); !s.Released || s.LeaseUntil < far {
		t.Errorf("the next holder begins %d ms below what the state held: %+v", far-s.LeaseUntil, s)
	}
}
