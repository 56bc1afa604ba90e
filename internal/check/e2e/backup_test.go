package e2e

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
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
	s.sequences()
	s.command("seq", "create", "order").wants(t, 0, "created sequence order")
	s.command("seq", "create", "invoice", "--mode", "strict").wants(t, 0, "created sequence invoice")
	order, invoice := &values{t: t, seen: map[int64]bool{}}, &values{t: t, seen: map[int64]bool{}}
	askBoth := func(nodes ...*node) {
		for _, n := range nodes {
			n.takes("order", 300, order)
			n.takes("invoice", 20, invoice)
		}
	}
	askBoth(a, b)

	backup := zk.Backup(t, 1)

	younger := s.startedTogether(2)
	c, d := younger[0], younger[1]
	loads = append(loads, c.clients(1))
	s.command("seq", "create", "late").wants(t, 0, "created sequence late")
	late := &values{t: t, seen: map[int64]bool{}}
	c.takes("late", 50, late)
	askBoth(a, b, c, d)
	stopped := d.identity()
	d.get(100)
	d.stop()
	before := map[*node]identity{a: a.identity(), b: b.identity(), c: c.identity()}

	stopOrders := order.under(t, a, "order")
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
	stopOrders()

	s.recovers("invoice", a, b, c, d)
	c.takes("late", 50, late)
	askBoth(a, b, c, d)
	for _, l := range loads {
		l.progress()
		l.flawless()
	}
}

// takes asks a node for count values of a sequence. It repeats refused requests.
func (n *node) takes(name string, count int, all *values) {
	n.site.t.Helper()
	for range count {
		n.until("it gives a value of "+name, func() bool {
			v, ok := n.next(name)
			if ok {
				all.add(v)
			}
			return ok
		})
	}
}

// under asks a node for values of a sequence until the returned function is called. Refusals
// are allowed.
func (s *values) under(t testing.TB, n *node, name string) (stop func()) {
	ended := make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() {
		pace := time.NewTicker(5 * time.Millisecond)
		defer pace.Stop()
		for {
			select {
			case <-ended:
				return
			case <-pace.C:
				if v, ok := n.next(name); ok {
					s.add(v)
				}
			}
		}
	})
	return sync.OnceFunc(func() { close(ended); asking.Wait() })
}

// recovers lets a frozen strict sequence go on, with the words that `flaked seq recover` asks for.
func (s *site) recovers(name string, nodes ...*node) { s.t.Helper(); s.recoversAt(name, 0, nodes...) }

// recoversAt is recovers with a next value, or 0 for the one that the command proposes.
func (s *site) recoversAt(name string, next int64, nodes ...*node) {
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
