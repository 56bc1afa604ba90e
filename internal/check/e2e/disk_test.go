package e2e

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/flaked/flaked/internal/testkit/faultdisk"
	"github.com/flaked/flaked/internal/testkit/zktest"
)

// These match the refusals of a node whose reserved bound has run out: because writes fail, and
// because a write does not return.
const (
	noDisk   = `-NOTREADY reserved bound reached: the state directory cannot be written reason=reserved-bound-reached`
	noAnswer = `-NOTREADY reserved bound reached: the state directory does not answer reason=reserved-bound-reached`
)

// diskOfItsOwn returns a node that serves and the disk with its state directory.
func (s *site) diskOfItsOwn() (*node, *faultdisk.Disk) {
	s.t.Helper()
	disk := faultdisk.New(s.t)
	n := s.node()
	n.dir = filepath.Join(disk.Dir(), "state")
	return n.start().ready(), disk
}

// On a full disk no file can be created or grow. A node with a state file continues to serve
// and can restart. A new node fails with an error that says so.
func TestFullDiskKeepsServing(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)), "--reserve", "3s")
	n, disk := s.diskOfItsOwn()
	before := n.identity()
	load := n.clients(2)
	load.progress()
	disk.Fill()
	written := n.stored().Record.MMs
	n.until("its bound has been pushed again and again", func() bool { return n.stored().Record.MMs > written+2000 })
	load.progress()
	load.flawless()
	n.kill()
	n.start().ready().get(100)
	n.stop()
	n.start().ready().get(100)

	newcomer := s.node()
	newcomer.dir = filepath.Join(disk.Dir(), "another")
	newcomer.start().fails(1, `no space is left on its disk`)
	disk.Free()
	newcomer.start().ready().get(100)
	if now := n.identity(); now.worker != before.worker || now.uuid != before.uuid {
		t.Errorf("%+v, was %+v", now, before)
	}
}

// A sync of the disk takes ten seconds. The node serves to its reserved bound, refuses with the
// reason, and serves again when the sync has returned.
func TestStalledDiskRefusesBeyondTheBound(t *testing.T) {
	t.Parallel()
	s := newSite(t, zktest.Chroot(t, zktest.Shared(t)))
	n, disk := s.diskOfItsOwn()
	before := n.identity()
	load := n.clients(2)
	load.progress()
	disk.Freeze()
	stall := time.NewTimer(10 * time.Second)
	bound := n.stored().Record.MMs
	n.refusesLike(noAnswer)
	s.servedTo(before.worker, bound)
	n.heartbeats(true)
	if ok := n.stat("state_directory_ok"); ok != "false" {
		t.Errorf("state_directory_ok is %s of a disk that does not answer", ok)
	}
	<-stall.C
	n.refusesLike(noAnswer)
	s.servedTo(before.worker, bound)
	disk.Thaw()
	n.ready()
	load.progress()
	load.failedOnlyBy(noBound)
	if now := n.identity(); now != before {
		t.Errorf("%+v, was %+v", now, before)
	}
}

// servedTo fails the test if a worker's ID has a timestamp at or above bound, its reserved bound.
func (s *site) servedTo(worker int, bound int64) {
	s.t.Helper()
	_, last := s.ids.span(worker, 0, s.ids.len())
	if last >= bound {
		s.t.Errorf("an ID is %d ms past the bound on the disk", last-bound)
	}
	s.t.Logf("the last ID is %d ms before the bound on the disk", bound-last)
}
