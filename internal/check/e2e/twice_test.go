package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/faultnet"
	"github.com/flaked/flaked/internal/testkit/ownclock"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// These tests replay ways by which earlier versions issued IDs or values twice after
// ZooKeeper had lost data. The checks are those of history and of values: nothing comes twice.

// burst asks the node for IDs in large batches, for a time. A refusal ends nothing.
func (n *node) burst(d time.Duration) {
	l := n.newLoad()
	l.add(8*time.Millisecond, callTimeout, func(c *client, _ int) (int, error) { return c.counted("GET 1000\n", 1000) })
	pass(n.site.t.Context(), d)
	l.end()
}

// forgotten is a cluster whose backup does not have the worker of one of its two nodes.
type forgotten struct {
	*site
	older, younger     *node // only older's worker is in the backup
	toOlder, toYounger *faultnet.Link
	before             map[*node]identity
	load               *load // of younger
	confirm            time.Duration
}

// newForgotten starts two nodes and calls backup in between. In the backup, the record of the cluster is
// ten confirming times old and more. Then both nodes are cut off, and the younger one serves.
func newForgotten(t *testing.T, zk *zktest.Ensemble, confirm time.Duration, backup func(*forgotten)) *forgotten {
	t.Helper()
	f := &forgotten{confirm: confirm, site: newSite(t, zk.Addr(), "--reserve", "3s", "--confirm-time",
		confirm.String()).made("--confirm-time", confirm.String()), before: map[*node]identity{}}
	made := time.Now()
	f.toOlder, f.toYounger = newNetwork(t, zk.Addrs()[0]), newNetwork(t, zk.Addrs()[0])
	f.older, f.younger = f.node(), f.node()
	f.older.connect, f.younger.connect = f.toOlder.Addr(), f.toYounger.Addr()
	f.older.start().ready().get(100)
	eventually(t, "the cluster is ten confirming times old",
		func() bool { return time.Since(made) > 10*confirm+time.Second })
	backup(f)
	f.reported(f.older) // so that older data is older than this node's last heartbeat
	f.younger.start().ready().get(100)
	f.before[f.older], f.before[f.younger] = f.older.identity(), f.younger.identity()
	f.reported(f.older, f.younger)
	f.toOlder.Cut()
	f.toYounger.Cut()
	f.load = f.younger.clients(1)
	return f
}

// newcomer starts a new node after the loss, while both holders are cut off. It must wait for the
// confirming time. In this time the older holder comes back, and freezes registration.
func (f *forgotten) newcomer(c *node) {
	t := f.t
	t.Helper()
	c.start()
	var id identity
	c.until("it has a worker", func() bool {
		var err error
		id, err = c.tryIdentity()
		return err == nil && id.worker >= 0
	})
	if within(f.confirm/4, c.isReady) {
		t.Errorf("the new node serves as worker %d at once", id.worker)
		c.burst(time.Second) // while the load of younger goes on: the judge finds what comes twice
		return
	}
	c.proc.freeze() // so that a slow machine does not decide
	f.toOlder.Heal()
	records := f.records()
	eventually(t, "registration is frozen", func() bool { c, ok := records.cluster(); return ok && c.FrozenUntil != 0 })
	c.proc.thaw()
	c.fails(1, `registration is frozen until`)
	f.toYounger.Heal()
	for n, was := range f.before {
		n.until("its record is back", func() bool { return records.slot(was.worker).Node == was.uuid })
		n.ready().get(100)
		if now := n.identity(); now.worker != was.worker || now.uuid != was.uuid {
			t.Errorf("%s is %+v, and was %+v", n.name, now, was)
		}
	}
	f.load.flawless()
}

// startAtTransaction gives a server without data a number of its last transaction. A snapshot has
// the number in the name of its file.
func startAtTransaction(t *testing.T, zk *zktest.Ensemble, zxid int64) {
	t.Helper()
	dir := zk.Snapshot(t)
	files, err := filepath.Glob(filepath.Join(dir, "zk0", "snapshot.*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%q %v", files, err)
	}
	if err := os.Rename(files[len(files)-1], filepath.Join(dir, "zk0", fmt.Sprintf("snapshot.%x", zxid))); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "zk0", "log.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range logs {
		if err := os.Remove(log); err != nil {
			t.Fatal(err)
		}
	}
	zk.Restore(t, dir)
}

// A single server is past 2^32 transactions. The upper half of their numbers, which looks like a
// leader's epoch, is the same before and after older data is put back.
func TestNewNodeWaitsAfter32BitsOfTransactions(t *testing.T) {
	t.Parallel()
	zk := zktest.Single(t)
	startAtTransaction(t, zk, 1<<32+1000)
	var backup string
	f := newForgotten(t, zk, 2*time.Second, func(*forgotten) { backup = zk.Backup(t, 0) })
	zk.Restore(t, backup)
	if stat, ok := f.records().read("/cluster", nil); !ok || stat.Mzxid>>32 != 1 {
		t.Fatalf("%+v", stat)
	}
	f.newcomer(f.node())
}

