package node

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/testkit/memfile"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/localcache"
)

// takeOver overwrites the slot at path with the record of another holder. An operator has taken
// the slot from its holder before.
func (r *rig) takeOver(path string) {
	r.t.Helper()
	st := r.Mem.Session()
	data, _, err := st.Get(context.Background(), path)
	if err != nil {
		r.t.Fatal(err)
	}
	other, err := json.Marshal(coordinator.Slot{
		Node: "other", Term: 9, Nonce: "o", Confirmed: true, LeaseUntil: time.Now().Add(time.Hour).UnixMilli(),
		History: coordinator.History{{Node: text(data, "node"), Term: 1, Ended: coordinator.EndedTaken}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := st.Set(context.Background(), path, other, store.AnyVersion); err != nil {
		r.t.Fatal(err)
	}
}

// loaded returns what a start on the rig's disk would find.
func (r *rig) loaded() localcache.Loaded {
	r.t.Helper()
	cache, err := localcache.New(r.Disk.Clone(), localcache.Fingerprint{})
	if err != nil {
		r.t.Fatal(err)
	}
	return cache.Load()
}

// A fenced node ends before it has another slot. The next start must not resume the lost slot from the state directory.
func TestFencedSlotIsNotResumedAfterRestart(t *testing.T) {
	r := newRig(t)
	n := r.start().untilReady()
	n.until("confirmed", n.isConfirmed)
	n.session.SetFault(func(c memzk.Call) memzk.Fault {
		if c.Op == "create" && c.Path == "/tickets/n-" { // registering begins with it
			return memzk.FailBefore
		}
		return memzk.NoFault
	})
	r.takeOver("/workers/0000")
	n.until("fenced", func() bool { return strings.Contains(n.Worker(), "worker=none") })
	n.until("the local record to forget it", func() bool { return r.loaded().Status == localcache.StatusReleased })
	n.until("nothing to be confirmed", func() bool { return !n.Snapshot().Confirmed })
	n.stop()
	if s := r.loaded().Status; s != localcache.StatusReleased {
		t.Errorf("the next start finds %s", s)
	}
}

// A node confirms its worker, and cannot serve, because the disk takes no bound. Clients may have values of named
// sequences from it. So when it is fenced, it still says to which cluster it belongs.
func TestFencedNodeThatNeverServedKeepsItsCluster(t *testing.T) {
	r := newRig(t)
	n := r.start(func(cfg *Config) { cfg.Cache = full{cfg.Cache, atomic.NewInt64(1)} })
	n.until("confirmed", n.isConfirmed)
	_, uuid := n.Cluster()
	n.session.SetFault(func(c memzk.Call) memzk.Fault {
		if c.Op == "create" && c.Path == "/tickets/n-" { // registering begins with it
			return memzk.FailBefore
		}
		return memzk.NoFault
	})
	r.takeOver("/workers/0000")
	n.until("a newcomer", func() bool { return !n.isConfirmed() })
	select {
	case <-n.Began():
		t.Error("it has served")
	default:
	}
	if _, said := n.Cluster(); said != uuid || said == "" {
		t.Errorf("it says that it belongs to %q, and belonged to %q", said, uuid)
	}
}

// A machine is cloned while its node serves, and one of both is stopped after the other has written their record. No
// start resumes the worker from the state directory of the one that was stopped, even without ZooKeeper (C33).
func TestStoppedCloneIsNotResumed(t *testing.T) {
	for name, release := range map[string]bool{"stop": false, "release": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			n := r.start(func(cfg *Config) { cfg.ReleaseOnExit = release }).untilReady()
			n.until("confirmed", n.isConfirmed)
			clone := r.Mem.Session()
			var written store.Stat
			var once sync.Once
			n.session.SetFault(func(c memzk.Call) memzk.Fault {
				if n.phase() == Stopping {
					once.Do(func() {
						data, _, err := clone.Get(t.Context(), "/workers/0000")
						for range 2 { // the first could be a write of the node itself whose answer was lost
							after, err2 := clone.Set(t.Context(), "/workers/0000", data, store.AnyVersion)
							written, err = after, errors.Join(err, err2)
						}
						if err != nil {
							t.Error(err)
						}
					})
				}
				return memzk.NoFault
			})
			_ = n.stop()
			_, found, err := clone.Get(t.Context(), "/workers/0000")
			if err != nil || found.Version != written.Version {
				t.Errorf("the record has version %d, the other process has written %d, %v", found.Version,
					written.Version, err)
			}
			if s := r.loaded().Status; s != localcache.StatusReleased {
				t.Errorf("the next start finds %s", s)
			}
		})
	}
}

// A node has left a worker because its clock went back, and a clone of the node goes on with that worker. The node is
// fenced from its next worker before it has found the clone. It then ends all the same (C33).
func TestCloneOnALeftWorkerEndsAFencedNode(t *testing.T) {
	const left = "/workers/0000"
	r := newRig(t)
	r.Step(4 * time.Second)
	n := r.start().untilReady()
	n.until("confirmed", n.isConfirmed)
	n.issueFor(200 * time.Millisecond)
	before := atomic.NewString("")
	n.session.SetFault(func(c memzk.Call) memzk.Fault {
		releases := before.Swap(c.Path) == "/cluster" && c.Path == left
		if t := n.peek().tenure; releases && t != nil && t.Worker != 0 {
			return memzk.FailBefore // until the node is fenced, it cannot release the worker that it has left
		}
		return memzk.NoFault
	})
	r.Step(-4 * time.Second)
	n.until("another worker", func() bool { w := n.Snapshot().Worker; return w != nil && *w != 0 })
	clone := r.Mem.Session()
	data, _, err := clone.Get(t.Context(), left)
	for range 2 {
		_, err2 := clone.Set(t.Context(), left, data, store.AnyVersion)
		err = errors.Join(err, err2)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.takeOver(coordinator.SlotPath(*n.Snapshot().Worker))
	err = n.ended()
	if fenced, ok := errors.AsType[*coordinator.FencedError](err); !ok || !fenced.Cloned || fenced.Worker != 0 {
		t.Errorf("it has ended with %v", err)
	}
}

// A node is fenced while its clock counts as wrong, and the clock is right again by then. The
// old verdict must not make the next registration write leases of no length.
func TestFenceClearsTheClockVerdict(t *testing.T) {
	r := newRig(t)
	first := r.start().untilReady()
	first.until("confirmed", first.isConfirmed)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	r.Step(10 * time.Second)
	n := r.start(func(c *Config) { c.Store.(*memzk.Session).Partition() }).untilReady()
	n.session.Heal()
	n.until("the clock to count as wrong", func() bool { return strings.Contains(n.Worker(), "state=refusing") })
	n.session.Partition()
	r.takeOver("/workers/0000")
	r.Step(-10 * time.Second)
	n.session.Heal()
	n.until("another worker", func() bool { return strings.Contains(n.Worker(), "worker=1 ") })
	n.untilReady()
}

// A node stops while it changes workers. The local record must stay that of the new worker, without Stopped.
func TestStopDuringWorkerChangeKeepsTheNewRecord(t *testing.T) {
	r := newRig(t)
	n := r.start().untilReady()
	n.stop()
	n.mu.Lock()
	other := coordinator.Claim{Owner: coordinator.Owner{Node: n.view.Load().Claim.Node, Worker: 7}, Term: 3, PendingTerm: 4,
		PendingNonce: "p", Floor: n.now() + 9000}
	n.mu.Unlock()
	if _, err := n.keeper.Save(other); err != nil {
		t.Fatal(err)
	}
	n.keeper.stop(context.Background())
	rec, err := DecodeRecord(r.loaded().Record)
	if err != nil || rec.Claim.Worker != 7 || rec.Stopped || rec.Claim.ReservedUntil < other.Floor {
		t.Errorf("%+v, %v", rec, err)
	}
}

// A lease had run out, and a holder that ZooKeeper lost may have issued up to the new floor. The node stops before a
// tenure could begin there. A start without ZooKeeper must not begin below that floor.
func TestStopKeepsAFloorThatNoTenureReached(t *testing.T) {
	r := newRig(t)
	n := r.start().untilReady()
	n.stop()
	n.mu.Lock()
	floor := n.now() + 9000
	n.changeClaim(func(c *coordinator.Claim) { c.Floor = floor })
	n.mu.Unlock()
	n.keeper.stop(context.Background())
	rec, err := DecodeRecord(r.loaded().Record)
	if err != nil || rec.Claim.ReservedUntil < floor {
		t.Errorf("%+v, %v", rec, err)
	}
}

// The disk or the clock has kept the next tenure from beginning. Each heartbeat tries again.
func TestClosedTenureIsReplacedLater(t *testing.T) {
	n := newRig(t).start().untilReady()
	n.stop()
	floor := n.tenure.floor
	for i, row := range []struct {
		floor  int64
		closed bool
	}{{floor, false}, {floor + 1, true}, {floor, true}} {
		if _, closed := n.keeper.closeBelowFloor(row.floor); closed != row.closed {
			t.Errorf("heartbeat %d: closed %v", i, closed)
		}
	}
}

// The lease runs out while the node is cut off, and all clocks step back by more than a start waits for. The slot is
// confirmed again, but its next tenure would begin far ahead of the clock. While no fresh slot can be acquired, the node
// says that its clock is the cause, and not ZooKeeper. It serves when its clock is right.
func TestExpiredTenureFarAheadOfTheClock(t *testing.T) {
	r := newRig(t)
	r.Mem = memzk.New(func() int64 { return r.Wall() / 1e6 }) // the leader's clock steps too
	n := r.start().untilReady()
	for range 30 { // half a minute, faster than bounds may follow
		r.Step(900 * time.Millisecond)
		n.untilBeats(1)
		_, _ = n.Reserve(t.Context(), 1)
	}
	n.untilReady().next()
	n.session.Partition()
	n.until("a failed heartbeat", func() bool { return !n.Snapshot().ZooKeeper.OK })
	r.SetBoot(r.Boot() + int64(2*time.Minute))
	r.Step(-20 * time.Second)
	n.session.SetFault(func(c memzk.Call) memzk.Fault {
		if strings.HasPrefix(c.Path, "/tickets/") { // acquiring a slot begins with it
			return memzk.FailBefore
		}
		return memzk.NoFault
	})
	n.session.Heal()
	n.until("confirmed again", func() bool { return n.Snapshot().Phase != Serving && n.isConfirmed() })
	n.untilBeats(5)
	s := n.Snapshot()
	if s.Cause != CauseClockBehind || s.Clock.BehindMs < 11_000 || s.Clock.BehindMs > 20_000 {
		t.Errorf("it refuses for %s, and is behind by %d ms: %s", s.Cause, s.Clock.BehindMs, s.Reason)
	}
	if !s.ZooKeeper.OK || ZooKeeperTrouble(s.Degraded) != "" {
		t.Errorf("it reports %v, %+v", s.Degraded, s.ZooKeeper)
	}
	r.Step(20 * time.Second)
	n.untilReady().next()
	if s := n.Snapshot(); *s.Worker != 0 {
		t.Errorf("it serves with worker %d", *s.Worker)
	}
}

// The clock is wrong, and the lease runs out while the node is cut off. When the slot is confirmed again, the clock is
// still the cause, whether or not the next tenure may begin.
func TestWrongClockStaysTheCauseOverAnExpiry(t *testing.T) {
	for _, back := range []time.Duration{7 * time.Second, 20 * time.Second} {
		t.Run(back.String(), func(t *testing.T) {
			r, passed, began := newRig(t), atomic.NewInt64(0), time.Now()
			r.Mem = memzk.New(func() int64 { return began.UnixMilli() + time.Since(began).Milliseconds() + passed.Load() })
			n := r.start().untilReady()
			for range 30 { // half a minute, faster than bounds may follow
				r.Step(900 * time.Millisecond)
				passed.Add(900)
				n.untilBeats(1)
			}
			n.untilReady()
			r.Step(-back)
			n.until("refused", func() bool { return n.Snapshot().Cause == CauseClockWrong })
			n.session.Partition()
			n.until("a failed heartbeat", func() bool { return !n.Snapshot().ZooKeeper.OK })
			r.SetBoot(r.Boot() + int64(2*time.Minute))
			n.session.Heal()
			n.until("heard", func() bool { return n.Snapshot().ZooKeeper.OK })
			n.untilBeats(5)
			if s := n.Snapshot(); s.Cause != CauseClockWrong || !s.Confirmed {
				t.Errorf("it refuses for %s: %s, confirmed %v", s.Cause, s.Reason, s.Confirmed)
			}
			r.Step(back)
			n.untilReady().next()
		})
	}
}

// A node finds another cluster confirmed in the place of its own, and refuses to start. After
// that it must not start without ZooKeeper either.
func TestAnotherConfirmedClusterDisablesOfflineStart(t *testing.T) {
	r := newRig(t)
	r.confirmedAndStopped()
	own := r.Disk
	r.Mem.Wipe()
	r.Disk = memfile.New(nil)
	other := r.start().untilReady()
	other.until("confirmed", other.isConfirmed)

	r.Disk = own
	err := r.start().ended()
	var differs *StateOfOtherClusterError
	if !errors.As(err, &differs) {
		t.Fatalf("ended with %v", err)
	}
	alone := r.start(func(c *Config) {
		c.Store.(*memzk.Session).Partition()
		c.StartTimeout = 300 * time.Millisecond
	})
	err = alone.ended()
	if !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("ended with %v", err)
	}
}

// While a node is cut off, another cluster takes the place of its own. Clients have its connections, and do not look
// again which cluster answers.
func TestRunningNodeJoinsNoOtherCluster(t *testing.T) {
	r := newRig(t)
	n := r.start().untilReady()
	n.until("confirmed", n.isConfirmed)
	uuid := n.clusterUUID()
	n.session.Partition()
	r.Mem.Wipe()
	r.Disk = memfile.New(nil)
	other := r.start().untilReady()
	other.until("confirmed", other.isConfirmed)
	n.session.Heal()
	var differs *coordinator.OtherClusterError
	if err := n.ended(); !errors.As(err, &differs) || differs.Ours != uuid || differs.Found != other.clusterUUID() {
		t.Errorf("ended with %v", err)
	}
	if _, said := n.Cluster(); said != uuid {
		t.Errorf("it says that it belongs to %s, and belonged to %s", said, uuid)
	}
}

// A node may create a cluster, and its state directory names one that ZooKeeper has lost. Other nodes of that cluster
// may still hold leases. So the node must put that cluster back, with registration frozen.
func TestBootstrapRestoresTheLostClusterFrozen(t *testing.T) {
	r := newRig(t)
	n := r.confirmedAndStopped()
	uuid := n.clusterUUID()
	r.lapse()
	r.Mem.Wipe()
	r.start()
	cl := coordinator.Cluster{}
	for cl.UUID == "" {
		var err error
		if cl, err = coordinator.ReadCluster(t.Context(), r.Mem.Session()); err != nil &&
			!errors.Is(err, coordinator.ErrNoCluster) {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
	if cl.UUID != uuid || cl.FrozenUntil <= time.Now().UnixMilli() {
		t.Errorf("was %s, is %+v", uuid, cl)
	}
}
