package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// A token is rotated: the new one is added, clients use it, and the old one is removed. No
// token appears in the log.
func TestTokensAreRotated(t *testing.T) {
	t.Parallel()
	const first, second = "first-5a1c9e77b2d04f38", "second-0d94b6ce1f7a4e25"
	file := filepath.Join(t.TempDir(), "tokens")
	write := func(tokens string) {
		if err := os.WriteFile(file, []byte(tokens), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(first + "\n")
	n := newSite(t, zktest.Chroot(t, zktest.Shared(t))).started("--token-file", file, "--log-level", "trace")
	in := func(token string) bool {
		line, err := n.ask("AUTH anybody " + token)
		return err == nil && line == "OK"
	}
	n.until("the first token is good", func() bool { return in(first) })
	old, err := n.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer old.close()
	for _, row := range []struct{ request, begin string }{
		{"PING", "-NOAUTH "}, {"GET", "-NOAUTH "}, {"AUTH " + second, "-WRONGPASS wrong token"},
	} {
		if _, err := old.ask(row.request); err == nil || !strings.HasPrefix(err.Error(), row.begin) {
			t.Errorf("%s: %v, want %s", row.request, err, row.begin)
		}
	}
	if line, err := old.ask("AUTH " + first); err != nil {
		t.Error(line, err)
	}
	n.until("it serves", func() bool { _, err := old.get(1); return err == nil })

	write("# both\n" + first + "\n" + second + "\n")
	n.until("the second token is good", func() bool { return in(second) })
	write("")
	n.proc.signal(syscall.SIGHUP)
	n.until("the empty file is complained of",
		func() bool { return strings.Contains(n.proc.log(), "no token found. Write one per line") })
	if !in(first) || !in(second) {
		t.Error("an empty file has taken tokens out")
	}
	write(second + "\n")
	n.proc.signal(syscall.SIGHUP)
	n.until("the first token is out", func() bool { return !in(first) })
	if _, err := old.get(1); err != nil { // authenticated connections stay so
		t.Error(err)
	}
	if !in(second) {
		t.Error("the second is not good")
	}
	n.stop()
	if log := n.proc.log(); strings.Contains(log, first) || strings.Contains(log, second) {
		t.Error("a token is in the log")
	}
}
