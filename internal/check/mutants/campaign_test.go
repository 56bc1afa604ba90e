package mutants

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// inTheField lists the mutants that the fault campaign must catch too. Each row has the faults
// that reveal the mutant, the finding that must be reported, and the nodes' longest lease.
var inTheField = []struct{ mutant, faults, finding, lease string }{
	{"c1-no-tick-wait", "a second process", "no ID twice", "1m"},
	{"c6-resume-at-now", "kill -9, clock back", "real-time order on a worker", "1m"},
	{"c1-no-reserved-bound", "disk read-only,disk stalls", "nothing where it must refuse", "1m"},
	{"c5-not-durable", "disk read-only,disk stalls", "nothing where it must refuse", "1m"},
	{"c18-no-fingerprint", "state copied,black hole,half-open", "no ID twice", "1m"},
	{"o2-no-lease", "cut off", "sequences: order", "12s"},
	{"o6-next-too-low", "SIGTERM", "sequences: order", "1m"},
	{"s16-forgotten-keys", "SIGTERM", "sequences: order", "1m"},
	{"c1-no-lease-bound", "cut off beyond", "nothing where it must refuse", "12s"},
	// These break a rule, and nothing is issued twice.
	{"c9-written-before-stored", "a second process", "traces: C9", "1m"},
	{"c3-lease-bound-goes-down", "clock back, up to 2 s", "traces: C3", "1m"},
	{"c21-loss-freezes-nothing", "a slot deleted", "traces: C21", "1m"},
	{"o2-no-margin", "a second process", "traces: O2", "1m"},
}

// TestCampaignCatchesMutants runs in `make nightly`.
func TestCampaignCatchesMutants(t *testing.T) {
	if os.Getenv("FLAKED_MUTANTS") == "" {
		t.Skip("takes minutes: set FLAKED_MUTANTS=1")
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range inTheField {
		t.Run(f.mutant, func(t *testing.T) {
			binary := filepath.Join(t.TempDir(), "flaked")
			compileCode(t, root, codeOf(t, root, f.mutant), "build", "-tags", "testclock", "-o", binary, "./cmd/flaked")
			found, out := false, ""
			for seed := 1; !found && seed <= 4; seed++ { // a campaign runs in real time, so one may miss it
				found, out = campaignFinds(t, root, binary, seed, f.finding, "-chaos.lease", f.lease, "-chaos.only", f.faults)
			}
			if !found {
				t.Errorf("%q has not been found\n%s", f.finding, out)
			}
		})
	}
}

// campaignFinds runs a campaign of 40 s against binary. found: it failed with this finding. out is its output.
func campaignFinds(
	t *testing.T, root, binary string, seed int, finding string, flags ...string,
) (found bool, out string) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"test", "-vet=off", "-count=1", "./internal/check/campaign", "-run",
		"TestCampaign$", "-v", "-timeout", "10m", "-chaos.for", "40s", "-chaos.seed", strconv.Itoa(seed),
		"-chaos.binary", binary}, flags...)...)
	cmd.Dir = root
	all, err := cmd.CombinedOutput()
	var findings []string
	for line := range strings.Lines(string(all)) {
		wrong := strings.Contains(line, "WRONG  ")
		found = found || wrong && strings.Contains(line, finding)
		if traced := strings.HasPrefix(finding, "traces: "); traced && wrong && strings.Contains(line, " twice") {
			t.Errorf("not only the traces show it: %s", line)
		}
		if strings.Contains(line, "violations") {
			findings = append(findings, strings.TrimSpace(line))
		}
	}
	t.Logf("seed %d: %s", seed, strings.Join(findings, "; "))
	return found && err != nil, string(all)
}

// codeOf returns the code of the mutant of that name.
func codeOf(t *testing.T, root, name string) map[string]string {
	t.Helper()
	for _, m := range plant(t, root) {
		if m.name == name {
			return m.mutated(t, root)
		}
	}
	t.Fatalf("there is no mutant %q", name)
	return nil
}

// TestCampaignNamesMutants checks that each mutant of the campaign exists. It takes no time, so it always runs.
func TestCampaignNamesMutants(t *testing.T) {
	for _, f := range inTheField {
		codeOf(t, "../../..", f.mutant)
	}
}
