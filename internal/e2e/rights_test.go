package e2e

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/flaked/flaked/internal/testkit/certtest"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

const (
	tokenOfAll  = "all-5a1c9e77b2d04f38"
	tokenOfTeam = "team-0d94b6ce1f7a4e25"
	noRight     = "-NOPERM reason=no-right this token may not use sequence "
)

// Two teams share a node. The token of one of them is for its own sequences only, and does not show
// which others exist. The file changes while the node runs.
func TestTokenLimitsSequences(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"auto", "goroutines"} {
		t.Run(engine, func(t *testing.T) {
			dir := t.TempDir()
			file := certtest.Write(t, dir, "tokens", []byte(tokenOfAll+"\n"+tokenOfTeam+" next=order:*,user admin=none\n"))
			s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
			n := s.started("--token-file", file, "--engine", engine)
			for _, name := range []string{"order:1", "user", "hidden"} {
				s.create(name)
			}
			n.limitsRequests()
			n.limitsCommands(dir)
			n.followsRights(dir)
			if log := n.proc.log(); strings.Contains(log, tokenOfAll) || strings.Contains(log, tokenOfTeam) {
				t.Error("a token is in the log")
			}
		})
	}
}

// gets waits until a request with a token is answered with a line.
func (n *node) gets(token, request, want string) {
	n.site.t.Helper()
	n.until("the reply to "+request, func() bool {
		got, err := n.lines("AUTH "+token+"\n"+request+"\n", 2)
		return err == nil && got[1] == want
	})
}

func (n *node) limitsRequests() {
	t := n.site.t
	t.Helper()
	n.gets(tokenOfAll, "NEXT hidden", "1")
	n.gets(tokenOfTeam, "NEXT order:1", "1")
	n.gets(tokenOfTeam, "NEXT user", "1")
	got, err := n.lines("AUTH "+tokenOfTeam+"\nNEXT user\nNEXT hidden\nNEXT user\nSEQ hidden\nNEXT absent\n", 6)
	if want := []string{"OK", "2", noRight + "hidden", "3", noRight + "hidden", noRight + "absent"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("a pipeline gets %q, %v", got, err)
	}
	got, err = n.lines("AUTH "+tokenOfTeam+"\nSEQS\n", 4)
	if err != nil || !strings.HasPrefix(got[1], "name=order:1 ") || !strings.HasPrefix(got[2], "name=user ") || got[3] != "END" {
		t.Errorf("SEQS gets %q, %v", got, err)
	}
}

// own returns the address of the node, as a client dials it.
func (n *node) own() string {
	_, addr, err := n.address()
	if err != nil {
		n.site.t.Fatal(err)
	}
	return addr
}

func (n *node) limitsCommands(dir string) {
	t := n.site.t.(*testing.T)
	t.Helper()
	next := func(token, name string) result {
		file := certtest.Write(t, dir, "own", []byte(token+"\n"))
		return execute(t, shipped.binary(t), "seq", "next", name, "--addr", n.own(), "--token-file", file)
	}
	next(tokenOfTeam, "user").wants(t, 0, "4\n")
	refused(t, next(tokenOfTeam, "hidden"), 1, noRight+`hidden\. Give another token with --token-file FILE`)
	refused(t, next("wrong", "hidden"), 1, `-WRONGPASS wrong token\. Give a token`)
}

func (n *node) followsRights(dir string) {
	t := n.site.t
	t.Helper()
	old := wireTo(t, "tcp", n.own(), nil)
	old.wants("AUTH "+tokenOfTeam, "OK")
	certtest.Write(t, dir, "tokens", []byte(tokenOfAll+"\n"+tokenOfTeam+" next=hidden admin=all\n"))
	n.proc.signal(syscall.SIGHUP)
	n.until("the mistake is in the log", func() bool {
		return strings.Contains(n.proc.log(), "tokens: line 2: admin= must be none")
	})
	n.gets(tokenOfTeam, "NEXT hidden", noRight+"hidden")
	certtest.Write(t, dir, "tokens", []byte(tokenOfAll+"\n"+tokenOfTeam+" next=hidden\n"))
	n.gets(tokenOfTeam, "NEXT hidden", "2")
	n.gets(tokenOfTeam, "NEXT user", noRight+"user")
	old.wants("NEXT user", "5") // it keeps the rights that its token had
	old.wants("NEXT hidden", noRight+"hidden")
}
