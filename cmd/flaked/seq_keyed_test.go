package main

import (
	"strings"
	"testing"

	"github.com/flaked/flaked/sequence"
)

// Only `flaked seq show -o json` prints the key.
func TestSeqShowPrintsTheKey(t *testing.T) {
	w := newSeqWorld(t)
	w.call("create", "ticket", "--scatter", "34", "--start", "1000000000", "--max", "9999999999").wants(t, exitOK,
		"created sequence ticket. Its map is scatter-34, and its key is in ZooKeeper.\n", "")
	record, _ := w.show("ticket")
	want, err := w.operator().Key(t.Context(), record)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		seqReport
		Key *string `json:"key"`
	}
	if w.json(&doc, "show", "ticket"); doc.Key == nil || *doc.Key != want.Hex() || doc.Start != 1_000_000_000 ||
		doc.Scatter != 34 || doc.Max != 9_999_999_999 {
		t.Errorf("%+v", doc)
	}
	if k, err := sequence.ParseKey(*doc.Key); err != nil || k != want {
		t.Error(err)
	}
	for _, args := range [][]string{{"show", "ticket"}, {"list"}, {"list", "-o", "json"}} {
		if r := w.call(args...); r.code != exitOK || strings.Contains(r.stdout, want.Hex()) {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if err := w.store.Delete(t.Context(), "/seq/k/"+record.ID, 0); err != nil {
		t.Fatal(err)
	}
	if w.json(&doc, "show", "ticket"); doc.Key != nil {
		t.Errorf("%+v", doc)
	}
}
