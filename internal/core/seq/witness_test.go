package seq

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/limits"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
)

// The disk changes one byte of what a node remembers. A wrong next position would be put back, or a wrong write count
// taken for a loss of data.
func TestDamagedWitnessIsIgnored(t *testing.T) {
	_, a := newOrder(t)
	a.ask("order", 1, false).first()
	w, ok := a.is.witness()
	w.RequestKeys = map[string][]byte{"order": make([]byte, 20)}
	dir := &memDir{}
	if err := saveWitness(dir, w); err != nil || !ok {
		t.Fatal(err, ok)
	}
	data := dir.Files[witnessName]
	if got, ok := loadWitness(dir); !ok || !reflect.DeepEqual(got, w) {
		t.Fatal(got, ok)
	}
	for k := range data {
		damaged := bytes.Clone(data)
		damaged[k] ^= 1
		dir.Files[witnessName] = damaged
		if got, ok := loadWitness(dir); ok {
			t.Fatalf("byte %d is %q instead of %q: %+v", k, damaged[k], data[k], got)
		}
	}
}

// The next process knows whom this one has met, and in which cluster.
func TestWitnessRemembersPeers(t *testing.T) {
	_, a := newOrder(t)
	want := []coordinator.Peer{{Node: "b", Worker: 1, Term: 2, Name: "b", Address: "b:7609", SeenMs: 3}}
	a.is.issuer.cfg.Met = func() []coordinator.Peer { return want }
	a.ask("order", 1, false).first()
	w, _ := a.is.witness()
	dir := &memDir{}
	if err := saveWitness(dir, w); err != nil {
		t.Fatal(err)
	}
	_, next := New(Config{Elapsed: elapsedOf(new(int64)), Dir: dir})
	if cluster, met := next.Recall(); cluster != w.State.Cluster || cluster == "" || !reflect.DeepEqual(met, want) {
		t.Errorf("%q %+v", cluster, met)
	}
}

// A node that stops before it has compared all records keeps its older witness, with the peers of now.
func TestWitnessRemembersPeersAfterALoss(t *testing.T) {
	_, a := newOrder(t)
	a.ask("order", 1, false).first()
	old, _ := a.is.witness()
	dir := &memDir{}
	if err := saveWitness(dir, old); err != nil {
		t.Fatal(err)
	}
	old.Met = []coordinator.Peer{{Node: "b", Worker: 1, Term: 2, Name: "b", Address: "b:7609", SeenMs: 3}}
	_, is := New(Config{Elapsed: elapsedOf(new(int64)), Dir: dir, Met: func() []coordinator.Peer { return old.Met }})
	is.saveLast()
	if got, ok := loadWitness(dir); !ok || !reflect.DeepEqual(got, old) {
		t.Errorf("%+v, want %+v", got, old)
	}
}

// Values do not wait for the disk, but operators hear of a change only when it is there.
func TestWitnessOnADiskThatHangs(t *testing.T) {
	s := newStage(t)
	a := s.node()
	var hang []func()
	a.is.saver.inBackground = func(f func()) { hang = append(hang, f) }
	s.create("orders", plain(), settings(1000))
	s.run(5 * time.Second)
	if got := a.ask("orders", 1, false).first(); got != 1 {
		t.Errorf("the first value is %d", got)
	}
	if got := told(a.is.issuer.Followed()); got != "change 0 of incarnation 0, compared in 0, takes" || len(hang) != 1 {
		t.Errorf("followed %s, and %d writes have begun", got, len(hang))
	}
	hang[0]()
	s.run(time.Second)
	if got := told(a.is.issuer.Followed()); got != "change 1 of incarnation 0, compared in 0, takes" {
		t.Errorf("followed %s", got)
	}
}

// A node that has never written the file has followed nothing that operators may hear of, although nothing has changed.
func TestFirstWitnessOnADiskThatHangs(t *testing.T) {
	s := newStage(t)
	a := s.newNode()
	a.restart()
	var hang []func()
	a.is.saver.inBackground = func(f func()) { hang = append(hang, f) }
	s.run(stageConfirm + time.Second)
	if r := a.is.issuer.Report(); r.State.Cluster != "" || len(hang) != 1 {
		t.Fatalf("followed %+v, and %d writes have begun", r.State, len(hang))
	}
	hang[0]()
	s.run(time.Second)
	if r := a.is.issuer.Report(); r.State.Cluster == "" {
		t.Error("followed nothing")
	}
}

