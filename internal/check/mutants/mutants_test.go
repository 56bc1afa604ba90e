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
