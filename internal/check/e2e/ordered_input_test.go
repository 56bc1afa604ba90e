package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// What cannot be asked of ordered sequences, at the command line and over the protocol. Nothing of it changes what
// exists: the next value follows.
func TestOrderedSequencesRefuseBadInput(t *testing.T) {
	t.Parallel()
	s := harness.NewSite(t, zktest.Chroot(t, zktest.Shared(t)))
	n := s.Started().Ready()
	ticks, alice := s.Sequence("ticks", "--mode", "ordered"), s.Sequence("msg:*", "--mode", "ordered", "--sections", "4")
	alice.Name = "msg:alice"
	ticks.First(n)
	alice.First(n)
	s.Sequence("order:1")
	s.Sequence("day:*", "--max-names", "9")
	create := func(words string) []string { return append([]string{"seq", "create"}, strings.Fields(words)...) }
	for _, row := range []struct {
		args []string
		want string
	}{
		{create("a:* --mode ordered --sections 0"), "--sections"},
		{create("a:* --mode ordered --sections 513"), "--sections"},
		{create("a:* --mode ordered --sections many"), "--sections"},
		{create("a:* --mode ordered"), "--sections"},
		{create("a:* --mode ordered --sections 4 --max-names 4"), "Give one of them"},
		{create("a:* --mode strict --sections 4"), "--sections"},
		{create("a:* --sections 4"), "--sections"},
		{create("a --mode ordered --sections 4"), "--sections"},
		{create("msg:vip:* --mode ordered --sections 4"), "msg:*"},
		{create("msg:* --mode ordered --sections 4"), "msg:*"},
		{create("msg:vip:* --max-names 4"), "msg:*"},
		{create("msg:bob"), "msg:*"},
		{create("msg:bob --mode ordered"), "msg:*"},
		{create("order:* --mode ordered --sections 4"), "order:1"},
		{create("day:* --mode ordered --sections 4"), "day:*"},
		{create("a --mode ordered --lease 999ms"), "--lease"},
		{create("a --mode ordered --lease 61s"), "--lease"},
		{create("a --lease 3s"), "--lease"},
		{create("a --mode ordered --hold 1h"), "--hold"},
		{create("a --mode ordered --salt 4"), "--salt"},
		{create("a --mode ordered --scatter 20"), "--scatter"},
		{create("a --mode orderly"), "--mode"},
		{[]string{"seq", "set", "ticks", "--mode", "strict"}, "--mode"},
		{[]string{"seq", "set", "ticks", "--lease", "9s"}, "--lease"},
		{[]string{"seq", "set", "ticks", "--sections", "9"}, "--sections"},
		{[]string{"seq", "set", "ticks", "--hold", "9s"}, "--hold"},
		{[]string{"seq", "set", "msg:*", "--sections", "9"}, "--sections"},
		{[]string{"seq", "delete", "msg:*0", "--confirm", "delete sequence msg:*0"}, "must not contain '*'"},
	} {
		r := s.Command(row.args...)
		if text := r.Stdout + r.Stderr; r.Code == 0 || !strings.Contains(text, row.want) ||
			strings.Count(text, "\n") > 3 {
			t.Errorf("%q ends with %d, want an error about %s:\n%s", row.args, r.Code, row.want, text)
		}
	}
	for request, begin := range map[string]string{
		"RANGE msg:* 5": "-ERR ", "NEXT msg:*": "-ERR ", "NEXT msg:": "-ERR ", "NEXT msg:*1": "-ERR ",
		"INCR msg:*1": "-ERR ",
		"SEQ msg:*9":  "-ERR ", "NEXT ticks order-4711": "-ERR reason=wrong-mode ", "NEXT msg:bob 0": "-ERR ",
		"PASS ticks -1 default id 1 -": "-ERR ", "PASS msg:* 1 default id 1 -": "-ERR ", "PASS ticks 1": "-ERR usage",
		"PASS ticks 1 default id 1 -": "-WRONGNODE reason=not-owner ",
		"PASS ticks 1 other id 1 -":   "-WRONGNODE reason=other-cluster cluster=default cluster_uuid=",
	} {
		var line string
		var err error
		n.Until("ZooKeeper answers", func() bool {
			line, err = n.Ask(request)
			return err == nil || !strings.HasPrefix(err.Error(), "-NOTREADY ")
		})
		if err == nil || !strings.HasPrefix(err.Error(), begin) {
			t.Errorf("%s is answered with %q %v, want %s", request, line, err, begin)
		}
	}
	for _, q := range []harness.Sequence{ticks, alice} {
		last := q.Highest()
		if v, err := q.One(n); err != nil || v != last+1 {
			t.Errorf("after %d of %s comes %d: %v", last, q.Name, v, err)
		}
	}
}

// A client's rights are those of its token at the node that it asks. The node passes requests on with a token of its
// own, the first one of its file. SIGHUP makes a node read the file again. No token appears in a log.
func TestRightsCountAtTheNodeThatIsAsked(t *testing.T) {
	t.Parallel()
	const all, few = "all-5a1c9e77b2d04f38", "few-0d94b6ce1f7a4e25"
	file := filepath.Join(t.TempDir(), "tokens")
	write := func(tokens string) {
		if err := os.WriteFile(file, []byte(tokens), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(all + "\n" + few + "  next=msg:a*\n")
	s := harness.NewSite(t, zktest.Chroot(t, zktest.Shared(t)), "--token-file", file, "--log-level", "trace")
	nodes := []*harness.Node{s.Started(), s.Started()}
	ask := func(n *harness.Node, token, request string) (string, error) {
		c, err := n.Dial()
		if err != nil {
			return "", err
		}
		defer c.Close()
		if line, err := c.Ask("AUTH " + token); err != nil {
			return line, err
		}
		return c.Ask(request)
	}
	for _, n := range nodes {
		n.Until("ready", func() bool { _, err := ask(n, all, "READY"); return err == nil })
	}
	s.Sequence("ticks", "--mode", "ordered")
	s.Sequence("msg:*", "--mode", "ordered", "--sections", "4")
	for _, n := range nodes { // one of them is not the owner
		for _, row := range []struct {
			token, request string
			allowed        bool
		}{
			{all, "NEXT ticks", true}, {all, "NEXT msg:bob", true}, {few, "NEXT msg:alice", true},
			{few, "NEXT ticks", false}, {few, "RANGE msg:bob 3", false}, {few, "PASS ticks 1 default id 1 -", false},
			{few, "SEQ ticks", false},
		} {
			var line string
			var err error
			if row.allowed {
				n.Until(row.request, func() bool { line, err = ask(n, row.token, row.request); return err == nil })
			} else if line, err = ask(n, row.token, row.request); err == nil ||
				!strings.HasPrefix(err.Error(), "-NOPERM ") {
				t.Errorf("%s: %s with %s: %q %v", n.Name, row.request, row.token, line, err)
			}
		}
	}
	write(all + "\n")
	for _, n := range nodes {
		n.Proc.Signal(syscall.SIGHUP)
		n.Until("the token that was removed is out", func() bool {
			_, err := ask(n, few, "READY")
			return err != nil && strings.HasPrefix(err.Error(), "-WRONGPASS ")
		})
		n.Stop()
		if log := n.Proc.Log(); strings.Contains(log, all) || strings.Contains(log, few) {
			t.Errorf("%s has a token in its log", n.Name)
		}
	}
}
