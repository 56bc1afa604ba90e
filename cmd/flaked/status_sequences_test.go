package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/ops/view"
)

func TestStatusCountsSequences(t *testing.T) {
	store, cl := newCluster(t)
	if r := call(t, "", "status"); strings.Contains(r.stdout, "named sequence") {
		t.Errorf("without sequences it prints\n%s", r.stdout)
	}
	put(t, store, "/seq", seq.State{Cluster: cl.UUID}, true)
	for _, args := range [][]string{
		{"create", "order"}, {"create", "day:*", "--max-names", "5"}, {"create", "near", "--max", "1000"},
		{"create", "gone"}, {"delete", "gone", "--confirm", "delete sequence gone"},
	} {
		if r := call(t, "", append([]string{"seq"}, args...)...); r.code != exitOK {
			t.Fatalf("%q: %+v", args, r)
		}
	}
	ends := func(line string) {
		t.Helper()
		if r := call(t, "", "status"); r.code != exitOK || !strings.HasSuffix(r.stdout, line+"\n") {
			t.Errorf("exit code %d\n%s\nwant\n%s", r.code, r.stdout, line)
		}
	}
	ends("\n2 named sequences, 1 template")
	o := seq.Operator{Store: store}
	if _, err := o.Set(t.Context(), "near", seq.Change{Next: new(int64(801))}); err != nil {
		t.Fatal(err)
	}
	ends("\n2 named sequences, 1 template. Sequences used to 80 % or more: near. `flaked seq list` shows them")

	var doc struct {
		view.Report
		Sequences *view.Sequences
	}
	r := call(t, "", "status", "-o", "json")
	if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil || doc.Sequences == nil ||
		doc.Sequences.Count != 2 || doc.Summary.Slots != 1024 {
		t.Errorf("%v: %s", err, r.stdout)
	}
	put(t, store, "/seq", []byte("{"), false)
	ends("\nnamed sequences: /seq is not a record of flaked: \"{\". See `flaked seq list`")
}
