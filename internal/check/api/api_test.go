package api

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/check/upgrade"
)

// pathOf returns the import path of a package.
func pathOf(pkg string) string {
	if pkg == "flaked" {
		return module
	}
	return module + "/" + pkg
}

// Programs that were built with a release must build with every later one.
func TestFrozenAPI(t *testing.T) {
	var paths, lines []string
	for pkg := range promised {
		paths = append(paths, pathOf(pkg))
	}
	all, err := load(paths)
	if err != nil {
		t.Fatal(err)
	}
	for pkg, names := range promised {
		p := all[pathOf(pkg)]
		l := describe(p)
		lines = append(lines, l.lines...)
		slices.Sort(l.foreign)
		for _, sentence := range slices.Compact(l.foreign) {
			t.Errorf("%s: hide it, or promise the type", sentence)
		}
		for _, name := range names {
			if p.Scope().Lookup(name) == nil {
				t.Errorf("%s.%s is promised, and does not exist", pkg, name)
			}
		}
	}
	upgrade.Names(t, "go", lines)
	if t.Failed() {
		t.Log("docs/operate.md promises that exported names stay: a change that breaks programs needs another major " +
			"version. To accept a change, run: go test ./internal/check/api -run Frozen -args -freeze")
	}
}

// A package outside of internal and bench either promises its names or says that it does not.
func TestEveryPublicPackageHasOrRefusesAPromise(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{.Name}} {{.Doc}}", module+"/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var public []string
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if path := fields[0]; fields[1] != "main" && !strings.Contains(path, "/internal/") &&
			!strings.HasPrefix(path, module+"/bench/") {
			public = append(public, path)
		}
	}
	var want []string
	for _, pkg := range slices.Concat(slices.Collect(maps.Keys(promised)), free) {
		want = append(want, pathOf(pkg))
	}
	slices.Sort(public)
	slices.Sort(want)
	if !slices.Equal(public, want) {
		t.Errorf("the public packages are %v, and this test knows %v", public, want)
	}
	guide, err := os.ReadFile("../../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range want {
		pkg := strings.TrimPrefix(path, module+"/")
		if pkg == module {
			pkg = "flaked"
		}
		if !strings.Contains(string(guide), "`"+pkg+"`") {
			t.Errorf("docs/clients.md does not say what package %s promises", pkg)
		}
	}
}

// The output of `go doc` for a package must fit on two screens, and must say which names may change in later versions.
func TestGoDocIsShortAndSaysWhatMayChange(t *testing.T) {
	for _, pkg := range slices.Concat(slices.Collect(maps.Keys(promised)), free) {
		out, err := exec.Command("go", "doc", pathOf(pkg)).Output()
		if err != nil {
			t.Fatalf("%s: %v", pkg, err)
		}
		names, ok := promised[pkg]
		most := 72
		if pkg == "coordinator" { // its types are flaked's own
			most = 80
		}
		if n := strings.Count(string(out), "\n"); n > most {
			t.Errorf("go doc %s has %d lines, must have %d at most", pkg, n, most)
		}
		says := strings.Contains(strings.Join(strings.Fields(string(out)), " "), "exported names may change in any release")
		if says != (!ok || names != nil) {
			t.Errorf("go doc %s: whether its names may change in any release must be %v, is %v", pkg, !says, says)
		}
	}
}

// The list shows what may break a program. Names of parameters cannot.
func TestListing(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		want   []string
	}{
		"a constant":    {"const A = 1", []string{"const A untyped int = 1"}},
		"a function":    {"func F(n int, s ...string) (ok bool) { return }", []string{"func F(int, ...string) bool"}},
		"a generic one": {"func F[T string|[]byte](v T) {}", []string{"func F[T string | []byte](v T)"}},
		"a variable":    {"var V func(n int)", []string{"var V func(int)"}},
		"hidden names":  {"func f() {}; type t int; var V int", []string{"var V int"}},
		"a field":       {"type T struct { A []int; b int }", []string{"type T struct", "type T struct, A []int"}},
		"embedded": {"type U int; type T struct { U }",
			[]string{"type T struct", "type T struct, embedded U p.U", "type U int"}},
		"methods": {"type T int; func (t *T) M(a int) {}; func (t T) n() {}",
			[]string{"type T int", "method (*T) M(int)"}},
		"an interface": {"type I interface { B(); A(n int) error }",
			[]string{"type I interface, A(int) error", "type I interface, B()", "type I interface { A, B }"}},
		"an alias": {"type A = []int", []string{"type A = []int"}},
		"own and others": {"import \"io\"; type T int; func F(io.Reader) T { return 0 }",
			[]string{"func F(io.Reader) p.T", "type T int"}},
	} {
		var got []string
		for _, line := range describe(checked(t, c.source)).lines {
			got = append(got, strings.TrimPrefix(line, "p: "))
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A type of a package that promises nothing must not be in a promised signature: nobody could keep the promise.
func TestForeignTypesAreFound(t *testing.T) {
	l := &listing{pkg: "flaked"}
	for _, pkg := range []string{"coordinator", "worker"} {
		all, err := load([]string{pathOf(pkg)})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"Trace", "GeneratorConfig", "ID"} {
			if o := all[pathOf(pkg)].Scope().Lookup(name); o != nil {
				l.text(types.NewSlice(o.Type()))
			}
		}
	}
	if want := []string{"flaked mentions coordinator.Trace, which promises nothing",
		"flaked mentions worker.GeneratorConfig, which promises nothing"}; !slices.Equal(l.foreign, want) {
		t.Errorf("%q, want %q", l.foreign, want)
	}
}

// checked returns the package p with this source.
func checked(t *testing.T, source string) *types.Package {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "p.go", "package p; "+source, 0)
	if err != nil {
		t.Fatal(err)
	}
	from := types.Config{Importer: importer.ForCompiler(set, "source", nil)}
	p, err := from.Check(module+"/p", set, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
