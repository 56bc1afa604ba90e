package e2e

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

// The steps of docs/operate.md under load: a backup is taken from a running server, nodes come, go
// and restart, sequences advance, and the backup is put back on all three servers.
func TestRestoredBackupRepeatsNothing(t *testing.T) {
	t.Parallel()
	zk := zktest.Three(t)
	s := newSite(t, zk.Addr(), "--confirm-time", "2s", "--reserve", "3s").made("--confirm-time", "2s")
	a, b := s.started(), s.started()
	loads := []*load{a.ready().clients(2), b.ready().clients(1)}
	order, invoice := s.sequence("order"), s.sequence("invoice", "--mode", "strict")
	askBoth := func(nodes ...*node) {
		for _, n := range nodes {
			order.from(n, 300)
			invoice.from(n, 20)
		}
	}
	askBoth(a, b)

	backup := zk.Backup(t, 1)

	younger := s.startedTogether(2)
	c, d := younger[0], younger[1]
	loads = append(loads, c.clients(1))
	late := s.sequence("late")
	late.from(c, 50)
	askBoth(a, b, c, d)
	stopped := d.identity()
	d.get(100)
	d.stop()
	before := map[*node]identity{a: a.identity(), b: b.identity(), c: c.identity()}

	orders := order.under(a, 1)
	zk.Restore(t, backup)
	s.command("cluster", "freeze").wants(t, 0, "cluster default") // a node may have frozen it before
	s.started().fails(1, `registration is frozen until`)
	records := s.records()
	for n, was := range before {
		n.until("its record is back", func() bool { return records.slot(was.worker).Node == was.uuid })
	}
	d.start().ready().get(100)
	if now := d.identity(); now.worker != stopped.worker || now.uuid != stopped.uuid {
		t.Errorf("the stopped node has %+v, and had %+v", now, stopped)
	}
	orders.end()

	s.recovers("invoice", 0, a, b, c, d)
	late.from(c, 50)
	askBoth(a, b, c, d)
	for _, l := range loads {
		l.progress()
		l.flawless()
	}
}

// recovers lets a frozen strict sequence go on, with the words that `flaked seq recover` asks for. next is 0 for the
// value that the command proposes.
func (s *site) recovers(name string, next int64, nodes ...*node) {
	s.t.Helper()
	args := []string{"seq", "recover", name}
	if next > 0 {
		args = append(args, "--next", strconv.FormatInt(next, 10))
	}
	for _, n := range nodes {
		_, addr, err := n.address()
		if err != nil {
			s.t.Fatal(err)
		}
		args = append(args, "--addr", addr)
	}
	words := regexp.MustCompile(name + ` is unused from (\d+) on in incarnation \d+`)
	var found []string
	eventually(s.t, "seq recover asks for words", func() bool {
		r := s.command(args...)
		found = words.FindStringSubmatch(r.stdout + r.stderr)
		return found != nil && !strings.Contains(r.stdout, "did not answer")
	})
	if next == 0 {
		args = append(args, "--next", found[1])
	}
	s.command(append(args, "--confirm", found[0])...).wants(s.t, 0, name)
}

// All nodes are killed, older data is put back, and the nodes start with their directories. In the
// older data, one sequence is in its first life, which has ended since.
func TestKilledNodesStartIntoOlderData(t *testing.T) {
	t.Parallel()
	zk := zktest.Single(t)
	s := newSite(t, zk.Addr(), "--reserve", "1s", "--confirm-time", "2s").made("--confirm-time", "2s")
	nodes := s.startedTogether(2)
	all := map[string]*values{
		"order": s.sequence("order"), "invoice": s.sequence("invoice", "--mode", "strict"),
		"again": s.sequence("again"),
	}
	ask := func(count int64) {
		for _, values := range all {
			for _, n := range nodes {
				values.from(n, count)
			}
		}
	}
	ask(10)
	backup := zk.Backup(t, 0)
	ask(100)
	s.command("seq", "delete", "again", "--confirm", "delete sequence again").wants(t, 0, "again")
	s.sequence("again") // its values go on in all
	ask(100)
	for _, n := range nodes {
		n.kill()
	}
	zk.Restore(t, backup)
	for _, n := range nodes {
		n.start()
	}
	for _, n := range nodes {
		n.ready()
	}
	for _, n := range nodes {
		all["order"].from(n, 100)
		all["again"].from(n, 100)
		all["invoice"].during(n, time.Second, 1) // it may be frozen
	}
	// The nodes know fewer values than programs do, because they were killed.
	highest := slices.Max(slices.Collect(maps.Keys(all["invoice"].seen)))
	s.recovers("invoice", highest+1, nodes...)
	for _, n := range nodes {
		all["invoice"].from(n, 100)
	}
}
