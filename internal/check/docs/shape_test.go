package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The limits of CONTRIBUTING.md.
const (
	maxFunction = 60
	maxFile     = 600
)

var (
	generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	// A comment that begins with one lower-case word and a verb of the third person documents the function of that
	// name.
	summary = regexp.MustCompile(`^([a-z][A-Za-z0-9]*) (returns|reports|blocks|writes|reads|sets|adds|removes|makes|takes|gives|puts|deletes|creates|checks|says|waits)\b`)
)

// A function must fit on a screen, a file must hold one idea, and a function's comment must begin with its name.
// Tests may be longer.
func TestShape(t *testing.T) {
	const root = "../../.."
	files := 0
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || name == "bin" || name == "dist") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		files++
		return checkShape(t, path)
	})
	if err != nil || files < 200 {
		t.Errorf("%d files read: %v", files, err)
	}
}

// checkShape checks one file of product code.
func checkShape(t *testing.T, path string) error {
	text, err := os.ReadFile(path)
	if err != nil || generated.Match(text) {
		return err
	}
	if n := strings.Count(string(text), "\n"); n > maxFile {
		t.Errorf("%s: %d lines: at most %d", path, n, maxFile)
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.ParseComments)
	if err != nil {
		return err
	}
	checkAtomics(t, set, file)
	checkRuleNames(t, set, file)
	for _, d := range file.Decls {
		f, is := d.(*ast.FuncDecl)
		if !is {
			continue
		}
		if lines := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1; lines > maxFunction {
			t.Errorf("%s: %s has %d lines: at most %d", set.Position(f.Pos()), f.Name.Name, lines, maxFunction)
		}
		if m := summary.FindStringSubmatch(f.Doc.Text()); m != nil && m[1] != f.Name.Name {
			t.Errorf("%s: the comment of %s begins with %s", set.Position(f.Pos()), f.Name.Name, m[1])
		}
	}
	return nil
}
