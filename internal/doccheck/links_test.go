package doccheck

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
	notSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// slug returns the anchor that GitHub gives to a heading.
func slug(heading string) string {
	return strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

func TestLinks(t *testing.T) {
	const root = "../.."
	docs, err := Files(root)
	if err != nil {
		t.Fatal(err)
	}
	anchors := func(name string) (out []string) {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
			out = append(out, slug(m[1]))
		}
		return out
	}
	n := 0
	for _, doc := range docs {
		text, err := os.ReadFile(filepath.Join(root, doc))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
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
			} else if anchor != "" && !slices.Contains(anchors(target), anchor) {
				t.Errorf("%s: (%s): %s has no such heading", doc, m[1], target)
			}
		}
	}
	if n < 100 {
		t.Errorf("%d links found", n)
	}
}
