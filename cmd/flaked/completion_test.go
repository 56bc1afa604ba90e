package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestCompletion(t *testing.T) {
	args := os.Args
	t.Cleanup(func() { os.Args = args })
	os.Args = []string{"flaked"} // the library looks there
	call(t, "", "--generate-bash-completion").wants(t, exitOK, "doctor\nhealthcheck\n", "")
	call(t, "", "cluster", "--generate-bash-completion").wants(t, exitOK, "init\nshow\n", "")
	for shell := range completions {
		r := call(t, "", "completion", shell)
		r.wants(t, exitOK, "--generate-bash-completion", "")
		if path, err := exec.LookPath(shell); err == nil {
			check := exec.Command(path, "-n")
			check.Stdin = strings.NewReader(r.stdout)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s: %v %s", shell, err, out)
			}
		}
	}
}
