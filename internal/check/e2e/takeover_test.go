package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/faultnet"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// twoWorkers is a layout with two workers, so that a new node must acquire the only free one.
const twoWorkers = "time=41@1ms,worker=1,sequence=12,epoch=1288834974657"

// These match the refusals of a holder that is cut off, and of one whose worker was taken over.
const (
	leaseOver = `-FENCED the lease has expired: ZooKeeper could not be reached to renew it`
	taken     = `-FENCED this node lost its worker and is registering as a new one`
	beginning = `-NOTREADY (starting|confirming) .*`
)

// couple is a cluster of two nodes that hold all its workers.
type couple struct {
	*site
	records *records
	old     *node    // the node that is cut off
	network links    // to ZooKeeper, of old
	before  identity // old's identity before
	other   *node    // releases its worker when it stops
}

func newCouple(t *testing.T) *couple {
	t.Helper()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--lease", "3s", "--reserve", "2s").laidOut(twoWorkers)
	c := &couple{site: s, records: s.records(), old: s.node()}
	c.network = c.old.network()
	c.old.start().ready()
	c.before = c.old.identity()
	c.other = s.started("--release-on-exit").ready()
	return c
}

// takenOver starts a new node until it acquires the worker of the old holder, which is cut off. The
// new node must be refused until the old holder's lease has ended. Its timestamps must be above the
// lease bound and those of the old holder below it.
func (c *couple) takenOver() (late *node) {
	c.t.Helper()
	late = c.node()
	w := c.before.worker
	var bound int64
	var handedOut int
	for {
		bound, handedOut = c.records.slot(w).LeaseUntil, c.ids.len()
		late.start()
		if !within(patience, func() bool { return !late.proc.running() || late.isReady() }) {
			c.t.Fatalf("the newcomer is neither refused nor ready after %s", patience)
		}
		if late.proc.running() {
			break
		}
		late.fails(1, `all 2 workers are held`)
		eventually(c.t, "the lease has ended, and the session", func() bool {
			return time.Now().UnixMilli() > c.records.slot(w).LeaseUntil && c.records.session(w) == 0
		})
	}
	if early := bound - time.Now().UnixMilli(); early > 0 {
		c.t.Errorf("the newcomer serves %d ms before the lease of the old holder ends", early)
	}
	if now := late.identity(); now.worker != w || now.term != c.before.term+1 || now.uuid == c.before.uuid {
		c.t.Fatalf("the newcomer is %+v, the old holder was %+v", now, c.before)
	}
	late.get(100)
	_, last := c.ids.span(w, 0, handedOut)
	first, _ := c.ids.span(w, handedOut, c.ids.len())
	if last >= bound || first < bound {
		c.t.Errorf("the old holder's last ID is %d ms before its lease's end, the newcomer's first %d ms after",
			bound-last, first-bound)
	}
	return late
}

// returns waits until the old holder serves again with a new identity.
func (c *couple) returns() {
	c.t.Helper()
	c.old.ready().get(100)
	if now := c.old.identity(); now.worker == c.before.worker || now.uuid == c.before.uuid {
		c.t.Errorf("the old holder is %+v, and was %+v", now, c.before)
	}
}

// leaseOver waits until the node refuses because its lease has run out.
func (n *node) leaseOver() {
	n.site.t.Helper()
	n.until(leaseOver, func() bool { _, err := n.ask("READY"); return err != nil && err.Error() == leaseOver })
	n.refuses("-FENCED")
}

// The holder of a worker is cut off, and another node takes the worker over once the lease has
// ended. The two do not know of each other. Their timestamps do not overlap, because the old
// holder stops by itself. It acquires a new worker when it can.
func TestLeaseExpiryFencesTheOldHolder(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name       string
		away, back func(*couple)
		stopped    bool // it cannot be asked while it is away
	}{
		{"black hole", func(c *couple) { c.network.each((*faultnet.Link).BlackHole) },
			func(c *couple) { c.network.heal() }, false},
		// When it continues, the process may hold a reading of the clock from before.
		{"stopped", func(c *couple) { c.old.proc.freeze() }, func(c *couple) { c.old.proc.thaw() }, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := newCouple(t)
			load := c.old.clients(2)
			load.progress()
			row.away(c)
			late := c.takenOver()
			lateLoad := late.clients(2)
			lateLoad.progress()
			if !row.stopped {
				c.old.leaseOver()
			}
			c.other.stop() // leaves a worker for the old holder
			row.back(c)
			c.returns()
			load.progress()
			lateLoad.progress()
			lateLoad.flawless()
			failures := leaseOver + "|" + taken + "|" + beginning
			if row.stopped {
				failures += "|no answer" // rare
			}
			load.failedOnlyBy(failures)
			if log := c.old.proc.log(); !strings.Contains(log, "fenced: stopped issuing IDs for this worker") {
				t.Error("the old holder has not said that it lost its worker")
			}
		})
	}
}
