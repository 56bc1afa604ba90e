package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// The help of `flaked cluster freeze` says by how much a freeze is longer than the longest lease.
func TestHelpSaysHowLongAFreezeLasts(t *testing.T) {
	const day = 24 * time.Hour
	confirm := limits.DefaultConfirm(limits.DefaultHeartbeat)
	frozen := coordinator.Cluster{LeaseMs: day.Milliseconds(), ConfirmMs: confirm.Milliseconds()}.Freeze(0)
	want := fmt.Sprintf("such as %.0f minutes more if that is a day", (millis(frozen.FrozenUntil) - day).Minutes())
	if help := strings.Join(strings.Fields(clusterFreezeCommand().Description), " "); !strings.Contains(help, want) {
		t.Errorf("the help does not say %q", want)
	}
}

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

// Only the user who made a cluster may read its record.
func TestClusterDenied(t *testing.T) {
	zk := zktest.Chroot(t, zktest.Shared(t))
	auth := writeFile(t, "auth", "me:secret\n")
	call(t, "", "cluster", "init", "--zk", zk, "--zk-auth-file", auth).wants(t, exitOK, "created cluster default: ", "")
	call(t, "", "cluster", "show", "--zk", zk, "--zk-auth-file", auth).wants(t, exitOK, "uuid", "")
	call(t, "", "cluster", "show", "--zk", zk).wants(t, exitFailure, "", "/flaked/default/cluster: not authenticated.")
	call(t, "", "status", "--zk", zk).wants(t, exitFailure, "", "Give --zk-auth-file with the user that created the")
}

func TestInterrupted(t *testing.T) {
	defer func(d time.Duration) { sessionTimeout = d }(sessionTimeout)
	sessionTimeout = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	began := time.Now()
	callCtx(t, ctx, "", "status", "--zk", "127.0.0.1:1").wants(t, exitFailure, "", "flaked: interrupted\n")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}
