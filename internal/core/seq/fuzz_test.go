package seq

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/flaked/flaked/internal/core/entrylog"
	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/losses"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
)

// goodRecord returns the record of a new sequence.
func goodRecord(m sequence.Map) record.Record {
	return record.Record{ID: "i", Map: m, Settings: settings(1000), WriteCount: 1, Nonce: "n", KeyCheck: "k", Above: -1}
}

// FuzzFiles: sequences.cache is of no use, or the next process writes what it read. From sequences.journal, the next
// process issues only positions that the file has, each once.
func FuzzFiles(f *testing.F) {
	r := goodRecord(plain())
	f.Add(
		store.Marshal(Witness{Memory: losses.Memory{Incarnation: 1, State: record.State{Cluster: "c"}}}), store.Marshal(r),
		store.Marshal(make([]byte, 20)))
	f.Add([]byte(`{"count":5,"node":"me","boot":"b","read":7}`), []byte(`{"id":"i",`+
		`"last":{"First":0,"End":40},"blocks":[{"First":5,"End":9},{"First":7,"End":20}]}`), []byte("null"))
	f.Fuzz(func(t *testing.T, head, entry, keys []byte) {
		if !json.Valid(head) || !json.Valid(entry) || !json.Valid(keys) {
			t.Skip("no process writes that")
		}
		dir := &memDir{}
		files := map[string]entrylog.Entries{
			witnessName: {"": head, recordPrefix + "order": entry, requestKeysPrefix + "order": keys},
			journalName: {"": head, "order": entry},
		}
		for name, all := range files {
			if err := entrylog.New(dir, name).Write(all); err != nil {
				t.Fatal(err)
			}
		}
		if w, ok := loadWitness(dir); ok {
			if err := saveWitness(dir, w); err != nil {
				t.Fatal(err)
			}
			if again, ok := loadWitness(dir); !ok || !reflect.DeepEqual(again, w) {
				t.Fatalf("%+v became %+v", w, again)
			}
			_, i := New(Config{Elapsed: elapsedOf(new(int64))})
			i.recallWitness(w)
			return
		}
		_, i := New(Config{Elapsed: elapsedOf(new(int64)), Boot: "b", Dir: dir})
		i.Recall()
		i.issuer.series.findOrAdd("order").setRecord(goodRecord(plain()))
		i.resume(ClusterInfo{Self: "me", Resumed: true})
		m, ok := i.issuer.series.findOrAdd("order").Issuing.(*segment)
		if !ok {
			t.Fatal("not a segment")
		}
		var kept held
		_ = json.Unmarshal(entry, &kept)
		has := func(p int64) bool {
			return slices.ContainsFunc(kept.Blocks, func(b positions.Block) bool { return b.First <= p && p < b.End })
		}
		n := int64(-1)
		for _, b := range m.stock.From(0) {
			if b.First <= n || b.Len() < 1 || !has(b.First) || !has(b.End-1) {
				t.Fatalf("%s and %s give %v", head, entry, m.stock)
			}
			n = b.End - 1
		}
	})
}
