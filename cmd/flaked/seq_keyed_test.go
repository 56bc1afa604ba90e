package main

import (
	"strings"
	"testing"
)

// Only `flaked seq show -o json` prints the key.
func TestSeqShowPrintsTheKey(t *testing.T) {
	w := newSeqWorld(t)
	w.call("create", "ticket", "--scatter", "34", "--start", "1000000000", "--max", "9999999999").wants(t, exitOK,
		"created sequence ticket. Its map is scatter-34, and its key is in ZooKeeper.\n", "")
	r, _ := w.show("ticket")
	want, err := w.operator().MapKey(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	prints := func(key string) {
		t.Helper()
		w.call("show", "ticket", "-o", "json").wants(t, exitOK, `"key": `+key, "")
	}
	prints(`"` + want.Hex() + `"`)
	for _, args := range [][]string{{"show", "ticket"}, {"list"}, {"list", "-o", "json"}} {
		if r := w.call(args...); r.code != exitOK || strings.Contains(r.stdout, want.Hex()) {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if err := w.store.Delete(t.Context(), "/seq/k/"+r.ID, 0); err != nil {
		t.Fatal(err)
	}
	prints("null")
}
