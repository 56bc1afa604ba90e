// Package upgrade compares this version with what releases have promised to keep: docs/operate.md. The directory
// testdata/names has lists of names, and testdata/0.1.0 what that release has written: a state directory, records in
// ZooKeeper and a configuration. The tests that compare have Frozen in their names, and stand beside the code.
//
// Until 0.1.0 is tagged, the files are written anew with
//
//	FLAKED_TEST_ZK=require go test -p 1 ./internal/ops/web ./cmd/flaked ./internal/core/replies ./lineproto \
//		./internal/core/seq/record ./internal/ops/health ./internal/check/api ./internal/check/e2e -run Frozen -args -freeze
//
// A minute later, the same command without -args -freeze must pass.
package upgrade

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Anew reports whether the tests write the kept files instead of comparing with them.
var Anew = flag.Bool("freeze", false, "write anew what internal/check/upgrade keeps")

const kept = "internal/check/upgrade/testdata"

// Path returns the path of a kept file.
func Path(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return filepath.Join(dir, kept, name)
		}
	}
	t.Fatalf("no go.mod above the working directory: %v", err)
	return ""
}

// Names fails the test unless this version has exactly the names of a list. A name is a line, with what else must not
// change.
func Names(t testing.TB, list string, names []string) {
	t.Helper()
	slices.Sort(names)
	names = slices.Compact(names)
	file := Path(t, "names/"+list+".txt")
	if *Anew {
		if err := os.WriteFile(file, []byte(strings.Join(names, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, complaint := range compare(list, strings.Split(strings.TrimSpace(string(text)), "\n"), names) {
		t.Error(complaint)
	}
}

// compare returns a sentence for each difference.
func compare(list string, before, now []string) (complaints []string) {
	for _, name := range before {
		if !slices.Contains(now, name) {
			complaints = append(complaints, fmt.Sprintf("%s: this version lacks %q, which a release has. Keep it: "+
				"docs/operate.md says what may change", list, name))
		}
	}
	for _, name := range now {
		if !slices.Contains(before, name) {
			complaints = append(complaints, fmt.Sprintf("%s: %q is new. Add it to %s/names/%s.txt, because "+
				"docs/operate.md promises that later versions keep it", list, name, kept, list))
		}
	}
	return complaints
}
