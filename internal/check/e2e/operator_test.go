package e2e

import (
	"strings"
	"testing"
)

// command runs a command of the shipped binary with the site's ZooKeeper.
func (s *site) command(args ...string) result {
	s.t.Helper()
	return execute(s.t, shipped.binary(s.t), append(args, "--zk", s.connect)...)
}

// wants fails the test unless the command ended with the exit code and its output contains the
// text.
func (r result) wants(t testing.TB, code int, text string) {
	t.Helper()
	if r.code != code || !strings.Contains(r.stdout+r.stderr, text) {
		t.Errorf("exit %d, want %d and %q:\n%s%s", r.code, code, text, r.stdout, r.stderr)
	}
}

// reads fails the test unless the output of status or doctor contains the text. The exit code may be that of a problem:
// the machine may be busy, or its clock not synchronised.
func (r result) reads(t testing.TB, text string) {
	t.Helper()
	if r.code != 0 && r.code != 4 || !strings.Contains(r.stdout, text) {
		t.Errorf("exit %d, want 0 or 4 and %q:\n%s%s", r.code, text, r.stdout, r.stderr)
	}
}
