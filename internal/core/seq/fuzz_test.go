package seq

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/flaked/flaked/internal/core/positions"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/sequence"
)

// goodRecord returns the record of a new sequence.
func goodRecord(m sequence.Map) record.Record {
	return record.Record{ID: "i", Map: m, Settings: settings(1000), Gen: 1, Nonce: "n", KeyCheck: "k", Above: -1}
}

// FuzzFiles: sequences.cache is of no use, or the next process writes what it read. From sequences.journal, the next
// process issues only positions that the file has, each once.
func FuzzFiles(f *testing.F) {
	w := Witness{Incarnation: 1, State: record.State{Cluster: "c"}, Records: map[string]record.Record{"order": goodRecord(plain())},
		Keys: map[string][]byte{"order": make([]byte, 20)}}
	f.Add(store.Marshal(w))
	f.Add([]byte(`{"count":5,"node":"me","boot":"b","read":7,"held":[{"name":"order","id":"i",` +
		`"last":{"First":0,"End":40},"blocks":[{"First":5,"End":9},{"First":7,"End":20}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := &memDir{files: map[string][]byte{witnessName: checked(data), journalName: checked(data)}}
		if w, ok := loadWitness(dir); ok {
			if err := saveWitness(dir, w); err != nil {
				t.Fatal(err)
			}
			if again, ok := loadWitness(dir); !ok || !bytes.Equal(store.Marshal(again), store.Marshal(w)) {
				t.Fatalf("%+v became %+v", w, again)
			}
			_, i := New(Config{Elapsed: elapsedOf(new(int64))})
			i.remember(w)
			return
		}
		_, i := New(Config{Elapsed: elapsedOf(new(int64)), Boot: "b", Dir: dir})
		i.Recall()
		i.issuer.series.named("order").know(goodRecord(plain()))
		i.resume(ClusterInfo{Self: "me", Resumed: true})
		m, ok := i.issuer.series.named("order").mode.(*segment)
		if !ok {
			t.Fatal("not a segment")
		}
		var kept []held
		_ = json.Unmarshal(data, &i.issuer.journal.found)
		_ = json.Unmarshal(i.issuer.journal.found.Held, &kept)
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
