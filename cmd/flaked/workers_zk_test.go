package main

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
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

// clusterWorld is a cluster in a real ZooKeeper.
type clusterWorld struct {
	t     *testing.T
	zk    string
	nodes map[string]*coordinator.Coordinator // by name
}

// happens makes an event happen.
func (w *clusterWorld) happens(event string) {
	w.t.Helper()
	st := openStore(w.t, w.zk, "default")
	cl, err := coordinator.ReadCluster(w.t.Context(), st)
	if err != nil {
		w.t.Fatal(err)
	}
	switch event {
	case "nodes a, b and c get the workers 0, 1 and 2":
		for _, name := range []string{"a", "b", "c"} {
			w.nodes[name] = register(w.t, st, cl, name)
		}
	case "node b stops":
		err = w.nodes["b"].Stop(w.t.Context(), time.Now().UnixMilli(), 1)
	case "node a sends a heartbeat, and is fenced":
		if _, err := w.nodes["a"].Heartbeat(w.t.Context(), coordinator.Report{Lease: time.Hour}); err == nil {
			w.t.Error("it is not fenced")
		}
	case "the lease of node c expires":
		var s coordinator.Slot
		if data, _, err := st.Get(w.t.Context(), coordinator.SlotPath(2)); err != nil ||
			json.Unmarshal(data, &s) != nil {
			w.t.Fatalf("%v: %s", err, data)
		}
		s.LeaseUntil = time.Now().Add(-6 * time.Second).UnixMilli()
		put(w.t, st, coordinator.SlotPath(2), s, false)
		err = st.Delete(w.t.Context(), "/live/0002", store.AnyVersion)
	case "the record of worker 3 is damaged":
		put(w.t, st, coordinator.SlotPath(3), []byte("{"), false)
	case "a node notices a loss of data":
		cl.FrozenUntil = time.Now().Add(time.Hour).UnixMilli()
		put(w.t, st, "/cluster", cl, false)
	case "the freeze ends":
		cl.FrozenUntil, cl.FrozenBy = time.Now().Add(-time.Hour).UnixMilli(), ""
		put(w.t, st, "/cluster", cl, false)
	case "a node has served sequences":
		put(w.t, st, "/seq", record.State{Cluster: cl.UUID}, true)
	case "nodes take near below 801":
		_, err = operator.Commands{Store: st}.Set(w.t.Context(), "near", operator.Change{Next: new(int64(801))})
	case "somebody writes over the record of near":
		put(w.t, st, fmt.Sprintf("/seq/s/%03x/near", positions.Bucket("near")), []byte("{"), false)
	case "a later release makes order sorted":
		put(w.t, st, fmt.Sprintf("/seq/s/%03x/order", positions.Bucket("order")), []byte(`{"mode":"sorted"}`), false)
	case "somebody writes over the record of all sequences":
		put(w.t, st, "/seq", []byte("{"), false)
	case "somebody writes over the cluster's record":
		put(w.t, st, "/cluster", []byte("not ours"), false)
	default:
		w.t.Fatalf("no such event: %q", event)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestClusterTranscript(t *testing.T) {
	w := &clusterWorld{t: t, zk: zktest.Chroot(t, zktest.Shared(t)), nodes: map[string]*coordinator.Coordinator{}}
	t.Setenv("FLAKED_ZK", w.zk)
	transcript(t, "cluster.txt", nil, w.happens)
}
