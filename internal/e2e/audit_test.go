package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/audit"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// audited returns what `flaked cluster audit` lists, without the times.
func (s *site) audited() (lines []string) {
	s.t.Helper()
	r := s.command("cluster", "audit", "-o", "json")
	var list struct{ Entries []audit.Entry }
	if err := json.Unmarshal([]byte(r.stdout), &list); err != nil || r.code != 0 {
		s.t.Fatalf("%v: exit %d: %s%s", err, r.code, r.stdout, r.stderr)
	}
	for _, e := range list.Entries {
		if e.By == "" || e.AtMs == 0 {
			s.t.Errorf("who and when: %+v", e)
		}
		lines = append(lines, e.Outcome+": "+e.Command)
	}
	return lines
}

// Each command that changed the cluster is listed with its flags and its outcome. Those that
// changed nothing are not.
func TestCommandsByHandAreListed(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--drain-time", "200ms")
	n := s.started().ready()
	s.sequences()
	s.command("cluster", "audit").wants(t, 0, "no command has changed cluster default\n")
	for _, row := range []struct {
		code int
		args []string
	}{
		{0, []string{"cluster", "show"}},
		{0, []string{"cluster", "freeze", "--for", "1h", "--workers=1000-1023"}},
		{2, []string{"cluster", "freeze", "--for", "1ms"}},
		{0, []string{"cluster", "freeze", "--for", "1m"}}, // all workers from now on
		{0, []string{"cluster", "freeze", "--for", "1m"}}, // changes nothing
		{0, []string{"cluster", "thaw", "--confirm", "no lost holder of cluster default is left"}},
		{0, []string{"seq", "create", "order", "--salt", "8"}},
		{0, []string{"seq", "set", "order", "--note", "it's Ada's", "--dry-run"}},
		{0, []string{"seq", "set", "order", "--note", "it's Ada's"}},
		{0, []string{"seq", "list"}},
		{0, []string{"status"}},
		{1, []string{"workers", "forget-ticket", "n-9999999999"}},
	} {
		if r := s.command(row.args...); r.code != row.code {
			t.Errorf("%s: exit %d: %s%s", strings.Join(row.args, " "), r.code, r.stdout, r.stderr)
		}
	}
	want := []string{
		"done: flaked cluster freeze --for 1h0m0s --workers 1000-1023",
		"done: flaked cluster freeze --for 1m0s",
		"done: flaked cluster thaw --confirm 'no lost holder of cluster default is left'",
		"done: flaked seq create --salt 8 order",
		`done: flaked seq set --note 'it'\''s Ada'\''s' order`,
	}
	if got := s.audited(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("listed:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	n.until("the node has logged the commands", func() bool {
		return strings.Contains(n.proc.log(), "seq set --note")
	})
	if r := <-n.drain("--release"); r.code != 0 {
		t.Fatalf("drain: %+v", r)
	}
	got := s.audited()
	if last := got[len(got)-1]; last != "done: flaked drain --release (node "+n.name+")" {
		t.Errorf("the last entry is %q", last)
	}
}
