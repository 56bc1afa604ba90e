package record

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/check/upgrade"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
)

// The words after reason= in refusals of sequences, each with its code.
func TestFrozenReasons(t *testing.T) {
	var names []string
	for _, r := range Reasons {
		names = append(names, string(codes[r])+" "+string(r))
	}
	upgrade.Names(t, "reasons", names)
}

// fresh returns the record of a new sequence.
func fresh(m sequence.Map) Record {
	return Record{ID: "i", Map: m, Settings: settings(1000), WriteCount: 1, Nonce: "n", KeyCheck: "k", Above: -1}
}

// FuzzRecords: a record of ZooKeeper is refused as damaged, or stays the same when it is written again. The next block
// of any record begins after the blocks taken before, and its values are within the bounds of the sequence.
func FuzzRecords(f *testing.F) {
	for _, m := range []sequence.Map{plain(), {Start: 1, Increment: 1, Salt: 16, Max: 1 << 62},
		{Increment: 1, Scatter: 31, Max: 1 << 31}} {
		f.Add(fresh(m).Marshal(), int64(1), int64(1), int64(0))
	}
	f.Add([]byte(`{"mode":"later"}`), int64(1), int64(1), int64(0))
	f.Add(bytes.Replace(fresh(plain()).Marshal(), []byte(`"next":0`),
		[]byte(`"next":9223372036854775807,"sections":99`), 1),
		int64(2), int64(50), int64(1e12))
	f.Fuzz(func(t *testing.T, data []byte, incarnation, n, now int64) {
		r, err := Parse(data)
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrUnknownMode) || len(err.Error()) > 500 {
				t.Fatal(err)
			}
			return
		}
		if again, err := Parse(r.Marshal()); err != nil || again != r {
			t.Fatalf("%+v became %+v, %v", r, again, err)
		}
		n, now, incarnation = min(max(n, 1), 1e6), min(max(now, 0), 1<<50), max(incarnation, 0)
		plan := func(r Record, in int64) (Write, *Refusal) { return r.Plan(in, n, n, now) }
		if r.Mode == Strict {
			plan = func(r Record, in int64) (Write, *Refusal) { return r.PlanStrict(in, n, now) }
		}
		w, refusal := plan(r, incarnation)
		if b, v := w.Block, sequence.NewValues(r.Map, sequence.Key{}); refusal == nil && (b.First < r.Next || b.Len() < 1 ||
			b.End > r.Positions() || w.Record.Next != b.End || v.Value(b.First) < r.Start || v.Value(b.End-1) > r.Max) {
			t.Fatalf("%+v gives %+v", r, w)
		}
	})
}

// FuzzState: /cluster and /seq are refused with their path, or stay the same when they are written again.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"uuid":"c","incarnation":2}`),
		State{Cluster: "c", Changes: 9, Changed: []string{"a", "b"}}.Marshal())
	f.Add([]byte(`{"uuid":"c","incarnation":-1}`), []byte(`{"cluster":"c","changed":["a"]}`))
	f.Fuzz(func(t *testing.T, cluster, state []byte) {
		read := func(state []byte) (Snapshot, error) {
			return ParseSnapshot([]store.Record{{Found: true, Data: cluster}, {Found: true, Data: state}})
		}
		v, err := read(state)
		if err != nil {
			if !strings.HasPrefix(err.Error(), ClusterPath) && !strings.HasPrefix(err.Error(), StatePath) {
				t.Fatal(err)
			}
			return
		}
		if again, err := read(v.State.Marshal()); err != nil || again.State.Changes != v.State.Changes ||
			!bytes.Equal(again.State.Marshal(), v.State.Marshal()) || v.State.Incarnation < 0 {
			t.Fatalf("%+v became %+v, %v", v.State, again.State, err)
		}
		names, all := v.State.Since(v.State.Changes - 1)
		if !all && len(names) > 1 || v.State.Changes >= MaxChanged && v.State.LastChange("a") > v.State.Changes {
			t.Fatalf("%+v: %q, %v", v.State, names, all)
		}
	})
}

// FuzzKeys: the request keys and the map key of a sequence are refused, or are written as they were read.
func FuzzKeys(f *testing.F) {
	f.Add(make([]byte, 2*keyEntryLen))
	f.Add([]byte(sequence.Key{1}.Hex()))
	f.Fuzz(func(t *testing.T, data []byte) {
		if entries, err := ParseRequestKeys(data); (err == nil) != (len(data)%keyEntryLen == 0) ||
			err == nil && !bytes.Equal((&RequestKeys{Entries: entries}).Marshal(), data) ||
			cap(entries)*keyEntryLen > 8*len(data)+1024 {
			t.Fatalf("%q is %v, %v", data, entries, err)
		}
		k, ok := Record{KeyCheck: sequence.Key{1}.Fingerprint()}.MapKeyIn(store.Record{Data: data})
		if good := strings.EqualFold(string(data), sequence.Key{1}.Hex()); ok != good || ok && k != (sequence.Key{1}) {
			t.Fatalf("%q is the key: %v", data, ok)
		}
	})
}

func TestLastChange(t *testing.T) {
	var st State
	if n := st.LastChange("a"); n != 0 {
		t.Error(n)
	}
	for _, name := range []string{"a", "b", "a", "c"} {
		st = st.After(name)
	}
	for name, want := range map[string]int64{"a": 3, "b": 2, "c": 4, "never": 0} {
		if n := st.LastChange(name); n != want {
			t.Errorf("%s: %d, want %d", name, n, want)
		}
	}
	for k := range MaxChanged {
		st = st.After(fmt.Sprint("x", k))
	}
	if n := st.LastChange("a"); n != 4 { // it may be any of the first 4
		t.Error(n)
	}
}

func TestSince(t *testing.T) {
	var s State
	for k := range 70 {
		s = s.After(fmt.Sprint("s", k))
	}
	for changes, want := range map[int64]struct {
		names int
		all   bool
	}{70: {0, false}, 69: {1, false}, 6: {64, false}, 5: {0, true}, 71: {0, true}} {
		names, all := s.Since(changes)
		if len(names) != want.names || all != want.all || len(names) > 0 && names[len(names)-1] != "s69" {
			t.Errorf("since %d: %v, %v", changes, names, all)
		}
	}
	if names, _ := s.Since(68); !slices.Equal(names, []string{"s68", "s69"}) {
		t.Error(names)
	}
}

func TestVersionOfKeysAfterAWrite(t *testing.T) {
	for _, c := range []struct {
		k    RequestKeys
		want int32
		ops  int
	}{
		{RequestKeys{}, 0, 1}, {RequestKeys{Exists: true, Version: 7}, 8, 1},
		{RequestKeys{Exists: true, Version: -2}, 0, 2}, // a write at version -1 would be unconditional
	} {
		if got := c.k.AfterWrite(); !got.Exists || got.Version != c.want || len(c.k.Ops("id")) != c.ops {
			t.Errorf("%+v: %+v", c.k, got)
		}
	}
}
