package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/clusterview"
	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/testkit/zktest"
	"github.com/flaked/flaked/zkstore"
)

// newCluster makes a cluster in ZooKeeper for this test, and points the commands to it. It
// returns a connection to the cluster's records.
func newCluster(t *testing.T, flags ...string) (zkstore.Store, coordinator.Cluster) {
	t.Helper()
	zk := zktest.Chroot(t, zktest.Shared(t))
	t.Setenv("FLAKED_ZK", zk)
	call(t, "", append([]string{"cluster", "init"}, flags...)...).wants(t, exitOK, "created cluster default: ", "")
	store := openStore(t, zk, "default")
	cl, err := coordinator.ReadCluster(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	return store, cl
}

func readSlot(t *testing.T, store zkstore.Store, cl coordinator.Cluster, worker int) coordinator.Slot {
	t.Helper()
	e, err := coordinator.ReadSlot(t.Context(), store, cl, worker)
	if err != nil {
		t.Fatal(err)
	}
	return e.Slot
}

func TestWorkersRelease(t *testing.T) {
	store, cl := newCluster(t)
	a, claimA := register(t, store, cl, "a")
	b, claimB := register(t, store, cl, "b")

	call(t, "", "workers", "release", "9").wants(t, exitOK, "worker 9 is free, and no node has held it. Nothing was changed.\n", "")
	call(t, "", "workers", "release", "1024").wants(t, exitFailure, "", "there is no worker 1024: the cluster's layout has workers 0 to 1023")
	for args, want := range map[string]string{
		"": "expected one worker, as in `flaked workers release 7`, got 0 arguments", "1 2": "got 2 arguments",
		"x": `"x" is not a worker. Give a number`, "-1": `"-1" is not a worker. Give a number`,
	} {
		call(t, "", append([]string{"workers", "release"}, strings.Fields(args)...)...).wants(t, exitUsage, "", want)
	}

	// Only the exact words take a worker from a running node.
	was := readSlot(t, store, cl, 0)
	call(t, "", "workers", "release", "0").wants(t, exitUsage, "", "a, which holds worker 0, is connected to ZooKeeper and runs. It will have to acquire another worker, and this one will be free when the lease expires, at ")
	call(t, "", "workers", "release", "0").wants(t, exitUsage, "", "No ID will be issued twice. Nothing was changed. To go on, add --confirm 'release worker 0 of a'")
	call(t, "release worker 0 of a\n", "workers", "release", "0").wants(t, exitUsage, "", "add --confirm") // what is piped is not typed
	call(t, "", "workers", "release", "0", "--confirm", "release worker 0 of b").wants(t, exitUsage, "", `--confirm "release worker 0 of b" does not match. Nothing was changed. Use --confirm 'release worker 0 of a'`)
	call(t, "", "workers", "release", "0", "--lower-bound").wants(t, exitFailure, "", "flaked: the worker's node is connected to ZooKeeper, so it runs. Stop the node first, or leave out --lower-bound")
	if s := readSlot(t, store, cl, 0); s.Nonce != was.Nonce || s.Released {
		t.Fatalf("%+v", s)
	}
	call(t, "", "workers", "release", "0", "--confirm", "release worker 0 of a").wants(t, exitOK, "worker 0 was released from a, and is free when the lease expires, at ", "")
	s := readSlot(t, store, cl, 0)
	if s.LeaseUntil != was.LeaseUntil || s.Term != was.Term+1 || !s.Released || s.ReleasedBy != whoami() {
		t.Errorf("%+v", s)
	}
	if _, err := a.Heartbeat(t.Context(), claimA, coordinator.Report{Lease: time.Hour}); err == nil {
		t.Error("it was not fenced")
	}
	call(t, "", "workers", "release", "0").wants(t, exitOK, "worker 0 was already released, and is free from ", "")
	r := statusJSON(t, exitOK)
	if w := r.Workers[0]; w.State != "releasing" || w.ReleasedBy != whoami() {
		t.Errorf("%+v", w)
	}

	// An operator who confirms that the node is gone frees the worker at once.
	const gone = "a of worker 0 is gone for good"
	call(t, "", "workers", "release", "0", "--lower-bound").wants(t, exitUsage, "", "may be running while disconnected. Its lease expires at ")
	call(t, "", "workers", "release", "0", "--lower-bound").wants(t, exitUsage, "", "IDs will be issued twice. Nothing was changed. To go on, add --confirm '"+gone+"'")
	out := call(t, "", "workers", "release", "0", "--lower-bound", "--confirm", gone, "-o", "json")
	var done releaseReport
	if err := json.Unmarshal([]byte(out.stdout), &done); err != nil || !done.Changed || done.FreeMs > time.Now().UnixMilli()+11_000 || done.FreeMs != readSlot(t, store, cl, 0).LeaseUntil {
		t.Errorf("%v: %+v", err, out)
	}
	call(t, "", "workers", "release", "0", "--lower-bound").wants(t, exitOK, "worker 0 is already free. Nothing was changed.", "")

	// For a stopped node, one call releases the worker and lowers its bound.
	if err := b.Stop(t.Context(), claimB, time.Now().UnixMilli()); err != nil {
		t.Fatal(err)
	}
	call(t, "", "workers", "release", "1").wants(t, exitUsage, "", "b, which holds worker 1, has stopped and may be started again")
	call(t, "", "workers", "release", "1", "--lower-bound", "--confirm", "b of worker 1 is gone for good").wants(t, exitOK, "worker 1 is free. Its next holder begins at ", "")

	// A lease that is over needs no confirmation.
	_, claimC := register(t, store, cl, "c")
	s = readSlot(t, store, cl, claimC.Worker)
	s.LeaseUntil = time.Now().Add(-6 * time.Second).UnixMilli()
	put(t, store, "/workers/0002", s, false)
	if err := store.Delete(t.Context(), "/live/0002", zkstore.AnyVersion); err != nil {
		t.Fatal(err)
	}
	call(t, "", "workers", "release", "2").wants(t, exitOK, "worker 2 is free: its lease expired at ", "")
	call(t, "", "workers", "release", "2").wants(t, exitOK, "worker 2 is already free. Nothing was changed.\n", "")

	// A record that cannot be read is replaced.
	put(t, store, "/workers/0003", []byte("{"), false)
	call(t, "", "workers", "release", "3").wants(t, exitUsage, "", "add --confirm 'replace the record of worker 3'")
	call(t, "", "workers", "release", "3", "--confirm", "replace the record of worker 3").wants(t, exitOK, "worker 3 is kept for its holder until ", "")
	call(t, "", "workers", "release", "3").wants(t, exitFailure, "", "ZooKeeper lost the record of worker 3, so the worker is kept for its holder until ")
}

func TestWorkersReleaseInAFreeze(t *testing.T) {
	store, cl := newCluster(t)
	register(t, store, cl, "a")
	call(t, "", "cluster", "freeze", "--for", "1h").wants(t, exitOK, "froze registration", "")
	call(t, "", "workers", "release", "0", "--confirm", "release worker 0 of a").wants(t, exitFailure, "",
		"so ZooKeeper's record of worker 0 may be out of date. Let its holder come back, or wait. See flaked cluster thaw --help")
	if s := readSlot(t, store, cl, 0); s.Released {
		t.Errorf("%+v", s)
	}
}

func TestClusterFreeze(t *testing.T) {
	_, _ = newCluster(t, "--lease", "2h")
	call(t, "", "cluster", "freeze", "--for", "1ms").wants(t, exitUsage, "", "--for must be at least 1s, not 1ms")
	call(t, "", "cluster", "freeze", "--workers", "1024").wants(t, exitUsage, "", "the layout has workers 0 to 1023")
	r := call(t, "", "cluster", "freeze", "--for", "10m", "--workers", "0-5")
	r.wants(t, exitOK, "froze registration in cluster default, all workers except 6-1023: no new node acquires one of them until ", "")
	r.wants(t, exitOK, "a holder that ZooKeeper lost may serve for longer than that, up to 2h0m0s", "")
	call(t, "", "cluster", "freeze", "--for", "5m", "--workers", "0-3").wants(t, exitOK, "is already frozen for longer, all workers except 6-1023 until ", "")
	var shown clusterview.ClusterReport
	r = call(t, "", "cluster", "freeze", "-o", "json")
	if err := json.Unmarshal([]byte(r.stdout), &shown); err != nil || !shown.Frozen || shown.FrozenOpen != "" || shown.FrozenBy != whoami() {
		t.Errorf("%v: %+v", err, r)
	}
	if left := time.Until(time.UnixMilli(shown.FrozenUntilMs)); left < 2*time.Hour || left > 2*time.Hour+11*time.Second {
		t.Errorf("for %v", left)
	}
	call(t, "", "cluster", "show").wants(t, exitOK, "all workers, by "+whoami()+" (see flaked cluster thaw --help)", "")
	call(t, "", "status").wants(t, exitDegraded, "registration frozen until", "registration is frozen for all workers until")
	call(t, "", "cluster", "thaw", "--confirm", "no lost holder of cluster default is left").wants(t, exitOK, "ended the freeze", "")
	call(t, "", "cluster", "show").wants(t, exitOK, "IDs end", "")
}

func TestWorkersShow(t *testing.T) {
	store, cl := newCluster(t)
	a, claim := register(t, store, cl, "a")
	if err := a.Release(t.Context(), claim, time.Now().UnixMilli()-1); err != nil {
		t.Fatal(err)
	}
	tickets := call(t, "", "workers", "forget-ticket")
	tickets.wants(t, exitOK, "there are no unused tickets\n", "")

	// With one slot, the next ticket leads to worker 0 again, and b acquires it.
	s := readSlot(t, store, cl, 0)
	s.Released, s.LeaseUntil = true, time.Now().UnixMilli()-1
	put(t, store, "/workers/0000", s, false)
	cl.Slots = 1
	put(t, store, "/cluster", cl, false)
	_, _ = register(t, store, cl, "b")

	shown := call(t, "", "workers", "show", "0")
	for _, want := range []string{
		"worker          0\n", "state           live\n", "name            b\n", "node            node-b\n", "term            2 (its first: 2)\n",
		"phase           serving\n", "says            -\n", "what to do      -\n", "held before by  a (node-a): released\n", "held since      20",
	} {
		shown.wants(t, exitOK, want, "")
	}
	var one struct {
		clusterview.WorkerReport
		History []holderReport `json:"history"`
	}
	r := call(t, "", "workers", "show", "0", "-o", "json")
	if err := json.Unmarshal([]byte(r.stdout), &one); err != nil || one.Name != "b" || one.State != "live" || len(one.History) != 1 || one.History[0].Name != "a" || *one.History[0].Ended != "released" || *one.History[0].FromTerm != 1 {
		t.Errorf("%v: %s", err, r.stdout)
	}
	history := call(t, "", "workers", "history", "0")
	history.wants(t, exitOK, "NAME  NODE    HOST  FROM TERM  SINCE                 ENDED\na     node-a  a     1          20", "")
	history.wants(t, exitOK, "Z  holds it\n", "")
	r = call(t, "", "workers", "history", "0", "-o", "json")
	var both struct {
		Worker  int
		Holders []holderReport
	}
	if err := json.Unmarshal([]byte(r.stdout), &both); err != nil || len(both.Holders) != 2 || both.Holders[1].Name != "b" || both.Holders[1].Ended != nil || *both.Holders[1].FromTerm != 2 {
		t.Errorf("%v: %s", err, r.stdout)
	}
	call(t, "", "workers", "list").wants(t, exitOK, "0  b ", "")
	call(t, "", "workers", "list", "--state", "stopped,free").wants(t, exitOK, "", "")
	call(t, "", "workers", "list", "--state", "dead").wants(t, exitUsage, "", `--state: "dead" must be one of live, disconnected, stopped, releasing, record-missing, free`)
	var list workersReport
	r = call(t, "", "workers", "list", "-o", "json", "--state", "live")
	if err := json.Unmarshal([]byte(r.stdout), &list); err != nil || len(list.Workers) != 1 || list.Cluster.UUID != cl.UUID {
		t.Errorf("%v: %s", err, r.stdout)
	}
	call(t, "", "workers", "show", "1").wants(t, exitFailure, "", "there is no worker 1")

	call(t, "", "workers", "forget-ticket", "n-0000000001").wants(t, exitFailure, "", "ticket n-0000000001 belongs to worker 0, which node node-b (b) holds. It is deleted when the node gives up the worker")
	name, err := store.Create(t.Context(), "/tickets/n-", []byte(`{"node":"x","name":"ghost"}`), zkstore.PersistentSequential)
	if err != nil {
		t.Fatal(err)
	}
	name = name[len("/tickets/"):]
	call(t, "", "workers", "forget-ticket").wants(t, exitOK, name+"  ghost  x     -     20", "")
	r = call(t, "", "workers", "forget-ticket", "-o", "json")
	r.wants(t, exitOK, `"ticket": "`+name+`"`, "")
	call(t, "", "workers", "forget-ticket", name).wants(t, exitOK, "deleted ticket "+name+"\n", "")
	call(t, "", "workers", "forget-ticket", name).wants(t, exitFailure, "", "there is no ticket "+name)
	call(t, "", "workers", "forget-ticket", "../cluster").wants(t, exitUsage, "", "is not the name of a ticket")
}

func TestWorkersNeverHeld(t *testing.T) {
	_, _ = newCluster(t)
	call(t, "", "workers", "show", "7").wants(t, exitOK, "worker  7\nstate   free: any node may acquire it\n", "")
	call(t, "", "workers", "history", "7").wants(t, exitOK, "no node has held worker 7\n", "")
	call(t, "", "workers", "history", "7", "-o", "json").wants(t, exitOK, "\"holders\": []\n", "")
	call(t, "", "workers", "list").wants(t, exitOK, "", "")
}

// Neither the environment nor a file may confirm a call.
func TestConfirmIsCommandLineOnly(t *testing.T) {
	store, cl := newCluster(t)
	register(t, store, cl, "a")
	t.Setenv("FLAKED_CONFIRM", "release worker 0 of a")
	call(t, "", "workers", "release", "0").wants(t, exitUsage, "", "add --confirm")
	os.Unsetenv("FLAKED_CONFIRM")
	for _, line := range []string{"confirm: release worker 0 of a", "lower-bound: true", "yes: true"} {
		call(t, "", "workers", "release", "0", "--config", writeFile(t, "c.yaml", line)).wants(t, exitUsage, "", "no such setting")
	}
}
