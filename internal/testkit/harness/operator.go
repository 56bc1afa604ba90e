//go:build unix

package harness

import (
	"regexp"
	"strings"
	"testing"
)

// Command runs a command of the shipped binary with the site's ZooKeeper.
func (s *Site) Command(args ...string) Result {
	s.T.Helper()
	return Execute(s.T, Shipped.Binary(s.T), append(args, "--zk", s.Connect)...)
}

// Wants fails the test unless the command ended with the exit code and its output contains the
// text.
func (r Result) Wants(t testing.TB, code int, text string) {
	t.Helper()
	if r.Code != code || !strings.Contains(r.Stdout+r.Stderr, text) {
		t.Errorf("exit %d, want %d and %q:\n%s%s", r.Code, code, text, r.Stdout, r.Stderr)
	}
}

// failures finds the checks of doctor that fail.
var failures = regexp.MustCompile(`(?m)^ *fail +(\S+)`)

// Reads fails the test unless the output of status or doctor contains the text. The exit code may be that of a problem:
// the machine may be busy, or its clock not synchronised. Its disk may stall, which doctor's check durability reports.
func (r Result) Reads(t testing.TB, text string) {
	t.Helper()
	failed := failures.FindAllStringSubmatch(r.Stdout, -1)
	stalls := r.Code == 1 && len(failed) == 1 && failed[0][1] == "durability"
	if r.Code != 0 && r.Code != 4 && !stalls || !strings.Contains(r.Stdout, text) {
		t.Errorf("exit %d, want 0 or 4 and %q:\n%s%s", r.Code, text, r.Stdout, r.Stderr)
	}
}
