package e2e

import (
	"github.com/flaked/flaked/internal/testkit/harness"

	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// The steps of docs/operate.md under load: a backup is taken from a running server, nodes come, go and restart,
// sequences advance, and the backup is put back on all three servers. One node runs on. Two others, one of them younger
// than the backup, start into the older data.
func TestRestoredBackupRepeatsNothing(t *testing.T) {
	t.Parallel()
	zk := zktest.Three(t)
	s := harness.NewSite(t, zk.Addr(), "--confirm-time", "2s", "--reserve", "3s").Made("--confirm-time", "2s")
	nodes := s.StartedTogether(2)
	running, killed := nodes[0], nodes[1]
	load := running.Clients(2)
	order, invoice, again := s.Sequence("order"), s.Sequence("invoice", "--mode", "strict"), s.Sequence("again")
	ask := func(all ...harness.Sequence) {
		for _, q := range all {
			for _, n := range nodes {
				q.From(n, 100)
			}
		}
	}
	ask(order, invoice, again)
	backup := zk.Backup(t, 1)

	young := s.Started().Ready()
	nodes = append(nodes, young)
	late := s.Sequence("late")
	s.Command("seq", "delete", "again", "--confirm", "delete sequence again").Wants(t, 0, "again")
	s.Sequence("again") // its values go on
	ask(order, invoice, again, late)
	before := map[*harness.Node]harness.Identity{}
	for _, n := range nodes {
		before[n] = n.Identity()
	}
	young.Stop()
	killed.Kill()

	orders := order.Under(running, 1)
	zk.Restore(t, backup)
	s.Command("cluster", "freeze").Wants(t, 0, "cluster default") // a node may have frozen it before
	s.Started().Fails(1, `registration is frozen until`)
	killed.Start()
	young.Start()
	records := s.Records()
	for n, was := range before {
		n.Ready().Get(100)
		if now := n.Identity(); now.Worker != was.Worker || now.UUID != was.UUID {
			t.Errorf("%s has %+v, and had %+v", n.Name, now, was)
		}
		n.Until("its record is back", func() bool { return records.Slot(was.Worker).Node == was.UUID })
	}
	orders.End()
	ask(order, again, late)
	recovers(s, invoice, nodes...)
	ask(invoice)
	load.Flawless()
}

// recovers lets a frozen strict sequence go on, with the words that `flaked seq recover` asks for. The nodes may know
// fewer values than programs do, because they were killed.
func recovers(s *harness.Site, q harness.Sequence, nodes ...*harness.Node) {
	s.T.Helper()
	next := q.Highest() + 1
	args := []string{"seq", "recover", q.Name, "--next", strconv.FormatInt(next, 10)}
	for _, n := range nodes {
		_, addr, err := n.Address()
		if err != nil {
			s.T.Fatal(err)
		}
		args = append(args, "--addr", addr)
	}
	words := regexp.MustCompile(q.Name + ` is unused from \d+ on in incarnation \d+[^']*`)
	var found string
	harness.Eventually(s.T, "seq recover asks for words", func() bool {
		r := s.Command(args...)
		found = words.FindString(r.Stdout + r.Stderr)
		return found != "" && !strings.Contains(r.Stdout, "did not answer")
	})
	s.Values.Jump(next)
	s.Command(append(args, "--confirm", found)...).Wants(s.T, 0, q.Name)
}

// ZooKeeper is wiped while a node is cut off. Only the other node knows where to ask it, also when that has started
// again.
func TestAForgottenNodeIsHeard(t *testing.T) {
	t.Parallel()
	zk := zktest.Single(t)
	s := harness.NewSite(t, zk.Addr(), "--confirm-time", "2s").Made("--confirm-time", "2s")
	nodes := s.OnPorts(2)
	a, b := nodes[0].Start().Ready(), nodes[1]
	invoice := s.Sequence("invoice", "--mode", "strict")
	invoice.From(a, 2)
	links := b.Network()
	id := b.Start().Ready().Identity()
	invoice.From(b, 50)
	met := func() bool {
		doc, err := a.Ask("STATUS peers")
		return err == nil && strings.Contains(doc, `"peers":[{"node":"`+id.UUID+`"`)
	}
	a.Until("it has met the other node", met)
	links.Cut()
	zk.Wipe(t)
	a.Until("it has put its record back", func() bool { return strings.Contains(a.Proc.Log(), "restored the record") })
	a.Stop()
	if a.Start().Ready(); !met() {
		t.Error("it has forgotten the other node")
	}
	s.Command("cluster", "thaw").Wants(t, 1, b.Name+" "+b.Listen+" (worker "+strconv.Itoa(id.Worker)+")")
	known := invoice.Highest()
	words := regexp.MustCompile(`invoice is unused from (\d+) on in incarnation \d+[^']*`)
	var found []string
	harness.Eventually(t, "seq recover asks for words", func() bool {
		r := s.Command("seq", "recover", "invoice")
		found = words.FindStringSubmatch(r.Stdout + r.Stderr)
		return found != nil
	})
	next, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil || next <= known {
		t.Errorf("it goes on at %d, and %d was issued, %v", next, known, err)
	}
	s.Values.Jump(next)
	s.Command("seq", "recover", "invoice", "--confirm", found[0]).Wants(t, 0, "changed sequence invoice")
	invoice.From(a, 20)
}
