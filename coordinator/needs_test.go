package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/flaked/flaked/zkstore"
)

// needsWorld has a cluster with one slot, in memory.
func needsWorld(t *testing.T, slot Slot) *zkstore.MemSession {
	t.Helper()
	store := zkstore.NewMem(nil).Session()
	if _, err := CreateCluster(t.Context(), store, Cluster{UUID: "u", Slots: 4, LeaseMs: 1000}); err != nil {
		t.Fatal(err)
	}
	if _, err := updateCluster(t.Context(), store, func(cl *Cluster) bool { cl.HighestSlot = 2; return true }); err != nil {
		t.Fatal(err)
	}
	writeSlot(t, store, slot)
	return store
}

func writeSlot(t *testing.T, store zkstore.Store, slot Slot) {
	t.Helper()
	slot.Node, slot.Nonce, slot.Term, slot.LeaseUntil = "n", "x", 1, 1
	_ = store.Delete(t.Context(), slotPath(1), zkstore.AnyVersion)
	if _, err := store.Create(t.Context(), slotPath(1), slot.marshal(), zkstore.Persistent); err != nil {
		t.Fatal(err)
	}
}

func needs(t *testing.T, store zkstore.Store) string {
	t.Helper()
	cl, err := ReadCluster(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	if cl.HighestSlot != 2 || cl.UUID != "u" || cl.LeaseMs != 1000 {
		t.Fatalf("%+v", cl)
	}
	return cl.Needs
}

// now is a time at which the record that writeSlot has just written is fresh.
func freshNow(t *testing.T, store zkstore.Store) int64 {
	t.Helper()
	_, stat, err := store.Get(t.Context(), slotPath(1))
	if err != nil {
		t.Fatal(err)
	}
	return stat.Mtime
}

func TestRequireSequencesMarksTheCluster(t *testing.T) {
	store := needsWorld(t, Slot{Followed: Followed{Changes: 1}})
	op, err := RequireSequences(t.Context(), store, freshNow(t, store))
	if err != nil || needs(t, store) != NeedsSequences {
		t.Fatal(err, needs(t, store))
	}
	if again, err := RequireSequences(t.Context(), store, freshNow(t, store)); err != nil || again != op {
		t.Errorf("%v, not %v, or %v", again, op, err)
	}
	data, _, err := store.Get(t.Context(), clusterPath)
	if err != nil {
		t.Fatal(err)
	}
	// Versions of flaked without Needs refuse a record without highest_slot.
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil || fields["highest_slot"] != nil || fields["highest_worker"] != 2.0 {
		t.Errorf("%s", data)
	}
	if _, err := parseCluster([]byte(strings.Replace(string(data), NeedsSequences, "wings", 1))); err == nil || !strings.Contains(err.Error(), `know "wings", which this version of flaked does not. Upgrade it`) {
		t.Error(err)
	}
	if _, err := parseCluster([]byte(strings.Replace(string(data), "highest_worker", "other", 1))); err == nil || !strings.Contains(err.Error(), "another release of flaked wrote /cluster") {
		t.Error(err)
	}
}

func TestRequireSequencesRefusesOldNodes(t *testing.T) {
	const long = 60_000
	for _, row := range []struct {
		name    string
		slot    Slot
		live    bool
		age     int64
		refuses bool
	}{
		{"old, connected", Slot{}, true, long, true},
		{"old, has just reported", Slot{}, false, 0, true},
		{"old, gone", Slot{}, false, long, false},
		{"old, stopped", Slot{Stopped: true}, false, 0, false},
		{"old, gave its worker back", Slot{Released: true}, false, 0, false},
		{"new, has read nothing", Slot{Followed: Followed{Changes: 1}}, true, 0, false},
	} {
		store := needsWorld(t, row.slot)
		if row.live {
			if _, err := store.Create(t.Context(), lockPath(1), nil, zkstore.Ephemeral); err != nil {
				t.Fatal(err)
			}
		}
		_, err := RequireSequences(t.Context(), store, freshNow(t, store)+row.age)
		var unfit *UnfitError
		if refused := errors.As(err, &unfit); refused != row.refuses || refused && unfit.Nodes[0].Worker != 1 || err != nil && !refused {
			t.Errorf("%s: %v", row.name, err)
		}
		if marked := needs(t, store) != ""; marked == row.refuses {
			t.Errorf("%s: marked: %v", row.name, marked)
		}
	}
}

// joining is a store on which an old node confirms a slot at the moment before the cluster is marked.
type joining struct {
	zkstore.Store
	join func()
}

func (j *joining) Set(ctx context.Context, path string, data []byte, version int32) (zkstore.Stat, error) {
	if join := j.join; path == clusterPath && join != nil {
		j.join = nil
		join()
	}
	return j.Store.Set(ctx, path, data, version)
}

// A node that confirms between the look at the slots and the mark is seen, and the mark is withdrawn: else
// the node would serve until its lease ends, and stop.
func TestRequireSequencesSeesANodeThatJoinsMeanwhile(t *testing.T) {
	store := needsWorld(t, Slot{Stopped: true})
	_, err := RequireSequences(t.Context(), &joining{store, func() { writeSlot(t, store, Slot{}) }}, freshNow(t, store))
	var unfit *UnfitError
	if !errors.As(err, &unfit) || needs(t, store) != "" {
		t.Errorf("%v, needs %q", err, needs(t, store))
	}
	// An earlier creation has marked the cluster. Its mark stays.
	writeSlot(t, store, Slot{Stopped: true})
	if _, err := RequireSequences(t.Context(), store, freshNow(t, store)); err != nil {
		t.Fatal(err)
	}
	writeSlot(t, store, Slot{})
	if _, err := RequireSequences(t.Context(), store, freshNow(t, store)); !errors.As(err, &unfit) || needs(t, store) != NeedsSequences {
		t.Errorf("%v, needs %q", err, needs(t, store))
	}
}

// The operation that RequireSequences returns fails if the mark was withdrawn since.
func TestRequireSequencesHoldsForTheWrite(t *testing.T) {
	store := needsWorld(t, Slot{Stopped: true})
	op, err := RequireSequences(t.Context(), store, freshNow(t, store))
	if err != nil {
		t.Fatal(err)
	}
	if err := setNeeds(t.Context(), store, ""); err != nil {
		t.Fatal(err)
	}
	if err := store.Multi(t.Context(), op, zkstore.CreateOp{Path: "/x"}); !errors.Is(err, zkstore.ErrBadVersion) {
		t.Error(err)
	}
}

// A node that serves sequences marks the cluster again when ZooKeeper has lost the mark, also after another
// node has put the record back that never knew of it.
func TestHeartbeatRestoresTheMark(t *testing.T) {
	l := newLab(t, 4)
	a := l.serving("A")
	a.co.Followed = func() Followed { return Followed{Changes: 1, Epoch: 1} }
	if a.mustBeat(); l.cluster().Needs != "" {
		t.Error("marked without a sequence")
	}
	a.co.Followed = func() Followed { return Followed{Changes: 2, Epoch: 1} }
	if a.mustBeat(); l.cluster().Needs != NeedsSequences {
		t.Error("not marked")
	}
	if s := l.slot(a.claim.Worker); s.Changes != 2 || s.Epoch != 1 {
		t.Errorf("%+v", s)
	}
	l.remove(clusterPath)
	a.mustBeat()
	if a.mustBeat(); l.cluster().Needs != NeedsSequences {
		t.Error("not marked after a loss")
	}
}

// No node that puts the record back after a loss removes the mark.
func TestFreezeKeepsTheMark(t *testing.T) {
	for _, row := range [][2]string{{NeedsSequences, ""}, {"", NeedsSequences}} {
		found, mine := Cluster{UUID: "u", Needs: row[0]}, Cluster{UUID: "u", Needs: row[1]}
		if next := frozenAfterLoss(found, mine, 1000); next.Needs != NeedsSequences {
			t.Errorf("%q %q: %q", row[0], row[1], next.Needs)
		}
	}
}
