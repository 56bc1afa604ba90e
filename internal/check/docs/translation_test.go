package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// README.zh-CN.md says what README.md says, line by line.
func TestTranslation(t *testing.T) {
	var texts []string
	for _, name := range []string{"README.md", "README.zh-CN.md"} {
		text, err := os.ReadFile(filepath.Join("../../..", name))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	for _, difference := range differences(texts[0], texts[1]) {
		t.Errorf("README.md and README.zh-CN.md: %s", difference)
	}
}

// outline has the features of a line that a translation must keep.
type outline struct {
	Mark  string   // of a heading, an item of a list, or a table, and how many cells the row of the table has
	Code  string   // the line, if it is code, without its comment
	Spans []string // code within the sentence, sorted
	Links []string // sorted. Both languages of the README are README.md
}

var (
	mark      = regexp.MustCompile(`^ *(#+|-|\d+\.|\|) `)
	languages = regexp.MustCompile(`^README(\.zh-CN)?\.md`)
)

// outlines returns the outline of each line.
func outlines(text string) (out []outline) {
	for _, b := range blocks(text) {
		for len(out) < b.start-1 { // the fence around code
			out = append(out, outline{})
		}
		for _, line := range b.lines {
			if b.code {
				out = append(out, outline{Code: strings.TrimSpace(comment.ReplaceAllString(line, ""))})
				continue
			}
			o := outline{Mark: mark.FindString(line)}
			if o.Mark == "| " {
				o.Mark += fmt.Sprint(strings.Count(line, "|"))
			}
			for _, m := range inline.FindAllStringSubmatch(line, -1) {
				o.Spans = append(o.Spans, m[1])
			}
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				o.Links = append(o.Links, languages.ReplaceAllString(m[1], "README.md"))
			}
			slices.Sort(o.Spans)
			slices.Sort(o.Links)
			out = append(out, o)
		}
	}
	return out
}

// differences returns the first line of a translation that differs from the original in its heading, code or links.
func differences(original, translation string) []string {
	a, b := outlines(original), outlines(translation)
	for i := range min(len(a), len(b)) {
		if got, want := fmt.Sprintf("%+q", b[i]), fmt.Sprintf("%+q", a[i]); got != want {
			return []string{fmt.Sprintf("line %d: %s, and its translation %s", i+1, want, got)}
		}
	}
	if len(a) != len(b) {
		return []string{fmt.Sprintf("%d lines, and the translation has %d", len(a), len(b))}
	}
	return nil
}

func TestDifferences(t *testing.T) {
	const original = "# Name\n\nRun `make`, see [x](docs/x.md#y).\n\n    make run    # starts\n    echo 1\n\n- one\n\n| a | b |\n"
	for name, c := range map[string]struct {
		from, to string
		want     string // "" if they agree
	}{
		"other words":           {"Run", "Lauf", ""},
		"another order":         {"Run `make`, see [x](docs/x.md#y).", "[x](docs/x.md#y), `make`", ""},
		"another comment":       {"# starts", "# 启动", ""},
		"another heading":       {"# Name", "## Name", "line 1: "},
		"a heading is missing":  {"# Name", "Name", "line 1: "},
		"another command":       {"make run", "make all", "line 5: "},
		"a command is missing":  {"    echo 1\n", "", "line 6: "},
		"another word of code":  {"`make`", "`nmake`", "line 3: "},
		"another link":          {"docs/x.md#y", "docs/z.md#y", "line 3: "},
		"another anchor":        {"docs/x.md#y", "docs/x.md#z", "line 3: "},
		"an item is missing":    {"- one", "one", "line 8: "},
		"a cell is missing":     {"| a | b |", "| a |", "line 10: "},
		"a line is missing":     {"| a | b |\n", "", "line 10: "},
		"a line is behind":      {"| a | b |\n", "| a | b |\nmore\n", "11 lines, "},
		"the other language":    {"docs/x.md#y", "README.zh-CN.md", "line 3: "},
		"code that was a fence": {"    make run    # starts\n    echo 1", "```sh\nmake run\n```", "line 5: "},
	} {
		translation := strings.Replace(original, c.from, c.to, 1)
		if translation == original {
			t.Fatalf("%s: nothing was replaced", name)
		}
		got := strings.Join(differences(original, translation), "; ")
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := differences("[z](README.zh-CN.md)", "[e](README.md)"); got != nil {
		t.Errorf("links to each other: %q", got)
	}
}
