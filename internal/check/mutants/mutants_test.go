// Package mutants removes safeguards from the code, one at a time, and checks that the
// simulation notices. A checker that does not find a planted fault proves nothing. The package
// runs as `make mutants`.
package mutants

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	seeds = flag.String("seeds", "4000", "within how many histories a mutant has to be caught")
	only  = flag.String("mutant", "", "regular expression of the mutants to run")
)

// seed matches the simulation's output about the first history with a violation: its number and
// the violated check.
var seed = regexp.MustCompile(`seed (\d+): ([^:]*): `)

// TestMutantsAreCaught prints a table of the mutants. Each row has the history that caught the
// mutant and the check. Its last column has the history that caught the mutant by IDs alone:
// by a duplicate ID, or by overlapping ranges of two holders. Without such a history, nothing
// shows that the mutant does harm.
func TestMutantsAreCaught(t *testing.T) {
	root, wanted := asked(t)
	ran, caught, byIDs := 0, 0, 0
	fmt.Println("| mutant | history | caught by | history, by its IDs alone |")
	fmt.Println("|---|---|---|---|")
	for _, m := range mutants {
		if !wanted.MatchString(m.name) {
			continue
		}
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			binary := filepath.Join(t.TempDir(), "node.test")
			m.compile(t, root, "test", "-c", "-vet=off", "-o", binary, "./internal/core/node")
			history, check := play(t, binary, "-sim.world="+worlds[m.name])
			ids, by := "-", ""
			if history != "-" {
				ids, by = play(t, binary, "-sim.world="+worlds[m.name], "-sim.ids")
			}
			if by != "twice" && by != "overlap" {
				ids = "-"
			}
			ran++
			fmt.Printf("| %s | %s | %s | %s |\n", m.name, history, check, ids)
			if history == "-" {
				t.Errorf("not caught within %s histories", *seeds)
			} else {
				caught++
			}
			if ids != "-" {
				byIDs++
			}
		})
	}
	fmt.Printf("\n%d of %d caught within %s histories, %d of them by their IDs alone\n", caught, ran, *seeds, byIDs)
}

// TestMutantsAreCaughtByTheirTests prints which tests of one package catch a mutant.
func TestMutantsAreCaughtByTheirTests(t *testing.T) {
	root, wanted := asked(t)
	fmt.Println("| mutant | caught by |")
	fmt.Println("|---|---|")
	for _, m := range slices.Concat(ofTheCore, testedOfSequences) {
		if !wanted.MatchString(m.name) {
			continue
		}
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			t.Parallel() // most of the time is the linker's, which uses one processor
			binary := filepath.Join(t.TempDir(), "unit.test")
			m.compile(t, root, "test", "-c", "-vet=off", "-o", binary, m.pkg)
			args := []string{"-test.run", m.tests, "-test.timeout", "30s"}
			if !slices.Contains([]string{"./internal/core/node"}, m.pkg) { // these have no property tests to define the flag
				args = append(args, "-rapid.nofailfile")
			}
			cmd := exec.Command(binary, args...)
			cmd.Dir = filepath.Join(root, m.pkg)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL") && !strings.Contains(string(out), "panic: test timed out") {
				t.Fatalf("%s of %s has not noticed: %v\n%s", m.tests, m.pkg, err, out)
			}
			fmt.Printf("| %s | %s |\n", m.name, m.tests)
		})
	}
}

// asked returns the root of the code and the pattern of the mutants to run. It skips the test
// unless FLAKED_MUTANTS is set.
func asked(t *testing.T) (root string, wanted *regexp.Regexp) {
	t.Helper()
	if os.Getenv("FLAKED_MUTANTS") == "" {
		t.Skip("takes minutes: run `make mutants`")
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if wanted, err = regexp.Compile(*only); err != nil {
		t.Fatal(err)
	}
	return root, wanted
}

// changed returns the mutant's code of each file that the mutant changes, by path. It fails the
// test if a quoted piece of code does not occur exactly once.
func (m mutant) changed(t *testing.T, root string) map[string]string {
	t.Helper()
	code := make(map[string]string)
	for _, c := range m.changes {
		file := filepath.Join(root, c.file)
		if code[file] == "" {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			code[file] = string(b)
		}
		if n := strings.Count(code[file], c.old); n != 1 {
			t.Fatalf("%s has %d places like %q: the mutant has to follow the code", c.file, n, c.old)
		}
		code[file] = strings.Replace(code[file], c.old, c.new, 1)
	}
	return code
}

// TestMutantsFollowTheCode checks that each mutant still applies to the code. Unlike the tests
// above it takes no time, so it always runs.
func TestMutantsFollowTheCode(t *testing.T) {
	for _, m := range mutants {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) { m.changed(t, "../../..") })
	}
	for _, m := range slices.Concat(ofTheCore, testedOfSequences) {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) { m.changed(t, "../../..") })
	}
}

// compile runs the go command on the code with the mutant's changes in place.
func (m mutant) compile(t *testing.T, root, command string, args ...string) {
	compileCode(t, root, m.changed(t, root), command, args...)
}

// compileCode runs the go command on the code of the repository, with other texts of some files.
func compileCode(t *testing.T, root string, code map[string]string, command string, args ...string) {
	t.Helper()
	dir := t.TempDir()
	overlay := map[string]map[string]string{"Replace": {}}
	for file, text := range code {
		changed := filepath.Join(dir, fmt.Sprintf("%d.go", len(overlay["Replace"])))
		overlay["Replace"][file] = changed
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := json.Marshal(overlay)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", append([]string{command, "-overlay", filepath.Join(dir, "overlay.json")}, args...)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// play runs histories of a mutant until one has a violation. It returns the number of that
// history and the violated check, or "-" for both.
func play(t *testing.T, binary string, args ...string) (history, check string) {
	out, err := exec.Command(binary, append([]string{"-test.run=^TestSimulation$", "-sim.count=" + *seeds}, args...)...).CombinedOutput()
	found := seed.FindSubmatch(out)
	switch {
	case found != nil:
		return string(found[1]), string(found[2])
	case err != nil:
		// The simulation also fails if the mutant keeps every history from reaching a
		// scenario's situation. That is not a violation.
		if strings.Contains(string(out), "no history came to") {
			return "-", "-"
		}
		t.Errorf("ended without a finding:\n%s", out)
	}
	return "-", "-"
}
