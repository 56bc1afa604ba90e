package doccheck

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every flag that a document names between backquotes must be in docs/cli.md. The tests of
// cmd/flaked check that docs/cli.md matches the commands.
func TestEveryNamedFlagExists(t *testing.T) {
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
			// A name that ends with a dash stands for several flags: `--zk-tls-...`.
			stem := strings.HasSuffix(m[1], "-")
			if n++; !flags[m[1]] && !(stem && strings.Contains(string(reference), " "+m[1])) {
				t.Errorf("%s: no command has the flag %s", doc, m[1])
			}
		}
	}
	if n < 100 {
		t.Errorf("%d flags found", n)
	}
}