// A node joins another cluster, which has as many changes. What it saves, or has saved, of the first one does not
// count.
func TestWitnessOfAnotherCluster(t *testing.T) {
	s, a := newOrder(t)
	s.run(5 * time.Second)
	var hang []func()
	a.is.saver.inBackground = func(f func()) { hang = append(hang, f) }
	s.set("order", operator.Change{Settings: func(set *record.Settings) { set.SupplyMs++ }})
	s.run(4 * time.Second)
	a.cluster.UUID = "d"
	s.erase(record.Path("order"))
	s.write(record.StatePath, record.State{Cluster: "d", Changes: 1}.Marshal())
	s.write(record.ClusterPath, store.Marshal(record.Cluster{UUID: "d"}))
	for n, want := range []int64{0, 0, 1} { // writes that have ended
		if s.run(4 * time.Second); len(hang) < n+1 && n < 2 {
			t.Fatalf("%d writes have begun", len(hang))
		}
		if f := a.is.issuer.Followed(); f.Last.Number != want {
			t.Errorf("after %d writes: %s", n, told(f))
		}
		if n < 2 {
			hang[n]()
		}
	}
}

// A disk that hangs delays a stop no longer than a round of calls: the worker must still be given back.
func TestStopOnADiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, is := New(Config{Elapsed: elapsedOf(new(int64))})
		is.issuer.publish(func(p *progress) { p.beginSave(&following{}, 0) })
		began := time.Now()
		is.saveLast()
		if took := time.Since(began); took != limits.Round {
			t.Errorf("the stop takes %s", took)
		}
		is.saver.ended <- nil
	})
}

// In one incarnation, another node puts the sequence time back further than this one has. The witness file has that
// before the node says that it has followed: else all processes may end, and the time runs back at the next loss.
func TestJumpOfTheTimeIsKeptAtOnce(t *testing.T) {
	s := newStage(t)
	a := s.node()
	s.create("order", plain(), settings(1000))
	s.run(5 * time.Second)
	a.noteLoss()
	s.run(stageConfirm + 5*time.Second)
	var kept int64
	a.is.saver.write = func(w Witness) error { kept = w.Last.Time; return nil }
	v := s.view("order")
	st := *v.State
	st.Time += 40_000
	st.Jumped = st.Time
	if err := s.Mem.Session().Multi(context.Background(), v.SetStateOps(st)...); err != nil {
		t.Fatal(err)
	}
	s.run(4 * time.Second)
	if f := a.is.issuer.Followed(); kept < st.Time || f.Last.Incarnation != 1 {
		t.Errorf("the time is %d, the file has %d, followed %s", st.Time, kept, told(f))
	}
}

// The disk takes no witness, or the next process would not find the directory. The issuer says so until that is over,
// for reports and for its last line.
func TestDirectoryThatKeepsNothing(t *testing.T) {
	s := newStage(t)
	a := s.node()
	a.openJournal(&memDir{})
	s.create("order", plain(), settings(1000))
	s.run(5 * time.Second)
	full, gone := errors.New("no space left"), errors.New("deleted")
	failing := func(err error) func(Witness) error { return func(Witness) error { return err } }
	for _, row := range []struct{ write, gone, want error }{
		{nil, nil, nil}, {full, nil, full}, {full, gone, gone}, {nil, gone, gone}, {nil, nil, nil},
	} {
		a.is.saver.write, a.dir.Gone = failing(row.write), row.gone
		s.run(3 * saveEvery)
		if err := a.is.issuer.DirError(); err != row.want || a.is.issuer.keepsForRestart() != (row.gone == nil) {
			t.Errorf("%v, want %v", err, row.want)
		}
	}
}

// A node joins another cluster, in which it may not create /seq yet, while it saves what it knows of the first one.
func TestWitnessOfAnotherClusterBeforeItsState(t *testing.T) {
	s := newStage(t)
	empty := s.Mem.Snapshot()
	a := s.node()
	s.create("order", plain(), settings(1000))
	s.run(5 * time.Second)
	var hang []func()
	a.is.saver.inBackground = func(f func()) { hang = append(hang, f) }
	s.set("order", operator.Change{Settings: func(set *record.Settings) { set.SupplyMs++ }})
	s.run(4 * time.Second)
	if len(hang) != 1 {
		t.Fatalf("%d writes have begun", len(hang))
	}
	a.cluster.UUID = "d"
	a.hold = func() Slot { return Slot{Path: a.slot, Version: store.AnyVersion, Wait: time.Second} }
	s.Mem.RestoreRunning(empty)
	s.write(record.ClusterPath, store.Marshal(record.Cluster{UUID: "d"}))
	s.run(4 * time.Second)
	hang[0]()
	s.run(4 * time.Second)
	if f := a.is.issuer.Followed(); f.Last.Number != 0 {
		t.Errorf("followed %s", told(f))
	}
}
