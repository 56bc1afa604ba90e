package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/lineproto"
	"github.com/flaked/flaked/localcache"
	"github.com/flaked/flaked/node"
	"github.com/flaked/flaked/zkstore"
)

// A client that gets an error finds its code, its text and its reason in docs/troubleshooting.md.
// TestTroubleshootingHasEveryRefusal of internal/nodewire checks the refusals of a node.
func TestTroubleshootingHasEveryErrorOfClients(t *testing.T) {
	page := readFile(t, "docs/troubleshooting.md")
	codes := errorCodes()
	for _, c := range codes {
		if !strings.Contains(page, "\n| `-"+c.String()+" ") && c != lineproto.NOTREADY {
			t.Errorf("docs/troubleshooting.md has no row for -%s", c)
		}
		for _, text := range errorTexts(t, c) {
			if !strings.Contains(page, text) {
				t.Errorf("docs/troubleshooting.md lacks the reply -%s %s", c, text)
			}
		}
	}
	if len(codes) < 11 {
		t.Errorf("only %d codes found", len(codes))
	}

	section := sectionOf(page, "### Named sequences")
	reasons := constantsOf(t, "seqstore/decide.go", "Reason")
	if len(reasons) < 10 {
		t.Errorf("only the reasons %q found", reasons)
	}
	for _, reason := range reasons {
		if !regexp.MustCompile("\n\\| `-[A-Z]+ reason=" + regexp.QuoteMeta(reason) + "` \\|").MatchString(section) {
			t.Errorf("docs/troubleshooting.md says nothing of reason=%s", reason)
		}
	}
}

func TestTroubleshootingHasEveryExitCode(t *testing.T) {
	section := sectionOf(readFile(t, "docs/troubleshooting.md"), "## Exit codes and signals")
	for name, code := range exitConstants(t) {
		if !strings.Contains(section, "\n| "+code+" | ") {
			t.Errorf("docs/troubleshooting.md does not say what to do about exit code %s (%s)", code, name)
		}
	}
}

// The errors that end a start have their texts in docs/troubleshooting.md.
func TestTroubleshootingHasStartErrors(t *testing.T) {
	section := sectionOf(readFile(t, "docs/troubleshooting.md"), "## A node does not start")
	for _, err := range []error{
		localcache.ErrLocked, localcache.ErrUnsafeDir, localcache.ErrUnsafeFile, localcache.ErrFilesystem, localcache.ErrOtherFormat,
		coordinator.ErrNoCluster, zkstore.ErrUnreachable, zkstore.ErrDenied,
		&node.OtherClusterError{Ours: "A", Found: "B"}, &node.OtherZooKeeperError{State: "A", Given: "B"},
		&node.DiffersError{Setting: node.SettingLayout, Asked: "A", Has: "B"},
	} {
		if !strings.Contains(section, "`"+err.Error()+"`") {
			t.Errorf("docs/troubleshooting.md lacks the start error %q", err)
		}
	}
	instant := regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+Z`)
	for _, err := range []error{&coordinator.FrozenError{}, &coordinator.FrozenError{By: "B"}, &coordinator.FullError{}} {
		text, _, _ := strings.Cut(instant.ReplaceAllString(err.Error(), "A"), ":")
		text, _, _ = strings.Cut(strings.Replace(text, "all 0 ", "all N ", 1), " (")
		if !strings.Contains(section, "`"+text+"`") {
			t.Errorf("docs/troubleshooting.md lacks the start error %q", text)
		}
	}
}

// sectionOf returns the text from a heading to the next heading of the same depth or above.
func sectionOf(page, heading string) string {
	_, section, _ := strings.Cut(page, "\n"+heading+"\n")
	depth := strings.Index(heading, " ")
	if end := regexp.MustCompile(`\n#{1,` + strconv.Itoa(depth) + `} `).FindStringIndex(section); end != nil {
		section = section[:end[0]]
	}
	return "\n" + section
}

// errorTexts returns the beginnings of the texts that lineproto sends with a code, up to the first
// figure or name in each. The texts of ERR say what is wrong with a request, and are left out.
func errorTexts(t *testing.T, code lineproto.Code) (texts []string) {
	t.Helper()
	if code == lineproto.ERR {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(root, "lineproto/*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("lineproto has no Go files: %v", err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		ast.Inspect(parseGo(t, path), func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || len(lit.Elts) != 2 {
				return true
			}
			if name, ok := lit.Elts[0].(*ast.Ident); !ok || name.Name != code.String() {
				return true
			}
			if text := firstString(lit.Elts[1]); text != "" && !strings.HasPrefix(text, "internal error") {
				text, _, _ = strings.Cut(text, "%")
				texts = append(texts, text)
			}
			return true
		})
	}
	return texts
}

// firstString returns the first string literal in an expression, "" if there is none.
func firstString(e ast.Expr) (text string) {
	ast.Inspect(e, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && text == "" {
			text, _ = strconv.Unquote(lit.Value)
		}
		return text == ""
	})
	return text
}

// constantsOf returns the values of the string constants of a type in a file.
func constantsOf(t *testing.T, file, typeName string) (values []string) {
	t.Helper()
	ast.Inspect(parseGo(t, filepath.Join(root, file)), func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == typeName {
			values = append(values, firstString(spec.Values[0]))
		}
		return true
	})
	slices.Sort(values)
	return values
}

func parseGo(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
