package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/faultdisk"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// counter is one client of one sequence of one node.
type counter struct {
	*values
	node *node
	last int64 // value
}

// newCounter creates a sequence, and takes its first value from the node.
func (n *node) newCounter(name string, flags ...string) *counter {
	n.site.t.Helper()
	k := &counter{values: n.site.sequence(name, flags...), node: n}
	n.until("a value of "+name, func() bool { return k.one() == nil })
	return k
}

// exchange sends count requests for one value each, and returns how many were answered. It fails the test if the values
// do not ascend.
func (k *counter) exchange(c *client, count int) (got int, err error) {
	err = c.send(strings.Repeat("NEXT "+k.name+"\n", count))
	for i := 0; i < count && (err == nil || isRefusal(err)); i++ {
		var line string
		if line, err = c.line(); err != nil {
			continue
		}
		v, bad := strconv.ParseInt(line, 10, 64)
		if k.add(v); bad != nil || v <= k.last {
			k.t.Errorf("%s: %q of %s after %d", k.node.name, line, k.name, k.last)
		}
		k.last, got = v, got+1
	}
	return got, err
}

// one takes a value, on a new connection.
func (k *counter) one() error {
	c := &client{node: k.node, timeout: callTimeout}
	defer c.close()
	_, err := k.exchange(c, 1)
	return err
}

// take takes count values, and sends so many requests at once. It repeats those that are refused, because heartbeats
// have gaps on a busy machine.
func (k *counter) take(count, atOnce int) {
	k.t.Helper()
	c := &client{node: k.node, timeout: callTimeout}
	defer c.close()
	k.node.until("so many values of "+k.name, func() bool {
		for got := 1; count > 0 && got > 0; count -= got {
			var err error
			if got, err = k.exchange(c, atOnce); err != nil && !isRefusal(err) {
				k.t.Fatalf("%s: NEXT %s: %v", k.node.name, k.name, err)
			}
		}
		return count <= 0
	})
}

// first waits for the first value of a process, and returns for how long. It fails the test if the value is not from low
// to high.
func (k *counter) first(low, high int64) time.Duration {
	k.t.Helper()
	began := time.Now()
	k.node.until("the first value of "+k.name, func() bool { return k.one() == nil })
	took := time.Since(began)
	k.t.Logf("%s: %d of %s, expected %d to %d, after %s", k.node.name, k.last, k.name, low, high, took)
	if k.last < low || k.last > high {
		k.t.Errorf("%s: the first value of %s is %d, not one from %d to %d", k.node.name, k.name, k.last, low, high)
	}
	return took
}

// firstValue is the time after READY in which a node that was restarted issues its first value.
const firstValue = 1500 * time.Millisecond

// slowly asks for a value of each sequence every 0.8 s.
func slowly(t testing.TB, all ...*counter) {
	for range 4 {
		for _, k := range all {
			k.take(1, 1)
		}
		pass(t.Context(), 800*time.Millisecond)
	}
}

// A node that ends and starts again goes on with the values that it held: after kill -9 with a small gap, and after
// SIGTERM with none. So it does while ZooKeeper stands still.
func TestRestartedNodeGoesOnWithItsValues(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(t testing.TB, order, ticket *counter) (most int64){
		"used slowly": func(t testing.TB, order, ticket *counter) int64 {
			ticket.take(100, 1)
			slowly(t, order, ticket)
			return few
		},
		"a burst": func(_ testing.TB, order, _ *counter) (issued int64) {
			for began := time.Now(); time.Since(began) < time.Second; issued += 2000 {
				order.take(2000, 100)
			}
			pass(order.t.Context(), 300*time.Millisecond) // a block that was just taken may not be on the disk
			return issued * 3 / 2
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zk := zktest.Single(t)
			n := newSite(t, zk.Addr()).started().ready()
			order, ticket, strict := n.newCounter("order"), n.newCounter("ticket"), n.newCounter("s", "--mode", "strict")
			for life := range 4 {
				away, clean := life >= 2, life%2 == 1
				t.Logf("clean stop: %v, ZooKeeper away: %v", clean, away)
				most := [2]int64{use(t, order, ticket), few}
				if away {
					// A burst may use up all that is below the bound, and without ZooKeeper there is nothing else. After
					// a quiet second the bound is lower.
					pass(t.Context(), 2500*time.Millisecond)
					zk.Freeze(0)
				}
				if clean {
					n.stop()
					most = [2]int64{}
				} else {
					n.kill()
				}
				n.start().ready()
				took := order.first(order.last+1, order.last+1+most[0])
				took += ticket.first(ticket.last+1, ticket.last+1+most[1])
				if took > 2*firstValue { // other tests run beside this one
					t.Errorf("the first values come %s after READY", took)
				}
				if away {
					zk.Thaw(0)
				}
				n.until("it takes values", func() bool { return strict.one() == nil })
			}
		})
	}
}

// few is the most values that are missing after kill -9 if a node issues about one a second.
const few = 3

// A node is killed, or stopped, at 18 random moments, while it and another node issue values.
func TestNoValueTwiceOverManyKills(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--reserve", "100ms")
	n, other := s.node(), s.started()
	n.listen = fmt.Sprintf("127.0.0.1:%d", zktest.Port(t)) // clients go on over restarts
	n.start().ready()
	other.ready()
	var loads []*load
	for name, count := range map[string]int{"a": 1, "b": 20, "c": -100, "d": -7} {
		v := s.sequence(name)
		loads = append(loads, v.under(n, count), v.under(n, count), v.under(other, count))
		loads[len(loads)-1].progress()
	}
	for i := range 18 {
		end := n.kill // perhaps before it is ready
		if i%2 == 1 {
			loads[3*rand.IntN(4)].progress()
			end = n.stop
		}
		pass(t.Context(), rand.N(400*time.Millisecond))
		end()
		n.start()
	}
	for _, l := range loads {
		l.progress()
		l.end()
		t.Logf("%s: %d values, longest without %s", l.node.name, l.answers(), l.gap)
	}
}

