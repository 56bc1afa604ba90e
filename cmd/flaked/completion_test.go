package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestCompletion(t *testing.T) {
	call(t, "", "completion").wants(t, exitUsage, "", "expected one shell: bash, zsh, fish")
	call(t, "", "completion", "tcsh").wants(t, exitUsage, "", "expected one shell:")
	args := os.Args
	t.Cleanup(func() { os.Args = args })
	os.Args = []string{"flaked"} // the library looks there
	call(t, "", "--generate-bash-completion").wants(t, exitOK, "status\ndoctor\n", "")
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
