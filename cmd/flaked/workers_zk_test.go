package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/ops/view"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// newCluster makes a cluster in ZooKeeper for this test, and points the commands to it. It
// returns a connection to the cluster's records.
func newCluster(t *testing.T, flags ...string) (store.Store, coordinator.Cluster) {
	t.Helper()
	zk := zktest.Chroot(t, zktest.Shared(t))
	t.Setenv("FLAKED_ZK", zk)
	call(t, "", append([]string{"cluster", "init"}, flags...)...).wants(t, exitOK, "created cluster default: ", "")
	st := openStore(t, zk, "default")
	cl, err := coordinator.ReadCluster(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	return st, cl
}

func readSlot(t *testing.T, st store.Store, worker int) coordinator.Slot {
	t.Helper()
	data, _, err := st.Get(t.Context(), coordinator.SlotPath(worker))
	var slot coordinator.Slot
	if err == nil {
		err = json.Unmarshal(data, &slot)
	}
	if err != nil {
		t.Fatal(err)
	}
	return slot
}

func TestWorkersRelease(t *testing.T) {
	st, cl := newCluster(t)
	a := register(t, st, cl, "a")
	b := register(t, st, cl, "b")

	call(t, "", "workers", "release", "9").wants(t, exitOK, "worker 9 is free, and no node has held it. Nothing", "")
	call(t, "", "workers", "release", "1024").wants(t, exitFailure, "", "worker 1024 not found: the cluster's layout")
	for args, want := range map[string]string{
		"": "expected one worker, as in `flaked workers release 7`, got 0 arguments", "1 2": "got 2 arguments",
		"x": `"x" is not a worker. Give a number`, "-1": `"-1" is not a worker. Give a number`,
	} {
		call(t, "", append([]string{"workers", "release"}, strings.Fields(args)...)...).wants(t, exitUsage, "", want)
	}

	// Only the exact words take a worker from a running node.
	was := readSlot(t, st, 0)
	call(t, "", "workers", "release", "0").wants(t, exitUsage, "", "a, which holds worker 0, is connected to")
	call(t, "", "workers", "release", "0").wants(t, exitUsage, "", "No ID will be issued twice. Nothing was changed.")
	// what is piped is not typed
	call(t, "release worker 0 of a\n", "workers", "release", "0").wants(t, exitUsage, "", "add --confirm")
	call(t, "", "workers", "release", "0", "--confirm", "release worker 0 of b").wants(t, exitUsage, "",
		`--confirm "release worker 0 of b" does not match. Nothing was changed. Use --confirm 'release worker 0 of a'`)
	if s := readSlot(t, st, 0); s.Nonce != was.Nonce || s.Released {
		t.Fatalf("%+v", s)
	}
	call(t, "", "workers", "release", "0", "--confirm", "release worker 0 of a").wants(t, exitOK,
		"worker 0 was released from a, and is free when the lease expires, at ", "")
	s := readSlot(t, st, 0)
	if s.LeaseUntil != was.LeaseUntil || s.Term != was.Term+1 || !s.Released || s.ReleasedBy != whoami() {
		t.Errorf("%+v", s)
	}
	if _, err := a.Heartbeat(t.Context(), coordinator.Report{Lease: time.Hour}); err == nil {
		t.Error("it was not fenced")
	}
	call(t, "", "workers", "release", "0").wants(t, exitOK, "worker 0 was already released, and is free from ", "")
	r := statusJSON(t, exitOK)
	if w := r.Workers[0]; w.State != "releasing" || w.ReleasedBy != whoami() {
		t.Errorf("%+v", w)
	}

	// A node that has stopped keeps its worker until its lease expires, or until it is released.
	if err := b.Stop(t.Context(), time.Now().UnixMilli(), 1); err != nil {
		t.Fatal(err)
	}
	call(t, "", "workers", "release", "1").wants(t, exitUsage, "", "b, which holds worker 1, has stopped and may be")
	call(t, "", "workers", "release", "1", "--confirm", "release worker 1 of b").wants(t, exitOK,
		"worker 1 was released from b", "")

	// A lease that is over needs no confirmation.
	c := register(t, st, cl, "c")
	s = readSlot(t, st, c.Held().Worker)
	s.LeaseUntil = time.Now().Add(-6 * time.Second).UnixMilli()
	put(t, st, "/workers/0002", s, false)
	if err := st.Delete(t.Context(), "/live/0002", store.AnyVersion); err != nil {
		t.Fatal(err)
	}
	call(t, "", "workers", "release", "2").wants(t, exitOK, "worker 2 is free: its lease expired at ", "")
	call(t, "", "workers", "release", "2").wants(t, exitOK, "worker 2 is already free. Nothing was changed.\n", "")

	// A record that cannot be read is replaced.
	put(t, st, "/workers/0003", []byte("{"), false)
	call(t, "", "workers", "release", "3").wants(t, exitUsage, "", "add --confirm 'replace the record of worker 3'")
	call(t, "", "workers", "release", "3", "--confirm", "replace the record of worker 3").wants(t, exitOK,
		"worker 3 is kept for its holder until ", "")
	call(t, "", "workers", "release", "3").wants(t, exitFailure, "", "ZooKeeper lost the record of worker 3, so the")
}

func TestWorkersReleaseInAFreeze(t *testing.T) {
	st, cl := newCluster(t)
	register(t, st, cl, "a")
	call(t, "", "cluster", "freeze", "--for", "1h").wants(t, exitOK, "froze registration", "")
	call(t, "", "workers", "release", "0", "--confirm", "release worker 0 of a").wants(t, exitFailure, "",
		"so ZooKeeper's record of worker 0 may be out of date. Let its holder come back, or wait. Start the missing "+
			"nodes again, or see flaked cluster thaw --help")
	if s := readSlot(t, st, 0); s.Released {
		t.Errorf("%+v", s)
	}
}

func TestClusterFreeze(t *testing.T) {
	_, _ = newCluster(t, "--lease", "2h")
	call(t, "", "cluster", "freeze", "--for", "1ms").wants(t, exitUsage, "", "--for must be at least 1s, not 1ms")
	r := call(t, "", "cluster", "freeze", "--for", "10m")
	r.wants(t, exitOK, "froze registration in cluster default: no new node acquires a worker until ", "")
	r.wants(t, exitOK, "a holder that ZooKeeper lost may serve for longer than that, up to 2h0m0s", "")
	call(t, "", "cluster", "freeze", "--for", "5m").wants(t, exitOK, "is already frozen for longer, until ", "")
	var shown view.ClusterReport
	call(t, "", "cluster", "freeze").wants(t, exitOK, "froze registration", "")
	r = call(t, "", "cluster", "show", "-o", "json")
	if err := json.Unmarshal([]byte(r.stdout), &shown); err != nil || !shown.Frozen || shown.FrozenBy != whoami() {
		t.Errorf("%v: %+v", err, r)
	}
	if left := time.Until(time.UnixMilli(shown.FrozenUntilMs)); left < 2*time.Hour || left > 2*time.Hour+3*time.Minute {
		t.Errorf("for %v", left)
	}
	call(t, "", "cluster", "show").wants(t, exitOK, ", by "+whoami()+". Running nodes serve on", "")
	call(t, "", "status").wants(t, exitDegraded, "0 live", "Registration is frozen until")
	call(t, "", "cluster", "thaw", "--confirm", "no lost holder of cluster default is left").wants(t, exitOK,
		"ended the freeze", "")
	call(t, "", "cluster", "show").wants(t, exitOK, "IDs end", "")
}

// Neither the environment nor a file may confirm a call.
func TestConfirmIsCommandLineOnly(t *testing.T) {
	st, cl := newCluster(t)
	register(t, st, cl, "a")
	t.Setenv("FLAKED_CONFIRM", "release worker 0 of a")
	call(t, "", "workers", "release", "0").wants(t, exitUsage, "", "add --confirm")
	os.Unsetenv("FLAKED_CONFIRM")
	for _, line := range []string{"confirm: release worker 0 of a", "yes: true"} {
		call(t, "", "workers", "release", "0", "--config", writeFile(t, "c.yaml", line)).wants(t, exitUsage, "",
			"no such setting")
	}
}
