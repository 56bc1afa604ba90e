package mutants

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A directive stands on a line of its own, before the line of code that it replaces:
//
//	//mutant:NAME by WHO -> CODE
//
// NAME begins with the number of the rule that the line keeps (docs/design.md). CODE takes the place of the
// next line. Without CODE the line goes. WHO must notice: `sim`, the simulation of the core, or `seqsim`, that of named
// sequences, in 4,000 histories at most; `sim:WORLD`, the core's in another world; or a regular expression of tests of
// the file's own package. `PACKAGE:TESTS` names tests of another package, by its directory.
//
// If several lines form one safeguard, each has a directive of the same NAME, and one of them says WHO.
var directive = regexp.MustCompile(`^\s*//mutant:([a-z0-9]+-[a-z0-9-]+)(?: by (\S+))? ->(?: (.*))?$`)

// place is a line of code that a mutant replaces.
type place struct {
	file string // from the root of the repository
	line int    // from 1
	code string
}

// planted is a mutant that the code's directives describe.
type planted struct {
	name, by string
	places   []place
}

// plant reads the directives of all code of the repository, in the order of the files.
func plant(t *testing.T, root string) (all []*planted) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			if !strings.HasPrefix(strings.TrimSpace(line), "//mutant:") {
				continue
			}
			found := directive.FindStringSubmatch(line)
			if found == nil {
				t.Fatalf("%s:%d: not a directive of a mutant: %s", file, i+1, line)
			}
			at := slices.IndexFunc(all, func(m *planted) bool { return m.name == found[1] })
			if at < 0 {
				at, all = len(all), append(all, &planted{name: found[1]})
			}
			m := all[at]
			if found[2] != "" && m.by != "" {
				t.Fatalf("%s:%d: %s has said already who notices", file, i+1, m.name)
			}
			m.by += found[2]
			m.places = append(m.places, place{file, i + 2, found[3]})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// mutated returns the code of the files that the mutant changes, by path.
func (m *planted) mutated(t *testing.T, root string) map[string]string {
	t.Helper()
	code := map[string][]string{}
	for _, p := range m.places {
		path := filepath.Join(root, p.file)
		if code[path] == nil {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			code[path] = strings.Split(string(text), "\n")
		}
		code[path][p.line-1] = p.code
	}
	joined := map[string]string{}
	for path, lines := range code {
		joined[path] = strings.Join(lines, "\n")
	}
	return joined
}

// TestDirectivesFollowTheCode checks that each mutant says who notices, and that its code is one that Go can read.
func TestDirectivesFollowTheCode(t *testing.T) {
	const root = "../../.."
	for _, m := range plant(t, root) {
		if m.by == "" {
			t.Errorf("%s:%d: %s does not say who notices", m.places[0].file, m.places[0].line-1, m.name)
		}
		for path, code := range m.mutated(t, root) {
			if _, err := parser.ParseFile(token.NewFileSet(), path, code, 0); err != nil {
				t.Errorf("%s: %v", m.name, err)
			}
		}
	}
}

// TestDirectiveMutantsAreCaught runs in `make mutants`. It prints who has noticed each mutant.
func TestDirectiveMutantsAreCaught(t *testing.T) {
	root, wanted := asked(t)
	fmt.Println("| mutant | caught by |")
	fmt.Println("|---|---|")
	for _, m := range plant(t, root) {
		if !wanted.MatchString(m.name) {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel() // most of the time is the linker's, which uses one processor
			who := m.caught(t, root)
			fmt.Printf("| %s | %s |\n", m.name, who)
		})
	}
}

// caught runs the test or simulation that must notice the mutant, and returns its finding.
func (m *planted) caught(t *testing.T, root string) string {
	t.Helper()
	who, rest, _ := strings.Cut(m.by, ":")
	pkg, tests := filepath.Dir(m.places[0].file), m.by
	switch {
	case who == "sim":
		pkg, tests = "internal/core/node", ""
	case who == "seqsim":
		pkg, tests = "internal/core/seq", ""
	case rest != "":
		pkg, tests = who, rest
	}
	binary := filepath.Join(t.TempDir(), "mutant.test")
	compileCode(t, root, m.mutated(t, root), "test", "-c", "-vet=off", "-o", binary, "./"+pkg)
	if tests == "" {
		var args []string
		if rest != "" {
			args = []string{"-sim.world=" + rest}
		}
		history, check := play(t, binary, args...)
		if history == "-" {
			t.Errorf("%s: not caught within %s histories", m.name, *seeds)
		}
		return fmt.Sprintf("%s in history %s: %s", who, history, check)
	}
	args := []string{"-test.run", "^(" + tests + ")$", "-test.timeout", "60s"}
	if help, _ := exec.Command(binary, "-h").CombinedOutput(); strings.Contains(string(help), "rapid.nofailfile") {
		args = append(args, "-rapid.nofailfile") // else a property test that fails leaves a file in the tree
	}
	cmd := exec.Command(binary, args...)
	cmd.Dir = filepath.Join(root, pkg)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--- FAIL") && !strings.Contains(string(out), "panic: test timed out") {
		t.Fatalf("%s of %s has not noticed: %v\n%s", tests, pkg, err, out)
	}
	return tests
}