// next returns the first value of the sequence that no node has taken.
func (k *counter) next() int64 {
	k.t.Helper()
	var doc struct {
		Next int64 `json:"next,string"`
	}
	r := k.node.site.command("seq", "show", k.name, "-o", "json")
	if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil || doc.Next <= 1 {
		k.t.Fatalf("seq show %s: %v: %s%s", k.name, err, r.stdout, r.stderr)
	}
	return doc.Next
}

func (n *node) journal() string { return filepath.Join(n.dir, "sequences.journal") }

// What happens while a node is down, and the range of the first value that its next process may issue.
func TestNodeReturnsToOtherValues(t *testing.T) {
	t.Parallel()
	const release, far = "--release-on-exit", 1 << 40
	goesOn := func(k *counter, _ []byte) (low, high int64) { return k.last + 1, k.last + 1 + few }
	for name, row := range map[string]struct {
		flag string
		down func(k *counter, journal []byte) (low, high int64)
	}{
		"nothing": {"", goesOn},
		"the name is created again": {"", func(k *counter, _ []byte) (int64, int64) {
			was := k.next()
			k.node.site.command("seq", "delete", k.name, "--confirm", "delete sequence "+k.name).wants(k.t, 0, k.name)
			k.node.site.sequence(k.name)
			return was, k.next()
		}},
		"the next value is raised": {"", func(k *counter, _ []byte) (int64, int64) {
			k.node.site.command("seq", "set", k.name, "--next", "5000000", "--confirm",
				"skip values of "+k.name+" below 5000000").wants(k.t, 0, k.name)
			return 5000000, 5000000
		}},
		"the directory is copied": {"", func(k *counter, journal []byte) (int64, int64) {
			k.node.copied(k.values)
			return goesOn(k, journal)
		}},
		"the journal is put back": {"", func(k *counter, journal []byte) (int64, int64) {
			if err := os.WriteFile(k.node.journal(), journal, 0o600); err != nil {
				k.t.Fatal(err)
			}
			return k.next(), far
		}},
		"the journal is lost": {"", func(k *counter, _ []byte) (int64, int64) {
			if err := os.Remove(k.node.journal()); err != nil {
				k.t.Fatal(err)
			}
			return k.next(), far
		}},
		"nothing, after a release": {release, func(k *counter, _ []byte) (int64, int64) {
			if _, err := os.Stat(k.node.journal()); !os.IsNotExist(err) {
				k.t.Errorf("a node that has released its worker leaves a journal: %v", err)
			}
			if strings.Contains(k.node.proc.log(), "not all unused values of this node were given back") {
				return k.last + 1, far // the machine is busy, and heartbeats had a gap
			}
			return k.last + 1, k.last + 1
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, end := newSite(t, zktest.Chroot(t, zktest.Shared(t))), (*node).kill
			if row.flag == release {
				s.flags, end = append(s.flags, release), (*node).stop
			}
			n := s.started().ready()
			k := n.newCounter("order")
			k.take(20, 1)
			journal, err := os.ReadFile(n.journal())
			if err != nil {
				t.Fatal(err)
			}
			k.take(200, 1)
			slowly(t, k) // the state file is written in between
			end(n)
			low, high := row.down(k, journal)
			n.start()
			k.first(low, high) // before it is ready, perhaps
			k.from(n, 500)
		})
	}
}

// copied starts another node on a copy of the directory of a node that has ended.
func (n *node) copied(v *values) {
	twin := n.site.node()
	if err := errors.Join(os.CopyFS(twin.dir, os.DirFS(n.dir)), os.Chmod(twin.dir, 0o700)); err != nil {
		v.t.Fatal(err)
	}
	l := v.under(twin.start(), 1)
	v.t.Cleanup(func() { l.progress(); l.end() })
}

// The disk takes no journal. Values are issued while it is full, and none comes twice after a kill.
func TestNoValueTwiceWithoutAJournal(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		fail, mend func(*faultdisk.Disk)
		serves     int64 // values, at least
	}{
		"full":      {(*faultdisk.Disk).Fill, (*faultdisk.Disk).Free, 1000},
		"read-only": {(*faultdisk.Disk).ReadOnly, (*faultdisk.Disk).ReadWrite, 0},
		"stalled":   {(*faultdisk.Disk).Freeze, (*faultdisk.Disk).Thaw, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := faultdisk.New(t)
			n := newSite(t, zktest.Chroot(t, zktest.Shared(t))).node()
			n.dir = filepath.Join(disk.Dir(), "state")
			k := n.start().ready().newCounter("order")
			k.from(n, 300)
			row.fail(disk)
			k.from(n, row.serves)
			k.during(n, 3*time.Second, 1)
			if row.serves > 0 { // it starts while the disk is full, too
				n.kill()
				n.start().ready()
				k.from(n, row.serves)
			}
			n.proc.signal(syscall.SIGKILL)
			row.mend(disk) // a process that waits for the disk ends only then
			n.kill()
			n.start().ready()
			k.from(n, 300)
		})
	}
}
