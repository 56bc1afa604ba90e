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
