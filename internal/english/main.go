// Command english looks for constructions that make comments and messages hard to read. It
// checks the comments and the strings of all Go files of this module, and prints one line
// for each finding. It exits with 1 if there are any. `make lint` runs it.
//
// Exceptions are in exceptions.txt: one per line, each a part of the text that is allowed.
package main

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// rule is a construction that must not be used, and what to write instead.
type rule struct {
	pattern *regexp.Regexp
	instead string
}

// begin matches the begin of a sentence, after a comment's markers.
const begin = `(?:^|[.:;!?]\s+)`

// inComments and inTexts are the rules of the project's English for comments and for
// strings. Both use word boundaries, so that a part of a word is never found.
var (
	both = []rule{
		{regexp.MustCompile(begin + `(?:Who|Whoever|What|That which)\b[^?]*(?:[.:;]|$)`), "name the actor: no sentence begins with who or what"},
		{regexp.MustCompile(`\b(?:is|are|was|were) to be\b`), "write must be"},
		{regexp.MustCompile(`\bwhoever\b`), "name the actor"},
		{regexp.MustCompile(`\bnobody's\b`), "name the owner, or write that there is none"},
		{regexp.MustCompile(`\bnewcomers?\b`), "write new node"},
		{regexp.MustCompile(`\bby hand\b`), "write by an operator"},
	}
	inComments = append([]rule{
		{regexp.MustCompile(`\btells whether\b`), "write reports whether, or returns"},
	}, both...)
	// ofFunctions are for the doc comments of functions.
	ofFunctions = []rule{
		{regexp.MustCompile(`^\w+ (?:is|are) (?:the|a|an|what|who|how|where|when|why|whether|until|for|one|all|those)\b`), "say what it returns or does"},
	}
)

//go:embed exceptions.txt
var exceptions string

func main() {
	found := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && skipped(path, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasPrefix(path, "internal/english/"):
			return nil
		}
		findings, err := check(path)
		for _, f := range findings {
			fmt.Println(f)
		}
		found += len(findings)
		return err
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "english:", err)
		os.Exit(2)
	}
	if found > 0 {
		fmt.Fprintf(os.Stderr, "english: %d places are hard to read\n", found)
		os.Exit(1)
	}
}

// skipped reports whether a directory holds no code of this module.
func skipped(path, name string) bool {
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return err == nil || strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules"
}

// check returns the findings in a Go file.
func check(path string) (findings []string, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	look := func(pos token.Pos, text string, rules []rule) {
		for _, r := range rules {
			if hit := r.pattern.FindString(text); hit != "" && !excepted(text) {
				findings = append(findings, fmt.Sprintf("%s: %.70q: %s", set.Position(pos), hit, r.instead))
			}
		}
	}
	for _, group := range file.Comments {
		look(group.Pos(), strings.Join(strings.Fields(group.Text()), " "), inComments)
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Doc != nil && strings.HasPrefix(f.Doc.Text(), f.Name.Name+" ") {
			look(f.Doc.Pos(), strings.Join(strings.Fields(f.Doc.Text()), " "), ofFunctions)
		}
	}
	if strings.HasSuffix(path, "_test.go") { // its strings are data
		return findings, nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.BasicLit); ok && s.Kind == token.STRING {
			look(s.Pos(), strings.Join(strings.Fields(strings.Trim(s.Value, "`\"")), " "), both)
		}
		return true
	})
	return findings, nil
}

func excepted(text string) bool {
	return slices.ContainsFunc(strings.Split(exceptions, "\n"), func(part string) bool {
		part = strings.TrimSpace(part)
		return part != "" && strings.Contains(text, part)
	})
}
