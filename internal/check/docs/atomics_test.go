package docs

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// wide are the types of go.uber.org/atomic that hold a number of 64 bits. They are not aligned in a struct on 386 and
// arm, and panic there. Those of sync/atomic are.
var wide = []string{"Int64", "Uint64", "Float64", "Duration", "NewInt64", "NewUint64", "NewFloat64", "NewDuration"}

// Product code takes its atomics from go.uber.org/atomic. A file with numbers of 64 bits takes all from sync/atomic.
func checkAtomics(t *testing.T, set *token.FileSet, file *ast.File) {
	t.Helper()
	from := ""
	for _, i := range file.Imports {
		if path, err := strconv.Unquote(i.Path.Value); err == nil && (path == "sync/atomic" || path == "go.uber.org/atomic") {
			if from != "" || i.Name != nil {
				t.Errorf("%s: import one package of atomics, under its own name", set.Position(i.Pos()))
			}
			from = path
		}
	}
	if from == "" {
		return
	}
	uses := false
	ast.Inspect(file, func(n ast.Node) bool {
		s, is := n.(*ast.SelectorExpr)
		if !is {
			return true
		}
		if of, is := s.X.(*ast.Ident); is && of.Name == "atomic" && slices.Contains(wide, s.Sel.Name) {
			uses = true
		}
		return true
	})
	switch position := set.Position(file.Package); {
	case uses && from != "sync/atomic":
		t.Errorf("%s: on 386 and arm atomics of 64 bits panic unless they are sync/atomic's", position)
	case !uses && from == "sync/atomic":
		t.Errorf("%s: without atomics of 64 bits use go.uber.org/atomic", position)
	}
}
