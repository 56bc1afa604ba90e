package e2e

import (
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
	s := newSite(t, zk.Addr(), "--confirm-time", "2s", "--reserve", "3s").made("--confirm-time", "2s")
	nodes := s.startedTogether(2)
	running, killed := nodes[0], nodes[1]
	load := running.clients(2)
	order, invoice, again := s.sequence("order"), s.sequence("invoice", "--mode", "strict"), s.sequence("again")
	ask := func(all ...sequence) {
		for _, q := range all {
			for _, n := range nodes {
				q.from(n, 100)
			}
		}
	}
	ask(order, invoice, again)
	backup := zk.Backup(t, 1)

	young := s.started().ready()
	nodes = append(nodes, young)
	late := s.sequence("late")
	s.command("seq", "delete", "again", "--confirm", "delete sequence again").wants(t, 0, "again")
	s.sequence("again") // its values go on
	ask(order, invoice, again, late)
	before := map[*node]identity{}
	for _, n := range nodes {
		before[n] = n.identity()
	}
	young.stop()
	killed.kill()

	orders := order.under(running, 1)
	zk.Restore(t, backup)
	s.command("cluster", "freeze").wants(t, 0, "cluster default") // a node may have frozen it before
	s.started().fails(1, `registration is frozen until`)
	killed.start()
	young.start()
	records := s.records()
	for n, was := range before {
		n.ready().get(100)
		if now := n.identity(); now.worker != was.worker || now.uuid != was.uuid {
			t.Errorf("%s has %+v, and had %+v", n.name, now, was)
		}
		n.until("its record is back", func() bool { return records.slot(was.worker).Node == was.uuid })
	}
	orders.end()
	ask(order, again, late)
	s.recovers(invoice, nodes...)
	ask(invoice)
	load.flawless()
}

// recovers lets a frozen strict sequence go on, with the words that `flaked seq recover` asks for. The nodes may know
// fewer values than programs do, because they were killed.
func (s *site) recovers(q sequence, nodes ...*node) {
	s.t.Helper()
	next := q.highest() + 1
	args := []string{"seq", "recover", q.name, "--next", strconv.FormatInt(next, 10)}
	for _, n := range nodes {
		_, addr, err := n.address()
		if err != nil {
			s.t.Fatal(err)
		}
		args = append(args, "--addr", addr)
	}
	words := regexp.MustCompile(q.name + ` is unused from \d+ on in incarnation \d+[^']*`)
	var found string
	eventually(s.t, "seq recover asks for words", func() bool {
		r := s.command(args...)
		found = words.FindString(r.stdout + r.stderr)
		return found != "" && !strings.Contains(r.stdout, "did not answer")
	})
	s.values.jump(next)
	s.command(append(args, "--confirm", found)...).wants(s.t, 0, q.name)
}

// ZooKeeper is wiped while a node is cut off. Only the other node knows where to ask it, also when that has started
// again.
func TestAForgottenNodeIsHeard(t *testing.T) {
	t.Parallel()
	zk := zktest.Single(t)
	s := newSite(t, zk.Addr(), "--confirm-time", "2s").made("--confirm-time", "2s")
	nodes := s.onPorts(2)
	a, b := nodes[0].start().ready(), nodes[1]
	invoice := s.sequence("invoice", "--mode", "strict")
	invoice.from(a, 2)
	links := b.network()
	id := b.start().ready().identity()
	invoice.from(b, 50)
	met := func() bool {
		doc, err := a.ask("STATUS")
		return err == nil && strings.Contains(doc, `"peers":[{"node":"`+id.uuid+`"`)
	}
	a.until("it has met the other node", met)
	links.cut()
	zk.Wipe(t)
	a.until("it has put its record back", func() bool { return strings.Contains(a.proc.log(), "restored the record") })
	a.stop()
	if a.start().ready(); !met() {
		t.Error("it has forgotten the other node")
	}
	s.command("cluster", "thaw").wants(t, 1, b.name+" "+b.listen+" (worker "+strconv.Itoa(id.worker)+")")
	known := invoice.highest()
	words := regexp.MustCompile(`invoice is unused from (\d+) on in incarnation \d+[^']*`)
	var found []string
	eventually(t, "seq recover asks for words", func() bool {
		r := s.command("seq", "recover", "invoice")
		found = words.FindStringSubmatch(r.stdout + r.stderr)
		return found != nil
	})
	next, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil || next <= known {
		t.Errorf("it goes on at %d, and %d was issued, %v", next, known, err)
	}
	s.values.jump(next)
	s.command("seq", "recover", "invoice", "--confirm", found[0]).wants(t, 0, "changed sequence invoice")
	invoice.from(a, 20)
}
