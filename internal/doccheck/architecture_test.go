package doccheck

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

const module = "github.com/flaked/flaked/"

// place finds code that a document names, like `node/keep.go: Node.idle`.
var place = regexp.MustCompile("`([a-z0-9_/]+\\.go): ([A-Za-z0-9_.]+)`")

// A renamed function must not leave a reader of a document searching for it.
func TestDocumentsNameCodeThatExists(t *testing.T) {
	for doc, fewest := range map[string]int{"docs/architecture.md": 50, "docs/comparison.md": 20} {
		places := place.FindAllStringSubmatch(read(t, doc), -1)
		if len(places) < fewest {
			t.Errorf("%s: found only %d places: has their form changed?", doc, len(places))
		}
		for _, m := range places {
			file, name := m[1], m[2]
			if declared := declarations(t, filepath.Join("../..", file)); !slices.Contains(declared, name) {
				t.Errorf("%s: %s has no %s", doc, file, name)
			}
		}
	}
}

// A promise that no test shows is only a claim.
func TestEachPromiseNamesATest(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "docs/comparison.md"), "\n### Promises and the test that shows them\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := 0
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| | promise |") {
			continue
		}
		rows++
		places := place.FindAllStringSubmatch(line, -1)
		if len(places) == 0 {
			t.Errorf("no test: %s", line)
		}
		for _, m := range places {
			if !strings.HasSuffix(m[1], "_test.go") || !strings.HasPrefix(m[2], "Test") {
				t.Errorf("%s in %s is no test", m[2], m[1])
			}
		}
	}
	if rows < 15 {
		t.Errorf("%d rows", rows)
	}
}

// read returns a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// declarations returns the names that a Go file declares, a method as Type.Method.
func declarations(t *testing.T, path string) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return nil
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			names = append(names, name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// mayImport has the packages of flaked that a package may import, test files left out.
// docs/architecture.md gives the reasons.
var mayImport = map[string][]string{
	"sequence":          {},
	"worker":            {},
	"internal/limits":   {},
	"internal/logqueue": {},
	"internal/pulse":    {},
	"timeguard":         {"internal/limits"},
	"localcache":        {"internal/limits"},
	"zkstore":           {"internal/limits"},
	"coordinator":       {"internal/limits", "zkstore"},
	"seqstore":          {"internal/limits", "internal/pulse", "sequence", "worker", "zkstore"},
	"node":              {"coordinator", "internal/limits", "internal/pulse", "localcache", "seqstore", "timeguard", "worker", "zkstore"},
	"clusterview":       {"coordinator", "internal/limits", "node", "seqstore", "timeguard", "worker", "zkstore"},
	"lineproto":         {"internal/rawsocket", "sequence", "worker"},
	"ids":               {"worker"},
	"client":            {"ids", "internal/credentials", "sequence", "worker"},
	"internal/nodewire": {"lineproto", "node", "seqstore", "sequence", "worker"},
	".":                 {"clusterview", "coordinator", "ids", "internal/audit", "internal/logqueue", "internal/nodewire", "internal/pulse", "lineproto", "localcache", "node", "seqstore", "sequence", "timeguard", "worker", "zkstore"},
	"admin":             {"", "clusterview", "lineproto", "node", "seqstore", "sequence", "worker"},
}

func TestImportsPointOneWay(t *testing.T) {
	for dir, allowed := range mayImport {
		for file, imported := range imports(t, dir) {
			for _, path := range imported {
				if own, is := strings.CutPrefix(path+"/", module); is && !slices.Contains(allowed, strings.TrimSuffix(own, "/")) {
					t.Errorf("%s imports %s; %s may import only %q", file, own, dir, allowed)
				}
			}
		}
	}
}

// A second user of the ZooKeeper client would have deadlines and errors of its own, which
// the conformance tests of zkstore do not see. internal/testkit/zktest is test support.
func TestOnlyZkstoreImportsTheZooKeeperClient(t *testing.T) {
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	const client = "github.com/go-zookeeper/zk"
	if !strings.Contains(string(text), client) {
		t.Fatalf("go.mod does not name %s any more", client)
	}
	var importers []string
	for _, dir := range packages(t) {
		for _, imported := range imports(t, dir) {
			if slices.Contains(imported, client) {
				importers = append(importers, dir)
			}
		}
	}
	slices.Sort(importers)
	if got, want := slices.Compact(importers), []string{"internal/testkit/zktest", "zkstore"}; !slices.Equal(got, want) {
		t.Errorf("imported by %q, want %q", got, want)
	}
}

// imports returns what the Go files of a package import, without its tests.
func imports(t *testing.T, dir string) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no Go files: %v", dir, err)
	}
	found := make(map[string][]string)
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			found[path] = append(found[path], strings.Trim(i.Path.Value, `"`))
		}
	}
	return found
}

// packages returns the directories of this module that have Go files.
func packages(t *testing.T) (dirs []string) {
	t.Helper()
	const root = "../.."
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		_, statErr := os.Stat(filepath.Join(path, "go.mod"))
		if name := d.Name(); path != root && (statErr == nil || strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
			return filepath.SkipDir
		}
		if files, _ := filepath.Glob(filepath.Join(path, "*.go")); len(files) > 0 {
			dir, _ := filepath.Rel(root, path)
			dirs = append(dirs, filepath.ToSlash(dir))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}
