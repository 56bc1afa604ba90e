package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/check/docs"
)

// TestDocuments runs the commands of the documents, in their order. It replaces the addresses and
// paths in a command by those of a node and a ZooKeeper of its own. It fails for a command that is
// neither run nor listed in notRun.
func TestDocuments(t *testing.T) {
	t.Parallel()
	pages, err := docs.Files(docsRoot)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, doc := range pages {
		// These have help texts, old commands, and the commands of the README again.
		if doc == "CHANGELOG.md" || doc == "README.zh-CN.md" {
			continue
		}
		run := toRun(t, doc, used)
		if len(run) == 0 {
			continue
		}
		t.Run(doc, func(t *testing.T) {
			t.Parallel()
			w := newDocWorld(t, doc)
			for _, c := range run {
				w.run(c)
			}
		})
	}
	for key := range notRun {
		if !used[key] && !strings.HasSuffix(key, " *") {
			t.Errorf("notRun has %q, which is in no document", key)
		}
	}
	for key := range howRun {
		if !used[key] {
			t.Errorf("howRun has %q, which is run in no document", key)
		}
	}
}

const docsRoot = "../../.."

// toRun returns the commands of a document that are run, and adds all of them to used. It checks commands that
// are scripts or targets of the Makefile. Commands within sentences come first, because blocks change the state.
func toRun(t *testing.T, doc string, used map[string]bool) (inline []docs.Command) {
	commands, err := docs.Read(docsRoot, doc)
	if err != nil {
		t.Error(err)
	}
	var blocks []docs.Command
	for _, c := range commands {
		switch key := unlisted(c); {
		case c.Program() == "make":
			checkMake(t, c)
		case strings.HasPrefix(c.Text, "scripts/") || strings.HasPrefix(c.Text, "examples/"):
			if _, err := os.Stat(filepath.Join(docsRoot, strings.Fields(c.Text)[0])); err != nil {
				t.Errorf("%s: %v", c, err)
			}
		case key != "":
			used[key] = true
		case c.Inline && used[c.Text]: // run once only
		case c.Inline:
			inline, used[c.Text] = append(inline, c), true
		default:
			blocks, used[c.Text] = append(blocks, c), true
		}
	}
	return append(inline, blocks...)
}

// unlisted returns the key of notRun that matches the command, or "".
func unlisted(c docs.Command) string {
	for _, key := range []string{c.Text, c.Program() + " *"} {
		if notRun[key] != "" {
			return key
		}
	}
	return ""
}

// checkMake fails the test unless the Makefile has the targets and the variables of the command.
func checkMake(t *testing.T, c docs.Command) {
	makefile, err := os.ReadFile(filepath.Join(docsRoot, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range c.Calls("make") {
		for _, word := range call {
			name, _, variable := strings.Cut(word, "=")
			pattern := `(?m)^` + regexp.QuoteMeta(name) + `:`
			if variable {
				pattern = `\$[({]` + regexp.QuoteMeta(name) + `[)}]|(?m)^` + regexp.QuoteMeta(name) + ` \?=`
			}
			if !regexp.MustCompile(pattern).Match(makefile) {
				t.Errorf("%s: the Makefile has no %s", c, name)
			}
		}
	}
}
