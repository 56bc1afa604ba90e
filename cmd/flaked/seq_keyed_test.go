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

// Sequences with a key have flags and words of their own.
func TestSeqSetOfScattered(t *testing.T) {
	w := newSeqWorld(t)
	w.call("create", "ticket", "--scatter", "40")
	w.call("set", "ticket", "--next", "50").wants(t, exitFailure, "", "ticket: --next is not for scattered sequences")
	w.call("set", "ticket", "--next-position", "1", "--next", "1").wants(t, exitUsage, "", "both given")
	r := w.call("set", "ticket", "--next-position", "50", "--confirm", "skip positions of ticket below 50")
	r.wants(t, exitOK, "next position  0 of 1099511627776  50 of 1099511627776\n", "")
	w.losesData()
	words := "ticket is unused from position 90 on in incarnation 1"
	r = w.call("set", "ticket", "--next-position", "90", "--vouch-after-loss", "--confirm", words)
	r.wants(t, exitOK, "changed sequence ticket", "")
	w.call("delete", "ticket").wants(t, exitUsage, "", "whose next value is secret.")
	w.call("create", "bad", "--salt", "8", "--scatter", "40").wants(t, exitUsage, "", "--salt must not be combined")
	r = w.call("create", "t:*", "--scatter", "40", "--start", "1")
	r.wants(t, exitOK, "at its first use, with a key of its own.\n", "")
}
