// Package api lists the exported names of the packages that docs/clients.md promises to keep. Its tests compare them
// with those of releases: docs/operate.md. The list is text, because the export data that apidiff compares can only be
// read by the Go release that wrote it, and a change of a line shows in a review.
package api

import (
	"bytes"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

const module = "github.com/flaked/flaked"

// promised has the packages whose exported names stay. Of a package with names, only these are promised.
var promised = map[string][]string{
	"flaked":             nil, // the root
	"admin":              nil,
	"client":             nil,
	"client/httpid":      nil,
	"ids":                nil,
	"ids/idstest":        nil,
	"lineproto":          nil,
	"lineproto/embedded": nil,
	"sequence":           nil,
	"worker": {"ID", "ParseID", "Layout", "ParseLayout", "Leaf", "ErrLayout", "Field", "FieldTime", "FieldRollback",
		"FieldSegment", "FieldDatacenter", "FieldWorker", "FieldSequence", "Fields", "Order", "Part", "Tick", "Run",
		"Pause"},
}

// free has the public packages that promise nothing.
var free = []string{"coordinator", "localcache", "timeguard"}

// mayGrow has the interfaces to which releases add methods. Their comments say so.
var mayGrow = []string{"lineproto.Backend", "lineproto.Sequences"}

// load returns the packages with these paths, as the compiler exports them for Linux.
func load(paths []string) (map[string]*types.Package, error) {
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	list := exec.Command("go", append(args, paths...)...)
	list.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	var problems bytes.Buffer
	list.Stderr = &problems
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w: %s", list.Args, err, problems.String())
	}
	exported := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exported[path] = file
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exported[path])
	})
	all := make(map[string]*types.Package)
	for _, path := range paths {
		if all[path], err = from.Import(path); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// listing collects the lines about one package.
type listing struct {
	pkg   string // as in promised
	names []string
	lines []string
	// foreign has a sentence for each type in a promised signature that is not promised.
	foreign []string
}

// describe lists the promised names of a package.
func describe(p *types.Package) *listing {
	l := &listing{pkg: short(p), names: promised[short(p)]}
	for _, name := range p.Scope().Names() {
		object := p.Scope().Lookup(name)
		if !object.Exported() || l.names != nil && !slices.Contains(l.names, name) {
			continue
		}
		switch o := object.(type) {
		case *types.Const:
			l.add("const %s %s = %s", name, l.text(o.Type()), o.Val().ExactString())
		case *types.Var:
			l.add("var %s %s", name, l.text(o.Type()))
		case *types.Func:
			l.add("func %s%s", name, l.signature(o))
		case *types.TypeName:
			l.describeType(o)
		}
	}
	return l
}

func (l *listing) add(format string, args ...any) {
	l.lines = append(l.lines, l.pkg+": "+fmt.Sprintf(format, args...))
}

func (l *listing) describeType(o *types.TypeName) {
	named, ok := o.Type().(*types.Named)
	if o.IsAlias() || !ok {
		l.add("type %s = %s", o.Name(), l.text(types.Unalias(o.Type())))
		return
	}
	switch under := named.Underlying().(type) {
	case *types.Struct:
		l.add("type %s struct", o.Name())
		for field := range under.Fields() {
			if field.Exported() {
				l.add("type %s struct, %s%s %s", o.Name(), map[bool]string{true: "embedded "}[field.Embedded()],
					field.Name(), l.text(field.Type()))
			}
		}
	case *types.Interface:
		var methods []string
		for m := range under.Methods() {
			methods = append(methods, m.Name())
			l.add("type %s interface, %s%s", o.Name(), m.Name(), l.signature(m))
		}
		if !slices.Contains(mayGrow, l.pkg+"."+o.Name()) { // a program may implement it, so a new method breaks it
			l.add("type %s interface { %s }", o.Name(), strings.Join(methods, ", "))
		}
	default:
		l.add("type %s %s", o.Name(), l.text(under))
	}
	for m := range named.Methods() {
		if m.Exported() {
			receiver := m.Signature().Recv().Type()
			l.add("method (%s) %s%s", types.TypeString(receiver, func(*types.Package) string { return "" }), m.Name(),
				l.signature(m))
		}
	}
}

// signature returns the parameters and results of a function, without their names.
func (l *listing) signature(f *types.Func) string {
	return strings.TrimPrefix(l.text(f.Signature()), "func")
}

// text returns a type, and notes types of this module in it that are not promised.
func (l *listing) text(t types.Type) string {
	var own []string
	text := types.TypeString(unnamed(t), func(p *types.Package) string {
		if name := short(p); name != p.Path() {
			own = append(own, name)
		}
		return short(p)
	})
	for _, found := range qualified.FindAllStringSubmatch(text, -1) {
		pkg, name := found[1], found[2]
		names, ok := promised[pkg]
		if slices.Contains(own, pkg) && (!ok || names != nil && !slices.Contains(names, name)) {
			l.foreign = append(l.foreign, fmt.Sprintf("%s mentions %s.%s, which promises nothing", l.pkg, pkg, name))
		}
	}
	return text
}

// qualified is a type with its package.
var qualified = regexp.MustCompile(`([\w./-]+)\.(\w+)`)

// short returns the path of a package of this module as in promised, and other paths as they are.
func short(p *types.Package) string {
	if p.Path() == module {
		return p.Name()
	}
	return strings.TrimPrefix(p.Path(), module+"/")
}

// unnamed returns a type without the names of parameters, which may change.
func unnamed(t types.Type) types.Type {
	s, ok := t.(*types.Signature)
	if !ok || s.TypeParams().Len() > 0 { // a type parameter belongs to one signature only
		return t
	}
	bare := func(all *types.Tuple) *types.Tuple {
		var vars []*types.Var
		for v := range all.Variables() {
			vars = append(vars, types.NewParam(token.NoPos, nil, "", unnamed(v.Type())))
		}
		return types.NewTuple(vars...)
	}
	return types.NewSignatureType(nil, nil, nil, bare(s.Params()), bare(s.Results()), s.Variadic())
}
