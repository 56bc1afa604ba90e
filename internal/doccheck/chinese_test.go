package doccheck

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// README.md and README.zh-CN.md must have the same commands, code blocks, flags and links, and
// as many sections, table rows and list items. Every figure of the Chinese one must be in the
// English one. The comparison needs no translation.
func TestReadmesHaveTheSameFacts(t *testing.T) {
	const root = "../.."
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	english, chinese := read("README.md"), read("README.zh-CN.md")
	if !strings.Contains(english, "](README.zh-CN.md)") || !strings.Contains(chinese, "](README.md)") {
		t.Error("they do not link to each other")
	}
	for what, in := range map[string]func(string) []string{
		"commands": func(text string) (out []string) {
			commands, err := Parse("", text)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range commands {
				out = append(out, c.Text+c.Output)
			}
			return out
		},
		"blocks": func(text string) (out []string) {
			for _, b := range Blocks(text) {
				out = append(out, regexp.MustCompile(`(?m)\s+# .*$`).ReplaceAllString(b, ""))
			}
			return out
		},
		"flags": func(text string) []string { return regexp.MustCompile(`--[a-z][a-z0-9-]+`).FindAllString(text, -1) },
		"links": func(text string) (out []string) {
			for _, m := range link.FindAllStringSubmatch(text, -1) {
				if !strings.HasPrefix(m[1], "README") {
					out = append(out, m[1])
				}
			}
			return out
		},
	} {
		for _, missing := range without(in(english), in(chinese)) {
			t.Errorf("%s: README.zh-CN.md lacks %q, which README.md has", what, missing)
		}
		for _, missing := range without(in(chinese), in(english)) {
			t.Errorf("%s: README.md lacks %q, which README.zh-CN.md has", what, missing)
		}
	}
	for what, pattern := range map[string]string{"sections": `(?m)^#+ `, "rows": `(?m)^\|`, "items of lists": `(?m)^(-|\d\.) `} {
		re := regexp.MustCompile(pattern)
		if e, c := len(re.FindAllString(english, -1)), len(re.FindAllString(chinese, -1)); e != c {
			t.Errorf("%s: %d in README.md, %d in README.zh-CN.md", what, e, c)
		}
	}
	figures := regexp.MustCompile(`\d[\d,.:-]*\d|\d`)
	for _, figure := range without(figures.FindAllString(chinese, -1), figures.FindAllString(english, -1)) {
		t.Errorf("README.md lacks the figure %s, which README.zh-CN.md has", figure)
	}
}

// without returns the strings of a that b lacks, each once.
func without(a, b []string) (out []string) {
	for _, s := range a {
		if !slices.Contains(b, s) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