// The clock of ZooKeeper's leader is 4.2 s behind, and later 4.2 s ahead. By this clock, the ticket of a
// node that has ended soon after older data was put back is ten confirming times old.
func TestNewNodeWaitsThoughTheLeadersClockLeaps(t *testing.T) {
	nightly(t)
	t.Parallel()
	zk, clock := zktest.ThreeOnClock(t)
	clock.Set(-4200 * time.Millisecond)
	var backup string
	f := newForgotten(t, zk, 800*time.Millisecond, func(f *forgotten) {
		backup = zk.Backup(t, 0)
		// so that both the younger node and the new one begin to look at worker 2
		f.records().remove(f.records().ticket())
	})
	zk.Restore(t, backup)
	f.records().ticket()
	clock.Set(4200 * time.Millisecond)
	if ahead := f.records().leaderAhead(); ahead < 4*time.Second {
		t.Fatalf("the leader's clock is %s ahead", ahead)
	}
	f.newcomer(f.node())
}

// ZooKeeper 3.9 puts a snapshot back while its servers run. The leader's epoch stays.
func TestNewNodeWaitsAfterARestoreOfRunningServers(t *testing.T) {
	t.Parallel()
	zk := zktest.ThreeWithAdmin(t)
	var snapshot []byte
	f := newForgotten(t, zk, 2*time.Second, func(*forgotten) { snapshot = zk.AdminSnapshot(t, 0) })
	zk.AdminRestore(t, snapshot)
	f.newcomer(f.node())
}

// nightly skips a test that needs a machine which is not busy. `make nightly` runs it alone.
func nightly(t *testing.T) {
	t.Helper()
	if os.Getenv("FLAKED_TEST_NIGHTLY") == "" {
		t.Skip("steps clocks to the second: set FLAKED_TEST_NIGHTLY=1, and run nothing else")
	}
}

// Five nodes are connected. The clocks of four of them drift 19 s ahead, and they outvote ZooKeeper's clock. One of
// them is
// cut off, the three others end, and ZooKeeper is wiped. The fifth node, whose clock is right, freezes
// registration. Its freeze must outlast the lease of the node that is cut off.
func TestFreezeOutlastsTheLeaseOfAClockAhead(t *testing.T) {
	nightly(t)
	t.Parallel()
	const ahead = 19 * time.Second
	const layout = "time=41@1ms,worker=3,sequence=12,epoch=1288834974657"
	zk := zktest.Single(t)
	s := newSite(t, zk.Addr(), "--reserve", "2s", "--lease", "3s").laidOut(layout).made("--confirm-time", "800ms",
		"--lease", "3s", "--layout", layout)
	right := s.started().ready()
	clock := new(ownclock.Clock)
	var wrong []*node
	for range 4 {
		wrong = append(wrong, s.node().on(clock))
	}
	cut := wrong[0]
	network := cut.network()
	cut.start().ready() // first, so that the first new node gets its worker after the loss
	for _, n := range wrong[1:] {
		n.start()
	}
	for _, n := range wrong {
		n.ready().voters(4)
	}
	w, records := cut.worker(), s.records()
	for clock.Offset() < ahead {
		clock.Step(900 * time.Millisecond) // more in one step would need ZooKeeper's agreement
		for _, n := range wrong {
			slot := n.worker()
			n.until("its lease is by its clock", func() bool {
				return time.Until(time.UnixMilli(records.slot(slot).LeaseUntil)) > clock.Offset()+2300*time.Millisecond
			})
		}
	}
	from := s.ids.len()
	network.cut()
	for _, n := range wrong[1:] {
		n.kill()
	}
	cut.burst(4 * time.Second) // to the end of its lease
	_, last := s.ids.span(w, from, s.ids.len())
	if until := time.Until(time.UnixMilli(last)); until < ahead-5*time.Second {
		t.Fatalf("the last ID of the node that is cut off is %s ahead of the clock", until)
	}
	right.ready()
	zk.Wipe(t)
	eventually(t, "registration is frozen", func() bool { c, ok := records.cluster(); return ok && c.FrozenUntil != 0 })
	for newcomer := s.node(); time.Now().UnixMilli() < last; {
		newcomer.start()
		eventually(t, "it has ended or is ready", func() bool { return !newcomer.proc.running() || newcomer.isReady() })
		if newcomer.proc.running() {
			t.Logf("a new node is worker %d, %s before the last ID of worker %d", newcomer.worker(),
				time.Until(time.UnixMilli(last)), w)
			newcomer.burst(time.Until(time.UnixMilli(last)))
			newcomer = s.node() // its worker may have been another one
		}
	}
	right.ready().get(100)
}
