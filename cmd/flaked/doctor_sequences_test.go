package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/flaked/flaked/internal/core/seq"
	"github.com/flaked/flaked/internal/ops/doctor"
	"github.com/flaked/flaked/sequence"
)

func TestDoctorChecksSequences(t *testing.T) {
	store, cl := newCluster(t)
	t.Setenv("FLAKED_STATE_DIR", filepath.Join(t.TempDir(), "state"))
	put(t, store, "/seq", seq.State{Cluster: cl.UUID, Time: 1e9}, true)
	for _, args := range [][]string{{"order"}, {"day:*", "--max-names", "5"}} {
		if r := call(t, "", append([]string{"seq", "create"}, args...)...); r.code != exitOK {
			t.Fatalf("%q: %+v", args, r)
		}
	}
	check := func(level doctor.Level, text string) {
		t.Helper()
		report, _ := consult(t)
		finding(t, report, "sequences", level, text)
	}
	check(doctor.OK, "1 named sequence, 1 template. None is frozen")
	cl.Incarnation++
	put(t, store, "/cluster", cl, false)
	check(doctor.Warn, "Frozen sequences, which issue no values: day:*. flaked seq show 'day:*' says why")

	path := fmt.Sprintf("/seq/s/%03x/order", sequence.Bucket("order"))
	put(t, store, path, []byte("{"), false)
	check(doctor.Fail, path+": not a sequence record of flaked: \"{\". Restore or remove this record")
	put(t, store, "/seq", []byte("{"), false)
	check(doctor.Fail, "/seq is not a record of flaked")
}
