package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckFindsEachConstruction(t *testing.T) {
	for name, row := range map[string]struct{ file, source, want string }{
		"noun clause":            {"a.go", "// A. What stops is lost.\nvar a int", "no sentence begins"},
		"noun clause at the top": {"a.go", "// Who has it may go.\nvar a int", "no sentence begins"},
		"question":               {"a.go", "// What is it?\nvar a int", ""},
		"is to be":               {"a.go", "// a is to be set.\nvar a int", "write must be"},
		"part of a word":         {"a.go", "// thisis to bear it.\nvar a int", ""},
		"tells whether":          {"a.go", "// a tells whether it is so.\nvar a int", "reports whether"},
		"function":               {"a.go", "// f is how far it is.\nfunc f() int { return 0 }", "what it returns"},
		"field":                  {"a.go", "// f is how far it is.\nvar f int", ""},
		"text":                   {"a.go", "var a = \"it is to be set\"", "write must be"},
		"text of a test":         {"a_test.go", "var a = \"it is to be set\"", ""},
		"comment of a test":      {"a_test.go", "// a is to be set.\nvar a int", "write must be"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), row.file)
			if err := os.WriteFile(path, []byte("package a\n\n"+row.source+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			findings, err := check(path)
			if err != nil {
				t.Fatal(err)
			}
			if all := strings.Join(findings, "\n"); (all != "") != (row.want != "") || !strings.Contains(all, row.want) {
				t.Errorf("found %q, want %q", all, row.want)
			}
		})
	}
}
