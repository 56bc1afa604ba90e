package systemd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const units = "../../../../deploy/systemd"

// systemd accepts the shipped unit, which starts the binary in /usr/local/bin and gives the
// service few rights that it does not need.
func TestShippedUnitIsAccepted(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		if os.Getenv("FLAKED_TEST_TOOLS") == "require" {
			t.Fatalf("FLAKED_TEST_TOOLS=require, but no systemd-analyze: %v; scripts/get-tools.sh gets it", err)
		}
		t.Skipf("no systemd-analyze: %v; scripts/get-tools.sh gets it", err)
	}
	text, err := os.ReadFile(filepath.Join(units, "flaked.service"))
	if err != nil {
		t.Fatal(err)
	}
	const binary = "/usr/local/bin/flaked"
	if !strings.Contains(string(text), "ExecStart="+binary+" serve ") {
		t.Errorf("it does not start %s serve", binary)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "flaked.service")
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(string(text), binary, self)), 0o600); err != nil {
		t.Fatal(err)
	}
	// systemd 252 rates the unit's exposure at 1.4 of 10: the service uses the network and
	// the host's file tree. Other versions count a little differently. The limit is 2.0.
	for _, args := range [][]string{{"verify", "--man=no", unit},
		{"security", "--offline=true", "--no-pager", "--threshold=20", unit}} {
		out, err := exec.Command(analyze, args...).CombinedOutput()
		if err != nil || args[0] == "verify" && len(out) > 0 {
			t.Errorf("systemd-analyze %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
