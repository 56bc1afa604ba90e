package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/ops/view"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// openStore connects to a cluster's records until the test ends.
func openStore(t *testing.T, connect, cluster string) store.Store {
	t.Helper()
	st, err := store.NewZK(store.ZKConfig{Connect: connect, Cluster: cluster})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- st.Run(context.Background()) }()
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
	return st
}

func put(t *testing.T, st store.Store, path string, v any, create bool) {
	t.Helper()
	data, ok := v.([]byte)
	if !ok {
		var err error
		if data, err = json.Marshal(v); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if create {
		_, err = st.Create(t.Context(), path, data, store.Persistent)
	} else {
		_, err = st.Set(t.Context(), path, data, store.AnyVersion)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestClusterCommands(t *testing.T) {
	zk := zktest.Chroot(t, zktest.Shared(t))
	t.Setenv("FLAKED_ZK", zk)
	call(t, "", "cluster", "show").wants(t, exitFailure, "",
		`cluster not found in this ZooKeeper (--zk `+zk+`, --cluster default). Check --zk and --cluster`)
	call(t, "", "cluster", "thaw").wants(t, exitFailure, "", "cluster not found")
	call(t, "", "status").wants(t, exitFailure, "", "cluster not found")

	made := call(t, "", "cluster", "init", "--layout", "twitter", "--datacenter", "3", "--lease", "1h")
	made.wants(t, exitOK, "created cluster default: ", "")
	made.wants(t, exitOK, "layout           "+
		"time=41@1ms,datacenter=5,worker=5,sequence=12,epoch=1288834974657\nworkers          32\ndatacenter       "+
		"3\nlease            1h0m0s\nconfirming time  12s\non a rollback    leaf\n", "")
	again := call(t, "", "cluster", "init", "--layout", "twitter", "--lease", "60m")
	again.wants(t, exitOK, "cluster default (", "")
	again.wants(t, exitOK, ") exists already. Nothing was changed.\n", "")
	for _, row := range []struct{ flag, want string }{
		{"--layout=leaf", "--layout time=41@1ms,datacenter=0,worker=10,sequence=12,epoch=1288834974657 differs from"},
		{"--datacenter=0", "--datacenter 0 differs from the cluster's 3. A cluster keeps the settings that it was"},
		{"--lease=24h", "--lease 24h0m0s differs from the cluster's 1h0m0s"},
		{"--confirm-time=1s", "--confirm-time 1s differs from the cluster's 12s"},
		{"--on-rollback=wait", "--on-rollback wait=1s differs from the cluster's leaf"},
		{"--borrow=1s", "--borrow 1s differs from the cluster's 0s"},
	} {
		call(t, "", "cluster", "init", "--layout", "twitter", row.flag).wants(t, exitFailure, "", row.want)
	}

	for _, row := range []struct{ flags, want string }{
		{"--on-rollback=rollback-bits", "--on-rollback rollback-bits needs a layout with a rollback field, but"},
		{"--layout=time=36@2s,worker=10,sequence=12", "ticks of 2s are too long for nodes, which reserve 3s: a tick"},
		{"--layout=pearflower --borrow=500ms", "borrow 500ms must be 0 or at least one tick (1s). Create the cluster"},
		{"--on-rollback=coast=4s --borrow=4s", "borrow 4s and the rollback policy coast=4s may put IDs more than 7s"},
		{"--borrow=-1s", "borrow -1s must be 0 or at least one tick (1ms). Create the cluster with --borrow 1ms or"},
		{"--borrow=1500us", "borrow 1.5ms must be a whole number of milliseconds. Correct --borrow"},
	} {
		call(t, "", append([]string{"cluster", "init", "--cluster", "new"},
			strings.Fields(row.flags)...)...).wants(t, exitUsage, "", row.want)
	}
	call(t, "", "cluster", "init", "--cluster", "bits", "--layout", "leaf,time=40,rollback=1", "--borrow",
		"2s").wants(t, exitOK, "on a rollback    rollback-bits\nborrows          up to 2s\n", "")

	var shown view.ClusterReport
	r := call(t, "", "cluster", "show", "-o", "json")
	if err := json.Unmarshal([]byte(r.stdout), &shown); err != nil || shown.Slots != 32 || shown.Datacenter != 3 ||
		shown.LeaseMs != 3_600_000 || shown.UUID == "" || shown.Frozen {
		t.Errorf("%v %s", err, r.stdout)
	}
	if !strings.Contains(made.stdout, shown.UUID) || !strings.Contains(again.stdout, shown.UUID) {
		t.Error("init names another cluster than show")
	}
	call(t, "", "cluster", "thaw").wants(t, exitOK, "cluster default was not frozen\n", "")

	t.Setenv("FLAKED_CLUSTER", "other")
	call(t, "", "cluster", "init").wants(t, exitOK, "created cluster other: ", "") // beside the first

	st := openStore(t, zk, "other")
	cl, err := coordinator.ReadCluster(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	cl.FrozenUntil = time.Now().Add(time.Hour).UnixMilli()
	put(t, st, "/cluster", cl, false)
	call(t, "", "cluster", "show").wants(t, exitOK, ", because ZooKeeper lost data. Start the missing nodes", "")
	call(t, "", "status").wants(t, exitDegraded, "0 live", "warning: Registration is frozen until")
	const words = "no lost holder of cluster other is left"
	call(t, "", "cluster", "thaw").wants(t, exitUsage, "", "all workers of cluster other become available to new")
	call(t, "", "cluster", "thaw", "--confirm", "yes").wants(t, exitUsage, "",
		"--confirm \"yes\" does not match. Nothing was changed. Use --confirm '"+words+"'")
	call(t, "", "cluster", "thaw", "--confirm", words).wants(t, exitOK, "ended the freeze of cluster other: its", "")
	call(t, "", "status").wants(t, exitOK, "no node has registered yet", "")
	cl.FrozenUntil = time.Now().Add(-time.Hour).UnixMilli()
	put(t, st, "/cluster", cl, false)
	call(t, "", "cluster", "thaw").wants(t, exitOK, "the freeze of cluster other had ended by itself: ", "")

	put(t, st, "/cluster", []byte("not ours"), false)
	call(t, "", "status").wants(t, exitFailure, "", "is not a cluster record of flaked")
}

// Only the user who made a cluster may read its record.
func TestClusterDenied(t *testing.T) {
	zk := zktest.Chroot(t, zktest.Shared(t))
	auth := writeFile(t, "auth", "me:secret\n")
	call(t, "", "cluster", "init", "--zk", zk, "--zk-auth-file", auth).wants(t, exitOK, "created cluster default: ", "")
	call(t, "", "cluster", "show", "--zk", zk, "--zk-auth-file", auth).wants(t, exitOK, "uuid", "")
	call(t, "", "cluster", "show", "--zk", zk).wants(t, exitFailure, "", "/flaked/default/cluster: not authenticated.")
	call(t, "", "status", "--zk", zk).wants(t, exitFailure, "", "Give --zk-auth-file with the user that created the")
}

func TestCommandsExit3WithoutZooKeeper(t *testing.T) {
	began := time.Now()
	for _, args := range []string{"status", "cluster show", "cluster init", "cluster thaw", "status -o json"} {
		args := append(strings.Fields(args), "--zk", "127.0.0.1:1")
		call(t, "", args...).wants(t, exitUnreachable, "", "connection refused by 127.0.0.1:1")
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestInterrupted(t *testing.T) {
	t.Setenv("FLAKED_TEST_SESSION_TIMEOUT", "1m")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	began := time.Now()
	callCtx(t, ctx, "", "status", "--zk", "127.0.0.1:1").wants(t, exitFailure, "", "flaked: interrupted\n")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}
