package main

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the files of testdata anew")

// testdata is absolute, because transcripts change the directory.
var testdata, _ = filepath.Abs("testdata")

// golden fails the test unless a file of testdata has this text.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join(testdata, name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || got != string(want) {
		t.Errorf("%v\n%s\nbut %s has\n%s", err, got, file, want)
	}
}

// goldenJSON is golden for the JSON of a document. Scripts rely on all of it.
func goldenJSON(t *testing.T, name string, doc any) {
	t.Helper()
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, name, string(text)+"\n")
}
