package clidoc

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestMan(t *testing.T) {
	t.Parallel()
	common := []Section{{"Exit status", "  0  fine\n  1  'not' \\fine"}}
	for _, tc := range []struct {
		command string
		want    []string
	}{
		{"", []string{".TH \"PROG\" 1", "prog \\- does things", ".B prog cluster init\nmake it", "0  fine", "\\(aqnot\\(aq \\efine", ".BR prog\\-serve (1)"}},
		{"serve", []string{
			".TH \"PROG\\-SERVE\" 1", "Runs.\n.PP\nExamples:\n.PP\n.nf\n.RS 4\nprog serve \\-\\-dev\n", ".RE\n.fi\n.PP\nThat\\(aqs all.",
			"\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fIFORMAT\\fR\nit\\(aqs [table] or json (default: table)", ".SH \"SECURITY OPTIONS\"", ".BR prog (1)",
		}},
		{"cluster", []string{"prog cluster init\n.br\nprog cluster show", ".SH \"PROG CLUSTER INIT\"\nMake it.", ".SS \"Options\"\n.TP\n\\fB\\-\\-lease\\fR"}},
	} {
		page, ok := Man(prog(), tc.command, common)
		if !ok {
			t.Fatalf("no page of %q", tc.command)
		}
		for _, want := range tc.want {
			if !strings.Contains(page, want) {
				t.Errorf("the page of %q lacks %q:\n%s", tc.command, want, page)
			}
		}
		checkRoff(t, page)
	}
	if _, ok := Man(prog(), "init", common); ok {
		t.Error("a page of a command that has none of its own")
	}
}

// checkRoff fails the test if groff warns about page.
func checkRoff(t *testing.T, page string) {
	t.Helper()
	groff, err := exec.LookPath("groff")
	require(t, "groff", err)
	cmd := exec.Command(groff, "-man", "-ww", "-z", "-Tutf8")
	var said bytes.Buffer
	cmd.Stdin, cmd.Stderr, cmd.Env = strings.NewReader(page), &said, append(os.Environ(), "LC_ALL=C")
	if err := cmd.Run(); err != nil || said.Len() > 0 {
		t.Errorf("groff: %v: %s", err, said.String())
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	p := prog()
	p.Commands[0].Help = "prog serve - run it\n"
	got := Markdown(p, "Intro.")
	for _, want := range []string{
		"# Commands of prog\n\nIntro.\n",
		"\n- [prog cluster](#prog-cluster): look after it\n  - [prog cluster init](#prog-cluster-init): make it\n",
		"\n## prog serve\n\n```text\nprog serve - run it\n```\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}
