package doccheck

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A flag that a sentence names by itself (`--listen`) is one that some command
// has. docs/cli.md is made of the command line, which cmd/flaked's tests see to.
func TestFlagsInSentences(t *testing.T) {
	const root = "../.."
	reference, err := os.ReadFile(filepath.Join(root, "docs/cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]bool{}
	for _, flag := range regexp.MustCompile(`--[a-z][a-z0-9-]*`).FindAllString(string(reference), -1) {
		flags[flag] = true
	}
	docs, err := Files(root)
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(--[a-z][a-z0-9-]*)")
	n := 0
	for _, doc := range docs {
		if strings.HasPrefix(doc, "CHANGELOG") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, doc))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			stem := strings.HasSuffix(m[1], "-") // of several: `--zk-tls-...`
			if n++; !flags[m[1]] && !(stem && strings.Contains(string(reference), " "+m[1])) {
				t.Errorf("%s: no command has the flag %s", doc, m[1])
			}
		}
	}
	if n < 100 {
		t.Errorf("%d flags found", n)
	}
}
