package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	named   = regexp.MustCompile(`<a id="([^"]+)">`)
	notSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the anchors that GitHub gives to the headings of a document, and those that it names itself.
func anchors(text string) (out []string) {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		out = append(out, strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// Each link, picture and anchor of a document must exist, and README.md must list each document of docs.
func TestLinks(t *testing.T) {
	const root = "../../.."
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	docs, err := Files(root)
	if err != nil {
		t.Fatal(err)
	}
	ofClients, err := filepath.Glob(root + "/clients/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range ofClients {
		docs = append(docs, strings.TrimPrefix(path, root+"/"))
	}
	index, n := read("README.md"), 0
	for _, doc := range docs {
		if strings.HasPrefix(doc, "docs/") && !strings.Contains(index, "]("+doc) {
			t.Errorf("README.md does not list %s", doc)
		}
		for _, m := range link.FindAllStringSubmatch(read(doc), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			n++
			file, anchor, _ := strings.Cut(m[1], "#")
			target := doc
			if file != "" {
				target = path.Join(path.Dir(doc), file)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: (%s): there is no %s", doc, m[1], target)
			} else if anchor != "" && !slices.Contains(anchors(read(target)), anchor) {
				t.Errorf("%s: (%s): %s has no such heading", doc, m[1], target)
			}
		}
	}
	if n < 50 {
		t.Errorf("%d links found", n)
	}
}
