//go:build unix

package ownclock

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A program sees steps of its clock while it runs, and a later program has the same clock.
func TestProgramsFollowTheClock(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "reads")
	if out, err := exec.Command("go", "build", "-tags", Tag, "-o", binary, "./reads").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var clock Clock
	clock.Set(time.Hour)
	for range 2 {
		cmd := exec.Command(binary)
		ask, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		answers, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := clock.Start(cmd); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := ask.Write([]byte{'\n'}); err != nil {
				t.Fatal(err)
			}
			var line [64]byte
			n, err := answers.Read(line[:])
			if err != nil {
				t.Fatal(err)
			}
			wall, err := strconv.ParseInt(strings.TrimSpace(string(line[:n])), 10, 64)
			if off := time.Until(time.Unix(0, wall)) - clock.Offset(); err != nil || off.Abs() > time.Minute {
				t.Errorf("the program's clock is %s off, %v", off, err)
			}
			clock.Step(-3 * time.Hour)
		}
		ask.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}
