package main

import (
	"flag"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/clidoc"
	"github.com/flaked/flaked/lineproto"
)

var update = flag.Bool("update", false, "write the generated files")

const referenceIntro = `What ` + "`flaked COMMAND --help`" + ` prints, for all commands. Generated: ` + "`make generate`" + ` writes it.

` + configurationText + ` The exit codes are in
[exit-codes.md](exit-codes.md).`

// generated returns the repository's files that are made from the command line, by their paths.
func generated(app *cli.App) map[string]string {
	files := map[string]string{
		"docs/cli.md":                    clidoc.Markdown(describe(app), referenceIntro),
		"deploy/completions/flaked.bash": completionScript(app, "bash"),
		"deploy/completions/_flaked":     completionScript(app, "zsh"),
		"deploy/completions/flaked.fish": completionScript(app, "fish"),
	}
	for name, page := range manPages(app) {
		files["deploy/man/"+name] = page
	}
	return files
}

const root = "../.."

// The generated files in the repository are current. With -update the test writes them.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	files := generated(newApp(nil, nil, nil))
	if *update {
		for _, dir := range []string{"deploy/completions", "deploy/man"} {
			if err := os.RemoveAll(filepath.Join(root, dir)); err != nil { // pages of removed commands
				t.Fatal(err)
			}
		}
		if err := writeFiles(root, files); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != want {
			t.Errorf("%s is not what the command line is now: run `make generate` and commit what it writes (%v)", name, err)
		}
	}
	pages, err := filepath.Glob(filepath.Join(root, "deploy/man/*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if _, ok := files["deploy/man/"+filepath.Base(page)]; !ok {
			t.Errorf("%s is the page of no command: run `make generate`", page)
		}
	}
}

// docs/cli.md has every command and the text of every flag. TestGeneratedFilesAreCurrent checks
// that the file is current.
func TestEveryCommandAndFlagIsDocumented(t *testing.T) {
	reference := readFile(t, "docs/cli.md")
	var visit func(path string, cmd *cli.Command)
	visit = func(path string, cmd *cli.Command) {
		path += " " + cmd.Name
		_, section, ok := strings.Cut(reference, "\n## "+path+"\n")
		if !ok {
			t.Errorf("docs/cli.md has no section %q: run `make generate`", path)
			return
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for _, f := range cmd.Flags {
			for _, name := range f.Names() {
				if !regexp.MustCompile(`(?m)^   .*` + regexp.QuoteMeta(clidoc.Dashed(name)) + `\b`).MatchString(section) {
					t.Errorf("docs/cli.md says nothing of %s %s: run `make generate`", path, clidoc.Dashed(name))
				}
			}
			if d, ok := describeFlag(f); !ok || d.Text == "" {
				t.Errorf("%s --%s has no text", path, f.Names()[0])
			}
		}
		if len(cmd.Subcommands) == 0 && !regexp.MustCompile(`(?m)^ +(.* \| )?`+path).MatchString(cmd.Description) {
			t.Errorf("`%s --help` has no example: put a line `  %[1]s ...` into the description", path)
		}
		if cmd.Usage == "" || strings.HasSuffix(cmd.Usage, ".") {
			t.Errorf("%s: its usage is a line without a full stop, and not %q", path, cmd.Usage)
		}
		for _, sub := range cmd.Subcommands {
			visit(path, sub)
		}
	}
	for _, cmd := range newApp(nil, nil, nil).Commands {
		visit("flaked", cmd)
	}
}

// TestTroubleshootingHasEveryErrorOfClients checks that docs/troubleshooting.md has them, too.
func TestEveryErrorCodeIsDocumented(t *testing.T) {
	protocol := readFile(t, "docs/protocol.md")
	codes := errorCodes()
	for _, c := range codes {
		if !strings.Contains(protocol, "\n| `-"+c.String()+"` |") {
			t.Errorf("docs/protocol.md has no line for -%s in its table of errors", c)
		}
	}
	if len(codes) < 7 {
		t.Errorf("only %d codes found", len(codes))
	}
}

// errorCodes returns all error codes of the line protocol.
func errorCodes() (codes []lineproto.Code) {
	seen := map[string]bool{}
	for c := lineproto.Code(0); !seen[c.String()]; c++ { // unknown codes are named as the first
		seen[c.String()] = true
		codes = append(codes, c)
	}
	return codes
}

func TestEveryExitCodeIsDocumented(t *testing.T) {
	document := readFile(t, "docs/troubleshooting.md")
	help := exitCodesText()
	codes := exitConstants(t)
	if len(codes) < 5 {
		t.Fatalf("exit.go has %v: is it where the exit codes are?", codes)
	}
	for name, code := range codes {
		if !strings.Contains(document, "\n| "+code+" | ") {
			t.Errorf("docs/troubleshooting.md does not say what exit code %s (%s) is", code, name)
		}
		if !strings.Contains(help, "  "+code+"  ") {
			t.Errorf("exitTexts lack exit code %s (%s)", code, name)
		}
	}
}

// exitConstants returns the values of the constants of exit.go called exit..., by their names.
func exitConstants(t *testing.T) map[string]string {
	t.Helper()
	codes := map[string]string{}
	ast.Inspect(parseGo(t, "exit.go"), func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "exit") {
			if value, ok := spec.Values[0].(*ast.BasicLit); ok {
				codes[spec.Names[0].Name] = value.Value
			}
		}
		return true
	})
	return codes
}

// A shell offers only the words of choices that a flag's text names. A word that no flag offers
// belonged to a flag that was removed.
func TestEveryChoiceBelongsToAFlag(t *testing.T) {
	offered := map[string]bool{}
	var visit func(c clidoc.Command)
	visit = func(c clidoc.Command) {
		for _, f := range c.Flags {
			for _, choice := range f.Choices {
				offered[f.Names[0]+"="+choice] = true
			}
		}
		for _, sub := range c.Commands {
			visit(sub)
		}
	}
	visit(describe(newApp(nil, nil, nil)))
	for name, words := range choices {
		for _, w := range words {
			if !offered[name+"="+w] {
				t.Errorf("no flag --%s says that it takes %s", name, strconv.Quote(w))
			}
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
