package e2e

import (
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/faultnet"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// holders are nodes that hold workers while ZooKeeper loses its data. Each is in a different
// condition.
type holders struct {
	site      *site
	connected *node          // notices the loss
	cutoff    *node          // serves and cannot reach ZooKeeper
	frozen    *node          // suspended by SIGSTOP
	stopped   *node          // stopped by SIGTERM, and restarted after the loss
	killed    *node          // killed, and restarted after the loss
	younger   *node          // nil, or a node that the snapshot does not have
	network   *faultnet.Link // the link of cutoff
	before    map[*node]identity
	loads     []*load
}

// confirmTime is long enough for a busy machine. Within it a holder must make a heartbeat and
// reconnect to a ZooKeeper that has come back.
const confirmTime = 4 * time.Second

// newHolders creates a cluster with `flaked cluster init` and starts five nodes without
// --bootstrap.
func newHolders(t *testing.T, connect, direct string, cutVia string) *holders {
	t.Helper()
	// The default reserve is used, because no request may fail even on a busy machine.
	s := newSite(t, connect, "--confirm-time", confirmTime.String(), "--reserve", "3s")
	s.flags = without(s.flags, "--bootstrap")
	if r := execute(t, s.build.binary(t), "cluster", "init", "--zk", direct, "--confirm-time", confirmTime.String()); r.code != 0 {
		t.Fatalf("cluster init: exit %d\n%s", r.code, r.stderr)
	}
	o := &holders{site: s, before: map[*node]identity{}, network: newNetwork(t, cutVia)}
	o.connected, o.frozen, o.stopped, o.killed = s.started(), s.started(), s.started(), s.started()
	o.cutoff = s.node()
	_, chroot, _ := cutChroot(connect)
	o.cutoff.connect = o.network.Addr() + chroot
	o.cutoff.start()
	for _, n := range o.all() {
		n.ready().get(100)
		o.before[n] = n.identity()
	}
	return o
}

// cutChroot splits a connect string.
func cutChroot(connect string) (servers, chroot string, found bool) {
	for i := range connect {
		if connect[i] == '/' {
			return connect[:i], connect[i:], true
		}
	}
	return connect, "", false
}

func (o *holders) all() []*node {
	nodes := []*node{o.connected, o.cutoff, o.frozen, o.stopped, o.killed}
	if o.younger != nil {
		nodes = append(nodes, o.younger)
	}
	return nodes
}

// scatter brings each node into its condition. From now on, connected and cutoff must answer every
// request.
func (o *holders) scatter() {
	o.loads = append(o.loads, o.connected.clients(2))
	o.lookAway()
}

// scatterBlind is scatter, except that connected is suspended too, so that no node notices the
// loss.
func (o *holders) scatterBlind() {
	o.connected.proc.freeze()
	o.lookAway()
}

func (o *holders) lookAway() {
	o.loads = append(o.loads, o.cutoff.clients(2))
	o.network.Cut()
	o.frozen.proc.freeze()
	o.stopped.stop()
	o.killed.kill()
}

// gather brings all nodes back. It fails the test unless each has kept its worker, and unless each
// new node was refused.
func (o *holders) gather(newcomers ...*node) {
	t := o.site.t
	t.Helper()
	for _, n := range newcomers {
		n.fails(1, `registration is frozen until`)
	}
	o.stopped.start()
	o.killed.start()
	o.network.Heal()
	o.frozen.proc.thaw()
	records := o.site.records()
	for _, n := range o.all() {
		n.ready().get(100)
		before := o.before[n]
		n.until("its slot is its own in ZooKeeper again", func() bool {
			slot := records.slot(before.worker)
			return slot.Node == before.uuid && slot.Confirmed && slot.Term >= int64(before.term)
		})
		if now := n.identity(); now.worker != before.worker || now.uuid != before.uuid {
			t.Errorf("%s: %+v after the loss, %+v before", n.name, now, before)
		}
	}
	for _, l := range o.loads {
		l.flawless()
	}
	o.loads = nil
	for _, n := range o.all() {
		o.before[n] = n.identity()
	}
}

// refrozen waits until a holder has noticed the loss. The old cluster's record is back, and
// registration is frozen for at least 23 hours.
func (o *holders) refrozen(uuid string) {
	t := o.site.t
	t.Helper()
	records := o.site.records()
	eventually(t, "the cluster record put back, registration frozen", func() bool {
		c, ok := records.cluster()
		return ok && c.UUID == uuid && c.Confirmed && time.Until(time.UnixMilli(c.FrozenUntil)) > 23*time.Hour
	})
}

func (o *holders) cluster() string {
	o.site.t.Helper()
	c, ok := o.site.records().cluster()
	if !ok {
		o.site.t.Fatal("there is no cluster record")
	}
	return c.UUID
}

func TestHoldersKeepWorkersAfterAWipe(t *testing.T) {
	t.Parallel()
	zk := zktest.Single(t)
	o := newHolders(t, zk.Addr(), zk.Addr(), zk.Addr())
	uuid := o.cluster()
	o.scatter()
	zk.Wipe(t)
	o.refrozen(uuid)
	o.gather(o.site.started())
}

// An ensemble is restored from a snapshot that does not have one of the nodes, and has older
// records of the others. Then the ensemble is wiped.
func TestHoldersKeepWorkersAfterARestore(t *testing.T) {
	t.Parallel()
	zk := zktest.Three(t)
	o := newHolders(t, zk.Addr(), zk.Addr(), zk.Addrs()[1])
	uuid := o.cluster()
	snapshot := zk.Snapshot(t)
	// After this restart the node's record in the snapshot has an older term.
	before := o.before[o.connected]
	o.connected.stop()
	o.connected.start().ready()
	after := o.connected.identity()
	if after.worker != before.worker || after.term <= before.term {
		t.Fatalf("%+v after %+v", after, before)
	}
	o.before[o.connected] = after
	o.younger = o.site.started().ready()
	o.before[o.younger] = o.younger.identity()
	o.loads = append(o.loads, o.younger.clients(1))

	o.scatter()
	zk.Restore(t, snapshot)
	o.refrozen(uuid)
	o.gather(o.site.started())

	o.scatter()
	zk.Wipe(t)
	o.refrozen(uuid)
	o.gather()
}

// In a wiped ZooKeeper a new node creates a new cluster before the holders are back. The holders
// replace it by the old cluster.
func TestOldClusterReplacesANewOne(t *testing.T) {
	t.Parallel()
	zk := zktest.Single(t)
	o := newHolders(t, zk.Addr(), zk.Addr(), zk.Addr())
	uuid := o.cluster()
	o.scatterBlind()
	zk.Wipe(t)
	newcomer := o.site.started("--bootstrap")
	newcomer.state("confirming")
	if now := o.cluster(); now == uuid {
		t.Fatalf("the cluster is still %s", now)
	}
	o.connected.proc.thaw()
	o.refrozen(uuid)
	o.gather(newcomer)
	if now := o.cluster(); now != uuid {
		t.Errorf("the cluster is %s, and was %s", now, uuid)
	}
}

// A node without --bootstrap creates no cluster in an empty ZooKeeper.
func TestNodeWithoutBootstrapCreatesNoCluster(t *testing.T) {
	t.Parallel()
	connect := zktest.Chroot(t, zktest.Shared(t))
	s := newSite(t, connect)
	holder := s.started().ready()
	before := holder.identity()
	holder.get(100)
	holder.stop()
	records := s.records()
	records.remove("/")

	s.flags = without(s.flags, "--bootstrap")
	newcomer := s.started()
	newcomer.fails(1, `cluster not found.*flaked cluster init`)
	if _, ok := records.cluster(); ok {
		t.Error("a node made the cluster record without being asked to")
	}
	if _, there := records.read("/", nil); there {
		t.Error("a node that was refused has left something behind")
	}
	// With --bootstrap, a holder puts the old cluster back.
	holder.start().ready()
	if now := holder.identity(); now.worker != before.worker || now.uuid != before.uuid {
		t.Errorf("%+v after the loss, %+v before", now, before)
	}
	holder.get(100)
	holder.until("the cluster is back, and so is its slot", func() bool {
		_, ok := records.cluster()
		if !ok {
			return false
		}
		_, ok = records.read(slotPath(before.worker), nil)
		return ok
	})
	newcomer.start().fails(1, `registration is frozen until`)
}
