package view

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
)

var write = flag.Bool("write", false, "write the causes into docs/troubleshooting.md")

// docs/troubleshooting.md explains each cause in the words of the table. The first cell of a row names the
// cause, behind reason= or in backquotes. `go generate ./internal/ops/view` writes the other cells.
func TestDocumentHasEveryCause(t *testing.T) {
	const file = "../../../docs/troubleshooting.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("(?m)^(\\| (?:`|[^|]*?(?:[a-z] reason=|\\(`))([a-z-]+)`[^|]*\\|).*$")
	cells := func(p Problem) string { return "| " + p.With("").Text + " | " + p.Advice + " |" }
	want := named.ReplaceAllStringFunc(string(text), func(line string) string {
		if found := named.FindStringSubmatch(line); row(found[2]) >= 0 {
			return strings.TrimSuffix(found[1], "|") + cells(Cause(found[2]))
		}
		return line
	})
	for _, p := range Causes {
		if !strings.Contains(want, cells(p)) {
			t.Errorf("%s has no row for %s: %s", file, p.Cause, p)
		}
	}
	if *write {
		err = os.WriteFile(file, []byte(want), 0o644)
	}
	if err != nil || want != string(text) && !*write {
		t.Errorf("%s differs from the table of causes: go generate ./internal/ops/view (%v)", file, err)
	}
}
