// Package mutants takes safeguards out, one at a time, and sees to it that the
// simulation notices. A checker that cannot see a planted fault is worth
// nothing. It runs by `make mutants`. Safeguards that another one stands in for
// (a slot taken too early still begins at its old bound) are not in the list.
package mutants

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var seeds = flag.String("seeds", "2000", "within how many histories a mutant has to be caught")

// mutant is the code with one safeguard removed: new in the place of old, which
// stands in the file once.
type mutant struct{ name, file, old, new string }

var mutants = []mutant{
	{"a resume begins at now", "coordinator/resume.go",
		"claim.Lo = max(claim.Lo, claim.M, found.Reached+1)", "claim.Lo = c.Now()"},
	{"a start from the cache begins at now", "node/acquire.go",
		"claim.Lo = max(m, claim.Lo)", "claim.Lo = max(min(m, claim.Lo), n.now())"},
	{"a start from the cache beyond H", "node/acquire.go",
		"errors.Is(err, coordinator.ErrUnreachable)) && n.now() < a.claim.H {", "errors.Is(err, coordinator.ErrUnreachable)) {\n		n.claim.H = max(n.claim.H, n.now()+60_000)"},
	{"no fingerprint", "node/acquire.go",
		"case len(loaded.Changed) > 0:", "case false:"},
	{"H counts before it is acknowledged", "coordinator/resume.go",
		"	claim, err := c.grant(claim, found.Term+1)", "	claim.H, claim.Settled = NextH(found.H, claim.H, c.Now(), lease), true\n	claim, err := c.grant(claim, found.Term+1)"},
	{"a higher term does not fence", "coordinator/decide.go",
		"	case found.Term > mine.Term:\n		return FoundFenced\n", ""},
	{"a restart makes unsettled records settled", "node/record.go",
		"Settled: rec.Settled, Lo: rec.Lo, H: rec.H,", "Settled: true, Lo: rec.Lo, H: max(rec.H, rec.M+60_000),"},
	{"a slot is released before the local record is invalid", "node/stop.go",
		"if err := n.cfg.Cache.Invalidate(); err != nil {", "if err := error(nil); err != nil {"},
	{"no wait when a tick has run out", "worker/generator.go",
		"take := min(int64(n), g.seqMask+1-first&g.seqMask)", "take := int64(n)"},
	{"no settling", "coordinator/settle.go",
		"func settlingTime(cl Cluster) time.Duration { return time.Duration(cl.SettleMs) * time.Millisecond }", "func settlingTime(Cluster) time.Duration { return 0 }"},
	{"no freeze after a loss of data", "coordinator/record.go",
		"return now < c.FrozenUntil && worker <= c.FrozenUsed", "return false"},
}

var seed = regexp.MustCompile(`seed (\d+)`)

func TestMutantsAreCaught(t *testing.T) {
	if os.Getenv("FLAKED_MUTANTS") == "" {
		t.Skip("takes minutes: run `make mutants`")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			file := filepath.Join(root, m.file)
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(code), m.old); n != 1 {
				t.Fatalf("%s has %d places like %q: the mutant has to follow the code", m.file, n, m.old)
			}
			dir := t.TempDir()
			changed, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
			list, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
			if err != nil {
				t.Fatal(err)
			}
			for name, data := range map[string][]byte{changed: []byte(strings.Replace(string(code), m.old, m.new, 1)), overlay: list} {
				if err := os.WriteFile(name, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("go", "test", "-vet=off", "-overlay", overlay, "./node", "-run", "^TestSimulation$", "-sim.count="+*seeds)
			cmd.Dir = root
			out, err := cmd.CombinedOutput()
			switch found := seed.FindSubmatch(out); {
			case err == nil:
				t.Errorf("not caught within %s histories", *seeds)
			case found == nil:
				t.Errorf("ended without a finding:\n%s", out)
			default:
				t.Logf("caught at history %s", found[1])
			}
		})
	}
}
