package doccheck

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	maxGuideWords = 800
	maxIndexWords = 500
)

// A guide is one task on one page. A link and a row of a table count as the words that they show.
func TestGuidesAreShortAndLinked(t *testing.T) {
	guides, err := filepath.Glob("../../docs/guides/*.md")
	if err != nil || len(guides) < 20 {
		t.Fatalf("found %d guides: %v", len(guides), err)
	}
	linked := map[string]bool{}
	for _, index := range []string{"docs/operations.md", "docs/README.md"} {
		for _, m := range link.FindAllStringSubmatch(read(t, index), -1) {
			file, _, _ := strings.Cut(m[1], "#")
			linked[path.Join("docs", file)] = true
		}
	}
	for _, guide := range guides {
		name := "docs/guides/" + filepath.Base(guide)
		text := read(t, name)
		if n := words(text); n > maxGuideWords {
			t.Errorf("%s has %d words, want %d at most", name, n, maxGuideWords)
		}
		if !linked[name] {
			t.Errorf("neither docs/operations.md nor docs/README.md links %s", name)
		}
		if !strings.HasPrefix(text, "# ") {
			t.Errorf("%s does not begin with a title", name)
		}
	}
	if n := words(read(t, "docs/operations.md")); n > maxIndexWords {
		t.Errorf("docs/operations.md has %d words, want %d at most", n, maxIndexWords)
	}
}

// docs/README.md lists every document of docs, so that a reader finds it by its kind.
func TestIndexListsEveryDocument(t *testing.T) {
	files, err := Files("../..")
	if err != nil {
		t.Fatal(err)
	}
	index := read(t, "docs/README.md")
	for _, file := range files {
		name, is := strings.CutPrefix(file, "docs/")
		if is && name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not list %s", file)
		}
	}
}

// words counts the words of a document outside of its code blocks. It does not count the bars and
// dashes of tables.
func words(text string) (n int) {
	for _, b := range blocks(text) {
		if b.code {
			continue
		}
		for _, word := range strings.Fields(strings.Join(b.lines, "\n")) {
			if strings.Trim(word, "|-") != "" {
				n++
			}
		}
	}
	return n
}

func TestWords(t *testing.T) {
	const text = "# A title\n\n| a | b |\n|---|---|\n| one two | [three](four.md) |\n\n    code here\n\n1. Do\n\n       more code\n\n   this.\n\n```sh\nmake\n```\n"
	if got := words(text); got != 11 {
		t.Errorf("%d words, want 11", got)
	}
}

// A reader searches the log for the messages that docs/guides/logs.md shows.
func TestShownLogMessagesExist(t *testing.T) {
	var code strings.Builder
	for _, dir := range packages(t) {
		files, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				code.WriteString(read(t, strings.TrimPrefix(filepath.ToSlash(file), "../../")))
			}
		}
	}
	rows := regexp.MustCompile("(?m)^\\| (info|warn|error) \\| `([^`]+)` \\|").FindAllStringSubmatch(read(t, "docs/guides/logs.md"), -1)
	if len(rows) < 10 {
		t.Errorf("%d messages", len(rows))
	}
	for _, m := range rows {
		call := strings.ToUpper(m[1][:1]) + m[1][1:] + `("` + m[2] + `"`
		if !strings.Contains(code.String(), call) {
			t.Errorf("no code logs %q at level %s", m[2], m[1])
		}
	}
}
