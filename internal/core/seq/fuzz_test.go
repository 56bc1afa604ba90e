package seq

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
)

// goodRecord returns the record of a new sequence.
func goodRecord(m sequence.Map) Record {
	return Record{ID: "i", Map: m, Settings: settings(1000), Gen: 1, Nonce: "n", KeyCheck: "k", Above: -1}
}

// FuzzRecords: a record of ZooKeeper is refused as damaged, or stays the same when it is written again. The next block
// of any record begins after the blocks taken before, and its values are within the bounds of the sequence.
func FuzzRecords(f *testing.F) {
	for _, m := range []sequence.Map{plain(), {Start: 1, Increment: 1, Salt: 16, Max: 1 << 62},
		{Increment: 1, Scatter: 31, Max: 1 << 31}} {
		f.Add(goodRecord(m).marshal(), int64(1), int64(1), int64(0))
	}
	f.Add([]byte(`{"mode":"later"}`), int64(1), int64(1), int64(0))
	f.Add(bytes.Replace(goodRecord(plain()).marshal(), []byte(`"next":0`),
		[]byte(`"next":9223372036854775807,"sections":99`), 1),
		int64(2), int64(50), int64(1e12))
	f.Fuzz(func(t *testing.T, data []byte, incarnation, n, now int64) {
		r, err := parseRecord(data)
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrUnknownMode) || len(err.Error()) > 500 {
				t.Fatal(err)
			}
			return
		}
		if again, err := parseRecord(r.marshal()); err != nil || again != r {
			t.Fatalf("%+v became %+v, %v", r, again, err)
		}
		n, now, incarnation = min(max(n, 1), 1e6), min(max(now, 0), 1<<50), max(incarnation, 0)
		plan := func(r Record, in int64) (write, *Refusal) { return r.plan(in, n, n, now) }
		if r.Mode == Strict {
			plan = func(r Record, in int64) (write, *Refusal) { return r.planStrict(in, n, now) }
		}
		w, refusal := plan(r, incarnation)
		if b, v := w.block, (*secret)(nil).valuesOf(r); refusal == nil && (b.First < r.Next || b.Len() < 1 ||
			b.End > r.Positions() || w.record.Next != b.End || v.Value(b.First) < r.Start || v.Value(b.End-1) > r.Max) {
			t.Fatalf("%+v gives %+v", r, w)
		}
	})
}

// FuzzState: /cluster and /seq are refused with their path, or stay the same when they are written again.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"uuid":"c","incarnation":2}`),
		State{Cluster: "c", Changes: 9, Changed: []string{"a", "b"}}.marshal())
	f.Add([]byte(`{"uuid":"c","incarnation":-1}`), []byte(`{"cluster":"c","changed":["a"]}`))
	f.Fuzz(func(t *testing.T, cluster, state []byte) {
		read := func(state []byte) (found, error) {
			return parseFound([]store.Record{{Found: true, Data: cluster}, {Found: true, Data: state}})
		}
		v, err := read(state)
		if err != nil {
			if !strings.HasPrefix(err.Error(), clusterPath) && !strings.HasPrefix(err.Error(), statePath) {
				t.Fatal(err)
			}
			return
		}
		if again, err := read(v.state.marshal()); err != nil || again.state.Changes != v.state.Changes ||
			!bytes.Equal(again.state.marshal(), v.state.marshal()) || v.state.Incarnation < 0 {
			t.Fatalf("%+v became %+v, %v", v.state, again.state, err)
		}
		names, all := v.state.since(v.state.Changes - 1)
		if !all && len(names) > 1 || v.state.Changes >= maxChanged && v.state.lastChange("a") > v.state.Changes {
			t.Fatalf("%+v: %q, %v", v.state, names, all)
		}
	})
}

// FuzzKeys: the keys of requests and the secret of a sequence are refused, or are written as they were read.
func FuzzKeys(f *testing.F) {
	f.Add(make([]byte, 2*keyEntryLen))
	f.Add([]byte(sequence.Key{1}.Hex()))
	f.Fuzz(func(t *testing.T, data []byte) {
		if entries, err := parseKeys(data); (err == nil) != (len(data)%keyEntryLen == 0) ||
			err == nil && !bytes.Equal((&keyring{entries: entries}).marshal(), data) ||
			cap(entries)*keyEntryLen > 8*len(data)+1024 {
			t.Fatalf("%q is %v, %v", data, entries, err)
		}
		k, ok := Record{KeyCheck: sequence.Key{1}.Fingerprint()}.secretIn(store.Record{Data: data})
		if good := strings.EqualFold(string(data), sequence.Key{1}.Hex()); ok != good || ok && k != (sequence.Key{1}) {
			t.Fatalf("%q is the key: %v", data, ok)
		}
	})
}

// FuzzFiles: sequences.cache is of no use, or the next process writes what it read. From sequences.journal, the next
// process issues only positions that the file has, each once.
func FuzzFiles(f *testing.F) {
	w := Witness{Incarnation: 1, State: State{Cluster: "c"}, Records: map[string]Record{"order": goodRecord(plain())},
		Keys: map[string][]byte{"order": make([]byte, keyEntryLen)}}
	f.Add(mustMarshal(w))
	f.Add([]byte(`{"count":5,"node":"me","boot":"b","read":7,"held":[{"name":"order","id":"i",` +
		`"last":{"First":0,"End":40},"blocks":[{"First":5,"End":9},{"First":7,"End":20}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := &memDir{files: map[string][]byte{witnessName: checked(data), journalName: checked(data)}}
		if w, ok := loadWitness(dir); ok {
			if err := saveWitness(dir, w); err != nil {
				t.Fatal(err)
			}
			if again, ok := loadWitness(dir); !ok || !bytes.Equal(mustMarshal(again), mustMarshal(w)) {
				t.Fatalf("%+v became %+v", w, again)
			}
			New(Config{Elapsed: elapsedOf(new(int64))}).remember(w)
			return
		}
		i := New(Config{Elapsed: elapsedOf(new(int64)), Boot: "b", Dir: dir})
		i.Recall()
		i.named("order").know(goodRecord(plain()))
		i.resume(ClusterInfo{Self: "me", Resumed: true})
		m, ok := i.named("order").mode.(*segment)
		if !ok {
			t.Fatal("not a segment")
		}
		var kept []held
		_ = json.Unmarshal(data, &i.journal.found)
		_ = json.Unmarshal(i.journal.found.Held, &kept)
		has := func(p int64) bool {
			return slices.ContainsFunc(kept, func(h held) bool {
				return slices.ContainsFunc(h.Blocks, func(b positions.Block) bool { return b.First <= p && p < b.End })
			})
		}
		n := int64(-1)
		for _, b := range m.stock.From(0) {
			if b.First <= n || b.Len() < 1 || !has(b.First) || !has(b.End-1) {
				t.Fatalf("%s gives %v", data, m.stock)
			}
			n = b.End - 1
		}
	})
}
