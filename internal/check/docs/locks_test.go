package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each mutex of a struct of product code has its place in the lock order of docs/architecture.md.
func TestLockOrderNamesEachMutex(t *testing.T) {
	const root = "../../.."
	text, err := os.ReadFile(filepath.Join(root, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Lock order\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var listed, all []string
	for _, m := range regexp.MustCompile("`([a-z/]+: [A-Za-z]+\\.[A-Za-z]+)`").FindAllStringSubmatch(section, -1) {
		listed = append(listed, m[1])
	}
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		in, _ := filepath.Rel(root, path)
		if d.IsDir() && slices.Contains([]string{"testdata", "testkit", "check", "idstest", "bench", "clients", "bin", "dist", ".git"}, d.Name()) {
			return filepath.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(in, ".go") && !strings.HasSuffix(in, "_test.go") {
			all = append(all, mutexes(t, path, filepath.Dir(in))...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if !slices.Contains(listed, m) {
			t.Errorf("the lock order of docs/architecture.md lacks `%s`", m)
		}
	}
	for _, m := range listed {
		if !slices.Contains(all, m) {
			t.Errorf("the lock order of docs/architecture.md has `%s`, which is not there", m)
		}
	}
}

// mutexes returns the fields of a file's types that are a mutex, as the lock order names them.
func mutexes(t *testing.T, path, dir string) (found []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.TypeSpec)
		if !is {
			return true
		}
		of, is := spec.Type.(*ast.StructType)
		if !is {
			return true
		}
		for _, f := range of.Fields.List {
			s, is := f.Type.(*ast.SelectorExpr)
			if !is || s.Sel.Name != "Mutex" && s.Sel.Name != "RWMutex" {
				continue
			}
			if len(f.Names) == 0 {
				t.Errorf("%s: %s: give the mutex a name, and say what it guards", path, spec.Name.Name)
			}
			for _, name := range f.Names {
				found = append(found, dir+": "+spec.Name.Name+"."+name.Name)
			}
		}
		return true
	})
	return found
}
