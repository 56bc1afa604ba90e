package node

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/internal/testkit/memzk"
	"github.com/flaked/flaked/localcache"
)

// A write of the reserved bound neither succeeds nor fails. The refusal must name the disk, and
// heartbeats must go on meanwhile, also one that confirms a leap of the clock.
func TestStalledDiskIsReportedAndHeartbeatsContinue(t *testing.T) {
	r := newRig(t)
	r.Mem = memzk.New(func() int64 { return r.Wall() / 1e6 })
	var frozen atomic.Bool
	thawed := make(chan struct{})
	thaw := sync.OnceFunc(func() { close(thawed) })
	r.Disk.FailSyncs = func() error {
		if frozen.Load() {
			<-thawed
		}
		return nil
	}
	n := r.start().untilReady()
	defer thaw()      // before the node is stopped, which waits for the disk
	beats := func() { // the goroutine of heartbeats goes on
		n.mu.Lock()
		beat := n.reports.beatAt
		n.mu.Unlock()
		n.until("a heartbeat", func() bool {
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.reports.beatAt > beat
		})
	}
	beats() // it writes to the disk while it begins to serve
	frozen.Store(true)
	n.until("a refusal", func() bool { return n.Ready() != nil })
	if cause := n.cause(); cause != CauseReservedBound {
		t.Errorf("refuses for %s", cause)
	}
	n.until("the disk is named", func() bool {
		s := n.Snapshot()
		return strings.Contains(s.Reason, "the state directory does not answer") && !s.Disk.OK
	})
	r.Step(5 * time.Second)
	n.until("the leap is followed", func() bool { return n.clock.UnfollowedLeap() == 0 && n.now() >= r.Wall()/1e6 })
	beats()
	n.until("the log says it", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.disk.stallSaid
	})
	thaw()
	n.untilReady()
	if disk := n.Snapshot().Disk; !disk.OK {
		t.Errorf("when the disk has answered: %+v", disk)
	}
}

// noting is a Cache that calls note before it saves a record.
type noting struct {
	Cache
	note func(localcache.Record)
}

func (c noting) Save(rec localcache.Record) (uint64, error) {
	c.note(rec)
	return c.Cache.Save(rec)
}

// A claim that has just been confirmed is on the disk before the node goes by it.
func TestConfirmedClaimIsSavedFirst(t *testing.T) {
	r := newRig(t)
	var node atomic.Pointer[Node]
	saved, early := atomic.NewInt64(0), atomic.NewInt64(0)
	n := r.start(func(cfg *Config) {
		cfg.Cache = noting{cfg.Cache, func(rec localcache.Record) {
			if n := node.Load(); n != nil && bytes.Contains(rec.Payload, []byte(`"confirmed":true`)) &&
				saved.Add(1) == 1 {
				early.Store(n.view.Load().Claim.LeaseUntil)
			}
		}}
		cfg.Store.(*memzk.Session).Partition()
	})
	node.Store(n.Node)
	n.session.Heal()
	n.untilReady()
	n.until("a saved claim", func() bool { return saved.Load() > 0 })
	if h := early.Load(); h != 0 {
		t.Errorf("the lease bound was %d before the claim was saved", h)
	}
}

// full is a Cache that takes some confirmed claims, and then no other one until more is stored.
type full struct {
	Cache
	takes *atomic.Int64
}

func (c full) Save(rec localcache.Record) (uint64, error) {
	if bytes.Contains(rec.Payload, []byte(`"confirmed":true`)) && c.takes.Add(-1) < 0 {
		return 0, errors.New("no space left")
	}
	return c.Cache.Save(rec)
}

// The claim that a heartbeat has confirmed cannot be written. That is a trouble of the disk, not of ZooKeeper.
func TestUnsavedClaimIsATroubleOfTheDisk(t *testing.T) {
	r, takes := newRig(t), atomic.NewInt64(0)
	n := r.start(func(cfg *Config) { cfg.Cache = full{cfg.Cache, takes} })
	n.until("the disk is named", func() bool {
		s := n.Snapshot()
		return !s.Disk.OK && slices.Equal(s.Degraded, []string{TroubleDisk})
	})
	takes.Store(math.MaxInt64)
	n.untilReady()
	n.until("no trouble", func() bool { s := n.Snapshot(); return s.Disk.OK && len(s.Degraded) == 0 })
}

// A stop that cannot be recorded on the disk is not reported to ZooKeeper. If ZooKeeper has lost data, the node says so
// all the same: nobody else may have noticed, and its next start may have no ZooKeeper.
func TestLossIsNoticedByAStopWithoutADisk(t *testing.T) {
	r := newRig(t)
	n := r.start().untilReady()
	n.until("confirmed", n.isConfirmed)
	copied, before := r.Mem.Snapshot(), r.Mem.Zxid()
	n.until("heartbeats", func() bool { return r.Mem.Zxid() > before+3 })
	n.stop()
	r.Disk.FailSyncs = func() error { return errors.New("disk on fire") }
	r.Mem.Restore(copied)
	n.keeper.stop(t.Context())
	if cl, err := coordinator.ReadCluster(t.Context(), r.Mem.Session()); err != nil || cl.Incarnation == 0 {
		t.Errorf("incarnation %d, %v", cl.Incarnation, err)
	}
}
