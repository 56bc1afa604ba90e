package zkstore

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A second binding would have deadlines and errors of its own, which the
// conformance tests do not see. internal/zktest is test support.
func TestOnlyThisPackageImportsGoZookeeper(t *testing.T) {
	const root = ".."
	var importers []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && skipped(path):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imported := range file.Imports {
			if imported.Path.Value == `"github.com/go-zookeeper/zk"` {
				dir, _ := filepath.Rel(root, filepath.Dir(path))
				importers = append(importers, filepath.ToSlash(dir))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(importers)
	if got, want := slices.Compact(importers), []string{"internal/zktest", "zkstore"}; !slices.Equal(got, want) {
		t.Errorf("imported by %q, want %q", got, want)
	}
}

// skipped reports whether a directory holds no code of this module.
func skipped(dir string) bool {
	name := filepath.Base(dir)
	if strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}
